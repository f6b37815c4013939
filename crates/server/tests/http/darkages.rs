//! DarkAges over HTTP: hot state.

use crate::auth::Tokens;
use crate::support::{Server, loopback};
use emberkeep_games::darkages::{
    DarkAges, EntityId, HandOff, HandOffRequest, LoginRequest, Point, SESSION, Shard, Shards, ZoneId,
};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_schema::KeyLayout;
use emberkeep_server::auth::Role;
use emberkeep_server::{Settings, listen};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A login into a zone.
pub(crate) fn login(player: i64, zone: i32) -> Value {
    json!({"player_id": player, "client_id": format!("client-{player}"), "player_name": format!("P{player}"),
        "zone_id": zone, "position": {"x": 1.5, "y": 0, "z": -2}, "client_version": "1.4.2", "ip": "192.0.2.7"})
}

pub(crate) async fn log_in(server: &Server, player: i64, zone: i32) -> Value {
    server.post("/v1/darkages/sessions", login(player, zone)).await.json(201)
}

#[tokio::test]
async fn a_session_is_logged_in_changed_and_logged_out() {
    let server = Server::open().await;
    let created = server.post("/v1/darkages/sessions", login(7, 42)).await;
    assert_eq!(created.header("location"), Some("/v1/darkages/sessions/7"));
    let session = created.json(201);
    assert_eq!(
        (&session["zone_id"], &session["health"], &session["status"]),
        (&json!(42), &json!(100), &json!("active"))
    );
    assert_eq!(server.get("/v1/darkages/sessions/7").await.json(200), session);
    let change = json!({"health": 60, "status": "resting", "team_id": 3});
    let changed = server.post("/v1/darkages/sessions/7/change", change).await.json(200);
    assert_eq!(
        (&changed["health"], &changed["status"], &changed["team_id"]),
        (&json!(60), &json!("resting"), &json!(3))
    );
    let touched = server.request("POST", "/v1/darkages/sessions/7/touch").send().await.json(200);
    assert!(touched["last_activity"].as_i64() >= changed["last_activity"].as_i64());
    let again = json!({"existing": "refuse"});
    let mut refused = login(7, 42);
    refused.as_object_mut().unwrap().extend(again.as_object().unwrap().clone());
    assert_eq!(server.post("/v1/darkages/sessions", refused).await.problem(409), "already_logged_in");
    let replaced = log_in(&server, 7, 43).await;
    assert!(replaced["login_time"].as_i64() > session["login_time"].as_i64());
    assert_eq!(server.delete("/v1/darkages/sessions/7").await.status, 204);
    assert_eq!(server.get("/v1/darkages/sessions/7").await.problem(404), "not_logged_in");
    assert_eq!(server.delete("/v1/darkages/sessions/7").await.problem(404), "not_logged_in");
    let expired = server.get("/v1/darkages/expired-sessions?limit=5").await.json(200);
    assert_eq!(expired, json!({"entities": []}));
    let swept = server.post("/v1/darkages/sweep", json!({"limit": 10})).await.json(200);
    assert_eq!(swept, json!({"closed": 0, "alive": 0, "unreadable": 0, "copies": 0, "failed": 0}));
}

#[tokio::test]
async fn ids_are_numbers_to_the_limits_of_their_types() {
    let server = Server::open().await;
    for player in [i64::MIN, -1, 0, i64::MAX] {
        assert_eq!(log_in(&server, player, i32::MAX).await["entity_id"], json!(player));
        let session = server.get(&format!("/v1/darkages/sessions/{player}")).await.json(200);
        assert_eq!((&session["entity_id"], &session["zone_id"]), (&json!(player), &json!(i32::MAX)));
    }
    let beyond = server.get("/v1/darkages/sessions/9223372036854775808").await;
    assert_eq!(beyond.problem(422), "invalid");
}

#[tokio::test]
async fn a_player_is_in_one_zone() {
    let server = Server::open().await;
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    let moved = server.put("/v1/darkages/sessions/1/zone", json!({"zone_id": 43})).await.json(200);
    assert_eq!(moved, json!({"former_zone_id": 42}));
    for (zone, players) in [(42, vec![2]), (43, vec![1]), (44, vec![])] {
        let members = server.get(&format!("/v1/darkages/zones/{zone}/members")).await.json(200);
        let found: Vec<i64> = members["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["entity_id"].as_i64().unwrap())
            .collect();
        assert_eq!((found, &members["corrupt"]), (players.clone(), &json!([])));
        let count = server.get(&format!("/v1/darkages/zones/{zone}/count")).await.json(200);
        assert_eq!(count, json!({"count": players.len()}));
        let is_there = server.get(&format!("/v1/darkages/zones/{zone}/members/1")).await.json(200);
        assert_eq!(is_there, json!({"is_member": zone == 43}));
    }
    assert_eq!(server.request("POST", "/v1/darkages/zones/42/heartbeat").send().await.status, 204);
    let nowhere = server.put("/v1/darkages/sessions/9/zone", json!({"zone_id": 43})).await;
    assert_eq!(nowhere.problem(404), "not_logged_in");
    let negative = server.put("/v1/darkages/sessions/1/zone", json!({"zone_id": -1})).await;
    assert_eq!(negative.problem(422), "invalid");
}

#[tokio::test]
async fn thousands_of_positions_are_set_at_once_and_older_ones_refused() {
    let server = Server::open().await;
    let position = |player: i64, x: f64, at: i64| json!({"entity_id": player, "x": x, "y": 0.5, "z": -1, "timestamp": at});
    let many: Vec<Value> = (0..9_000).map(|player| position(player, player as f64, 1_000)).collect();
    let set = server.put("/v1/darkages/positions", json!({"positions": many})).await.json(200);
    assert_eq!(set, json!({"written": 9_000, "outdated": 0, "absent": 0}));
    let older = json!({"positions": [position(1, 9.0, 999), position(2, 9.0, 1_001)]});
    let set = server.put("/v1/darkages/positions", older).await.json(200);
    assert_eq!(set, json!({"written": 1, "outdated": 1, "absent": 0}));
    let read =
        server.post("/v1/darkages/positions/read", json!({"entities": [2, 99_999, 1]})).await.json(200);
    assert_eq!(
        read["positions"],
        json!([
        {"entity_id": 2, "x": 9.0, "y": 0.5, "z": -1.0, "timestamp": 1_001},
        {"entity_id": 1, "x": 1.0, "y": 0.5, "z": -1.0, "timestamp": 1_000}])
    );
    let too_many: Vec<Value> = (0..10_001).map(|player| position(player, 0.0, 1)).collect();
    let refused = server.put("/v1/darkages/positions", json!({"positions": too_many})).await;
    assert_eq!(refused.problem(422), "invalid");
    for entities in [json!([]), json!(vec![1; 1_001])] {
        let refused = server.post("/v1/darkages/positions/read", json!({"entities": entities})).await;
        assert_eq!(refused.problem(422), "invalid");
    }
    let huge = server.request("PUT", "/v1/darkages/positions").header("Content-Type", "application/json");
    assert_eq!(huge.body(vec![b' '; 1024 * 1024 + 1]).send().await.problem(413), "body_too_large");
}

#[tokio::test]
async fn one_hit_kills() {
    let server = Server::open().await;
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    let hit = json!({"attacker_id": 1, "damage": 60, "hit_type": "critical", "ability_name": "fireball"});
    let first = server.post("/v1/darkages/sessions/2/damage", hit.clone()).await.json(200);
    assert_eq!(
        (&first["actual"], &first["health"], &first["killed"]),
        (&json!(60), &json!(40), &json!(false))
    );
    let second = server.post("/v1/darkages/sessions/2/damage", hit.clone()).await.json(200);
    assert_eq!(
        (&second["actual"], &second["health"], &second["killed"]),
        (&json!(40), &json!(0), &json!(true))
    );
    assert_ne!(first["event_id"], second["event_id"]);
    assert_eq!(server.post("/v1/darkages/sessions/2/damage", hit).await.problem(409), "dead");
    let npc = json!({"attacker_id": 900_001, "attacker_is_npc": true, "damage": 1});
    assert_eq!(server.post("/v1/darkages/sessions/1/damage", npc.clone()).await.json(200)["actual"], 1);
    assert_eq!(server.post("/v1/darkages/sessions/5/damage", npc).await.problem(404), "not_logged_in");
    for wrong in [
        json!({"attacker_id": 1, "damage": 5}),
        json!({"attacker_id": 2, "damage": -1}),
        json!({"attacker_id": 2, "damage": 5, "hit_type": "missed"}),
        json!({"attacker_id": 2, "damage": 5, "hit_type": "hard"}),
        json!({"attacker_id": 2, "damage": 5, "extra": 1}),
    ] {
        assert_eq!(server.post("/v1/darkages/sessions/1/damage", wrong).await.problem(422), "invalid");
    }
}

#[tokio::test]
async fn only_administrators_kick_ban_and_sweep() {
    let tokens = Tokens::new();
    let server = Server::with(tokens.settings()).await;
    let send = async |method: &str, path: &str, body: &Value, role: Role| {
        server.request(method, path).token(tokens.of(role)).json(body).send().await
    };
    assert_eq!(
        send("POST", "/v1/darkages/sessions", &login(1, 42), Role::ReadOnly).await.problem(403),
        "forbidden"
    );
    send("POST", "/v1/darkages/sessions", &login(1, 42), Role::Service).await.json(201);
    let (kick, sweep) = (json!({"reason": "speed hack"}), json!({"limit": 1}));
    for (method, path, body) in [
        ("POST", "/v1/darkages/sessions/1/kick", &kick),
        ("POST", "/v1/darkages/sweep", &sweep),
        ("PUT", "/v1/darkages/profiles/1/ban", &kick),
    ] {
        assert_eq!(send(method, path, body, Role::Service).await.problem(403), "forbidden", "{path}");
    }
    assert_eq!(send("POST", "/v1/darkages/sessions/1/kick", &kick, Role::Admin).await.status, 204);
    let gone = server.request("GET", "/v1/darkages/sessions/1").token(tokens.of(Role::ReadOnly)).send().await;
    assert_eq!(gone.problem(404), "not_logged_in");
}

#[tokio::test]
async fn values_that_no_record_can_hold_are_refused() {
    let server = Server::with(loopback()).await;
    let with = |name: &str, value: Value| {
        let mut body = login(1, 42);
        body[name] = value;
        body
    };
    for wrong in [
        with("zone_id", json!(-1)),
        with("max_health", json!(0)),
        with("client_id", json!("x".repeat(129))),
        with("ip", json!("not an address")),
        with("player_id", json!(1.5)),
        with("position", json!({"x": 1, "y": 2})),
        with("unknown", json!(1)),
    ] {
        assert_eq!(server.post("/v1/darkages/sessions", wrong).await.problem(422), "invalid");
    }
    let infinite = login(1, 42).to_string().replace("1.5", "1e999");
    let sent = server.request("POST", "/v1/darkages/sessions").header("Content-Type", "application/json");
    assert_eq!(sent.body(infinite).send().await.problem(400), "malformed_json");
}

#[tokio::test]
async fn a_hand_off_within_a_shard_is_done_at_once() {
    let server = Server::open().await;
    log_in(&server, 1, 42).await;
    let target = json!({"zone_id": 43, "position": {"x": 9, "y": 0, "z": 8}});
    let done = server.post("/v1/darkages/sessions/1/hand-off", target.clone()).await.json(200);
    assert_eq!(
        (&done["done"], &done["number"], &done["session"]["zone_id"]),
        (&json!(true), &Value::Null, &json!(43))
    );
    assert_eq!(server.get("/v1/darkages/zones/42/count").await.json(200)["count"], 0);
    assert_eq!(server.get("/v1/darkages/zones/43/arrivals").await.json(200), json!({"entities": []}));
    let missing = server.post("/v1/darkages/sessions/2/hand-off", target).await;
    assert_eq!(missing.problem(404), "not_logged_in");
    let path = "/v1/darkages/zones/43/arrivals/2";
    assert_eq!(server.delete(path).await.problem(404), "not_arrived");
    let accepted = server.request("POST", &format!("{path}/accept")).send().await;
    assert_eq!(accepted.problem(404), "not_arrived");
}

/// Shards that are partitions, as on a Cluster: what left for a shard without a zone server is brought back by the server.
#[tokio::test]
async fn a_player_whom_no_zone_server_accepts_comes_back() {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).layout(KeyLayout::cluster());
    let store = Store::new(Arc::new(engine.open().unwrap()));
    let shards: Shards = "1:1-99,2:100-199".parse().unwrap();
    let zone_server = DarkAges::new(store.clone(), "zone-1").unwrap().with_shards(shards.clone());
    let (entity, position) = (EntityId(7), Point::new(1.0, 2.0, 3.0));
    let request = LoginRequest::new(entity.0, "client", ZoneId(42), position.clone());
    zone_server.login(request).await.unwrap();
    assert!(store.scope(Shard(1)).exists(&SESSION.key(entity)).await.unwrap());
    let to = HandOffRequest { entity, zone: ZoneId(150), position };
    assert!(matches!(zone_server.hand_off(to).await.unwrap(), HandOff::InTransit { .. }));
    clock.advance(30_000);
    let settings = Settings { darkages_shards: shards, ..loopback() };
    let listening = listen(store.clone(), &settings).await.unwrap();
    let server = Server { listening, store, _folder: None };
    let is_back = async {
        loop {
            let found = server.get("/v1/darkages/sessions/7").await;
            let metrics = server.get("/metrics").await.text();
            if found.status == 200 && metrics.contains("emberkeep_darkages_hand_offs_returned_total 1") {
                break found.json(200);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let session = tokio::time::timeout(Duration::from_secs(60), is_back).await.expect("it comes back");
    assert_eq!(session["zone_id"], json!(42));
}
