//! Galaxy over HTTP: entities, whole ticks, clock, rules, players, and which service may write what.

use crate::support::{Server, loopback};
use emberkeep_games::galaxy::{GalaxyState, StartRequest, TickRun};
use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_server::auth::{Entry, Role, Token, write_entry};
use emberkeep_server::{Settings, listen};
use emberkeep_testkit::scratch;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const SHIP: &str = "550e8400-e29b-41d4-a716-446655440000";
const ANN: &str = "660e8400-e29b-41d4-a716-446655440001";
const BEN: &str = "660e8400-e29b-41d4-a716-446655440009";

fn ship_path(what: &str) -> String {
    format!("/v1/galaxy/ships/{SHIP}{what}")
}

async fn spawn(server: &Server) -> Value {
    let body = json!({"ship_id": SHIP, "player_id": ANN, "name": "Roci", "velocity": [1, 2, 3]});
    server.post("/v1/galaxy/ships", body).await.json(201)
}

/// A tick engine on the server's store.
async fn engine(server: &Server) -> TickRun {
    let galaxy = GalaxyState::new(server.store.clone());
    galaxy.tick_engine().start(StartRequest::new("test")).await.unwrap()
}

async fn tick(run: &TickRun) {
    let mut world = run.load().await.unwrap();
    let mut step = run.begin(Duration::from_secs(1)).await.unwrap();
    run.commit(&mut step, &mut world).await.unwrap();
}

#[tokio::test]
async fn a_ship_is_spawned_controlled_renamed_refuelled_and_removed() {
    let server = Server::open().await;
    let run = engine(&server).await;
    let body = json!({"ship_id": SHIP, "player_id": ANN, "name": "Roci", "ship_class": "cargo_hauler"});
    let created = server.post("/v1/galaxy/ships", body.clone()).await;
    assert_eq!(created.header("location"), Some(&*ship_path("")));
    let ship = created.json(201);
    assert_eq!(
        (&ship["fuel"], &ship["fuel_capacity"], &ship["spawn_number"]),
        (&json!(120_000.0), &json!(120_000.0), &json!(1))
    );
    assert_eq!((&ship["system_id"], &ship["attitude"]), (&json!("sol"), &json!([1.0, 0.0, 0.0, 0.0])));
    assert_eq!(server.get(&ship_path("")).await.json(200), ship);
    assert_eq!(server.post("/v1/galaxy/ships", body).await.problem(409), "exists");
    let controls = json!({"rotation_input": [0, -1, 0.5], "thrust_level": 1, "attitude_mode": "target",
        "attitude_target_id": "Earth", "attitude_target_type": "body"});
    assert_eq!(server.put(&ship_path("/controls"), controls).await.status, 204);
    let name = json!({"player_id": ANN, "name": "Rocinante"});
    assert_eq!(server.put(&ship_path("/name"), name).await.status, 204);
    let low = server.post(&ship_path("/refuel"), json!({"fuel": 7})).await.json(202);
    assert_eq!(low, json!({"after_tick": 0}));
    let ship = server.get(&ship_path("")).await.json(200);
    assert_eq!(
        (&ship["name"], &ship["fuel"]),
        (&json!("Rocinante"), &json!(120_000.0)),
        "not before the next tick"
    );
    assert_eq!((&ship["thrust_level"], &ship["attitude_target_id"]), (&json!(1.0), &json!("Earth")));
    tick(&run).await;
    assert_eq!(server.get(&ship_path("")).await.json(200)["fuel"], 7.0);
    server.post(&ship_path("/refuel"), json!({})).await.json(202);
    tick(&run).await;
    assert_eq!(server.get(&ship_path("")).await.json(200)["fuel"], 120_000.0, "full tanks");
    assert_eq!(server.delete(&ship_path("")).await.status, 204);
    for answer in [server.get(&ship_path("")).await, server.delete(&ship_path("")).await] {
        assert_eq!(answer.problem(404), "not_found");
    }
}

#[tokio::test]
async fn what_no_ship_can_have_is_refused_with_what_was_expected() {
    let server = Server::open().await;
    spawn(&server).await;
    let said = async |answer: crate::support::Answer, expected: &str| {
        assert_eq!(answer.problem(422), "invalid");
        assert!(answer.text().contains(expected), "{}", answer.text());
    };
    let new = |change: Value| {
        let mut body = json!({"player_id": ANN, "name": "Other"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    for (change, expected) in [
        (json!({"ship_class": "submarine"}), "cargo_hauler"),
        (json!({"fuel": 30_001}), "expected 0 to 30000"),
        (json!({"name": ""}), "1 to 64 bytes"),
        (json!({"dry_mass": 0}), "above 0"),
        (json!({"position": [1, 2]}), "an array of length 3"),
        (json!({"system_id": "a:b"}), "fit this route"),
        (json!({"speed": 3}), "unknown field"),
    ] {
        said(server.post("/v1/galaxy/ships", new(change)).await, expected).await;
    }
    for (controls, expected) in [
        (json!({"thrust_level": 1.5}), "0 to 1"),
        (json!({"rotation_input": [0, 2, 0]}), "-1 to 1"),
        (json!({"attitude_mode": "sideways"}), "target_retrograde"),
        (json!({"attitude_mode": "target"}), "needs the target"),
        (json!({"attitude_target_type": "comet"}), "lagrange"),
    ] {
        said(server.put(&ship_path("/controls"), controls).await, expected).await;
    }
    said(server.post(&ship_path("/refuel"), json!({"fuel": -1})).await, "expected 0 to").await;
    let other = server.put(&ship_path("/name"), json!({"player_id": BEN, "name": "Mine"})).await;
    assert_eq!(other.problem(409), "not_owner");
    let absent = format!("/v1/galaxy/ships/{BEN}/refuel");
    assert_eq!(server.post(&absent, json!({"fuel": 1})).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_system_is_one_whole_tick_and_its_ships_come_in_pages() {
    let server = Server::open().await;
    let run = engine(&server).await;
    for number in 0..25 {
        let system = if number % 5 == 0 { "vega" } else { "sol" };
        let body = json!({"player_id": ANN, "name": format!("S{number}"), "system_id": system});
        server.post("/v1/galaxy/ships", body).await.json(201);
    }
    let (station, gate) =
        (json!({"name": "Halo", "parent_body": "Earth"}), json!({"name": "Gate", "parent_body": "Sun"}));
    let station = server.post("/v1/galaxy/stations", station).await;
    let gate = server.post("/v1/galaxy/jumpgates", gate).await;
    let earth = json!({"name": "Earth", "position": [1.5e11, 0, 0], "velocity": [0, 29_780, 0]});
    let earth = server.post("/v1/galaxy/bodies", earth).await;
    let empty = server.get("/v1/galaxy/systems/sol").await.json(200);
    assert_eq!(
        (&empty["tick"], &empty["ships"]),
        (&json!(0), &json!({})),
        "what was spawned is in the next tick"
    );
    tick(&run).await;
    let sol = server.get("/v1/galaxy/systems/sol").await.json(200);
    assert_eq!((&sol["tick"], sol["ships"].as_object().unwrap().len()), (&json!(1), 20));
    assert_eq!(sol["bodies"]["Earth"]["position"], json!([1.5e11, 0.0, 0.0]));
    assert_eq!(
        (sol["stations"].as_object().unwrap().len(), sol["jumpgates"].as_object().unwrap().len()),
        (1, 1)
    );
    let (mut cursor, mut listed, mut pages) = (String::new(), BTreeSet::new(), 0);
    loop {
        let page = server.get(&format!("/v1/galaxy/systems/sol/ships?limit=7{cursor}")).await.json(200);
        assert_eq!(page["tick"], 1);
        for entry in page["ships"].as_array().unwrap() {
            let id = entry["ship_id"].as_str().unwrap();
            assert_eq!(entry["state"], sol["ships"][id]);
            assert!(listed.insert(id.to_owned()), "{id} twice");
        }
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((listed.len(), pages), (20, 3));
    assert_eq!(server.get("/v1/galaxy/systems/sol/ships?limit=0").await.problem(422), "invalid");
    for (made, mass) in [(station, Some(420_000.0)), (gate, Some(500_000.0)), (earth, None)] {
        let path = made.header("location").unwrap().to_owned();
        assert_eq!(server.get(&path).await.json(200), made.json(201));
        assert_eq!(made.json(201)["mass"].as_f64(), mass);
        assert_eq!(server.delete(&path).await.status, 204);
        assert_eq!(server.get(&path).await.problem(404), "not_found");
        assert_eq!(server.delete(&path).await.problem(404), "not_found");
    }
    assert_eq!(server.delete("/v1/galaxy/ships").await.json(200), json!({"cleared": 25}));
}

#[tokio::test]
async fn rules_and_maneuvers_belong_to_a_ship() {
    let server = Server::open().await;
    spawn(&server).await;
    let trigger = json!({"conditions": [{"field": "fuel", "op": "<", "value": 500}], "logic": "AND"});
    let rule = |change: Value| {
        let mut body = json!({"player_id": ANN, "rule_id": "low-fuel", "name": "Low", "trigger": trigger,
            "actions": [{"type": "set_thrust", "value": 0}], "priority": 9});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    let (rules, low) = (ship_path("/rules"), ship_path("/rules/low-fuel"));
    let condition = &trigger["conditions"][0];
    for change in [
        json!({"rule_id": "rules"}),
        json!({"rule_id": "a:b"}),
        json!({"priority": 100}),
        json!({"mode": "often"}),
        json!({"trigger": {"conditions": vec![condition; 6], "logic": "AND"}}),
        json!({"trigger": {"conditions": [condition], "logic": "OR"}}),
        json!({"actions": []}),
    ] {
        assert_eq!(server.post(&rules, rule(change.clone())).await.problem(422), "invalid", "{change}");
    }
    assert_eq!(server.post(&rules, rule(json!({"player_id": BEN}))).await.problem(409), "not_owner");
    let created = server.post(&rules, rule(json!({}))).await;
    assert_eq!(created.header("location"), Some(&*low));
    let one = &created.json(201)["rules"][0];
    assert_eq!((&one["enabled"], &one["mode"], &one["priority"]), (&json!(true), &json!("once"), &json!(9)));
    assert_eq!(serde_json::from_str::<Value>(one["trigger_json"].as_str().unwrap()).unwrap(), trigger);
    assert_eq!(server.post(&rules, rule(json!({}))).await.problem(409), "rule_exists");
    let change = json!({"player_id": ANN, "priority": 3, "mode": "continuous"});
    assert_eq!(server.post(&format!("{low}/change"), change).await.status, 204);
    assert_eq!(server.put(&format!("{low}/enabled"), json!({"enabled": false})).await.status, 204);
    let one = server.get(&rules).await.json(200)["rules"][0].clone();
    assert_eq!(
        (&one["enabled"], &one["mode"], &one["priority"]),
        (&json!(false), &json!("continuous"), &json!(3))
    );
    let delete = |player: &str| format!("{low}?player_id={player}");
    assert_eq!(server.delete(&delete(BEN)).await.problem(409), "not_owner");
    assert_eq!(server.delete(&delete(ANN)).await.status, 204);
    assert_eq!(server.delete(&low).await.problem(404), "not_found");

    let path = ship_path("/maneuver");
    assert_eq!(server.get(&path).await.problem(404), "not_found");
    let begin =
        json!({"type": "circularize", "params": {"body": "Earth"}, "phase": "burn", "status": "active"});
    let begun = server.put(&path, begin).await.json(200);
    assert_eq!(
        (&begun["type"], &begun["params_json"]),
        (&json!("circularize"), &json!("{\"body\":\"Earth\"}"))
    );
    let changed = server.post(&format!("{path}/change"), json!({"phase": "coast"})).await.json(200);
    assert_eq!((&changed["phase"], &changed["status"]), (&json!("coast"), &json!("active")));
    assert_eq!(server.get(&path).await.json(200), changed);
    assert_eq!(server.delete(&path).await.status, 204);
    assert_eq!(server.delete(&path).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_player_registers_switches_ships_and_is_deleted() {
    let server = Server::open().await;
    let path = |what: &str| format!("/v1/galaxy/players/{ANN}{what}");
    let register = async || server.post(&path("/register"), json!({"name": "Ann"})).await;
    assert_eq!(register().await.status, 204);
    assert_eq!(server.put("/v1/galaxy/registration", json!({"open": false})).await.status, 204);
    assert_eq!(register().await.problem(409), "registration_closed");
    server.put("/v1/galaxy/registration", json!({"open": true})).await;
    let first = spawn(&server).await["ship_id"].clone();
    let second = server.post("/v1/galaxy/ships", json!({"player_id": ANN, "name": "Two"})).await.json(201);
    let fleet = server.get(&path("/fleet")).await.json(200);
    assert_eq!((fleet["ships"].as_array().unwrap().len(), &fleet["active"]), (2, &first));
    let switch = json!({"ship_id": second["ship_id"]});
    assert_eq!(server.put(&path("/active-ship"), switch).await.status, 204);
    let logged_in = server.request("POST", &path("/login")).send().await.json(200);
    assert_eq!(logged_in["active"], second["ship_id"]);
    let foreign = format!("/v1/galaxy/players/{BEN}/active-ship");
    assert_eq!(server.put(&foreign, json!({"ship_id": SHIP})).await.problem(409), "not_owner");
    assert_eq!(server.get(&path("/presence")).await.json(200), json!({"online": false}));
    let deleted = server.delete(&path("")).await.json(200);
    assert_eq!(deleted, json!({"ships": 2, "was_online": false}));
    assert_eq!(server.get(&ship_path("")).await.problem(404), "not_found");
    assert_eq!(register().await.problem(409), "player_deleted");
    let again = json!({"player_id": ANN, "name": "Three"});
    assert_eq!(server.post("/v1/galaxy/ships", again).await.problem(409), "player_deleted");
}

#[tokio::test]
async fn the_clock_is_set_and_a_reset_needs_the_lease() {
    let server = Server::open().await;
    let clock = server.get("/v1/galaxy/clock").await.json(200);
    assert_eq!(
        (&clock["tick"], &clock["time"], &clock["time_scale"]),
        (&json!(0), &Value::Null, &json!(1.0))
    );
    let set = json!({"tick_rate": 20, "time_scale": 0.1, "time_sync": false});
    let clock = server.post("/v1/galaxy/clock", set).await.json(200);
    assert_eq!(
        (&clock["tick_rate"], &clock["time_scale"], &clock["time_sync"]),
        (&json!(20.0), &json!(0.1), &json!(false))
    );
    for change in
        [json!({"time_scale": 0}), json!({"time_scale": 100.5}), json!({"tick_rate": -1, "paused": true})]
    {
        assert_eq!(server.post("/v1/galaxy/clock", change).await.problem(422), "invalid");
    }
    let call =
        async |what: &str| server.request("POST", &format!("/v1/galaxy/clock/{what}")).send().await.json(200);
    assert_eq!(call("pause").await["paused"], true);
    assert_eq!(call("resume").await["paused"], false);
    let run = engine(&server).await;
    spawn(&server).await;
    tick(&run).await;
    let reset = async || server.post("/v1/galaxy/reset", json!({"time": "2000-01-01T12:00:00Z"})).await;
    let refused = reset().await;
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.problem(409), "lease_held");
    run.release().await.unwrap();
    assert_eq!(reset().await.json(200), json!({"generation": 2}));
    assert_eq!(reset().await.json(200), json!({"generation": 3}), "the lease was released");
    let status = server.get("/v1/galaxy/status").await.json(200);
    assert_eq!(
        (&status["generation"], &status["phase"], &status["entities"]),
        (&json!(3), &json!("running"), &json!(0))
    );
    assert_eq!(
        (&status["clock"]["tick"], &status["clock"]["time"]),
        (&json!(0), &json!("2000-01-01T12:00:00Z"))
    );
    assert_eq!(server.get(&ship_path("")).await.problem(404), "not_found");
    assert_eq!(server.post("/v1/galaxy/reset", json!({"time": "noon"})).await.problem(422), "invalid");
}

#[tokio::test]
async fn a_service_writes_what_it_owns_or_was_granted() {
    let folder = scratch();
    let path = folder.join("tokens.toml");
    let token = |name: &str, role, service: Option<&str>| {
        let token = Token::new().unwrap();
        let service = service.map(str::to_owned);
        write_entry(&path, &Entry { name: name.into(), role, service, hash: token.hash() }).unwrap();
        token.reveal().to_owned()
    };
    let [physics, gateway, players, galaxy, stranger] =
        ["physics", "api-gateway", "players", "galaxy", "kitchen"]
            .map(|service| token(service, Role::Service, Some(service)));
    let ticks = token("tick-engine", Role::Admin, Some("tick-engine"));
    let all = token("all", Role::Service, None);
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let settings = Settings { tokens: Some(path.clone()), ..loopback() };
    let listening = listen(store.clone(), &settings).await.expect("a free port");
    let server = Server { listening, store, _folder: None };
    let call = async |token: &str, method: &str, path: &str, body: Value| {
        server.request(method, path).token(token).json(&body).send().await
    };
    let forbidden = |answer: crate::support::Answer, service: &str, owner: &str| {
        assert_eq!(answer.problem(403), "forbidden");
        let details = answer.json(403)["details"].clone();
        assert_eq!((&details["service"], &details["owner"]), (&json!(service), &json!(owner)), "{details}");
        assert!(details["family"].is_string(), "{details}");
    };
    let ship = json!({"ship_id": SHIP, "player_id": ANN, "name": "Roci"});
    forbidden(call(&gateway, "POST", "/v1/galaxy/ships", ship.clone()).await, "api-gateway", "physics");
    call(&physics, "POST", "/v1/galaxy/ships", ship).await.json(201);
    let name = json!({"player_id": ANN, "name": "Rocinante"});
    assert_eq!(call(&gateway, "PUT", &ship_path("/name"), name.clone()).await.status, 204, "a granted field");
    forbidden(call(&players, "PUT", &ship_path("/name"), name).await, "players", "physics");
    let controls = json!({"thrust_level": 1});
    forbidden(
        call(&gateway, "PUT", &ship_path("/controls"), controls.clone()).await,
        "api-gateway",
        "physics",
    );
    assert_eq!(call(&physics, "PUT", &ship_path("/controls"), controls.clone()).await.status, 204);
    let body = json!({"name": "Earth", "position": [0, 0, 0], "velocity": [0, 0, 0]});
    call(&galaxy, "POST", "/v1/galaxy/bodies", body).await.json(201);
    let login = format!("/v1/galaxy/players/{ANN}/active-ship");
    forbidden(call(&galaxy, "PUT", &login, json!({"ship_id": SHIP})).await, "galaxy", "players");
    assert_eq!(call(&players, "PUT", &login, json!({"ship_id": SHIP})).await.status, 204);
    let burn = json!({"type": "burn", "phase": "a", "status": "b"});
    forbidden(call(&physics, "PUT", &ship_path("/maneuver"), burn.clone()).await, "physics", "tick-engine");
    call(&ticks, "PUT", &ship_path("/maneuver"), burn).await.json(200);
    call(&ticks, "POST", "/v1/galaxy/clock/pause", json!({})).await.json(200);
    let gate = json!({"open": false});
    forbidden(call(&ticks, "PUT", "/v1/galaxy/registration", gate).await, "tick-engine", "api-gateway");
    call(&ticks, "POST", "/v1/galaxy/reset", json!({})).await.json(200);
    let unknown = call(&stranger, "PUT", &ship_path("/controls"), controls).await;
    assert_eq!(unknown.problem(403), "forbidden");
    assert!(unknown.text().contains("expected one of this game"), "{}", unknown.text());
    assert_eq!(
        server.request("GET", "/v1/galaxy/clock").token(&stranger).send().await.status,
        200,
        "it may read"
    );
    let free = json!({"player_id": ANN, "name": "Free"});
    call(&all, "POST", "/v1/galaxy/ships", free).await.json(201);
    assert_eq!(
        call(&all, "POST", "/v1/galaxy/clock/pause", json!({})).await.problem(403),
        "forbidden",
        "no admin"
    );
}

/// The fields that a schema names.
#[track_caller]
fn compare(document: &Value, name: &str, record: &Value) {
    let fields = document["components"]["schemas"][name]["properties"].as_object();
    let fields: BTreeSet<&String> = fields.unwrap_or_else(|| panic!("no schema {name}")).keys().collect();
    let written: BTreeSet<&String> = record.as_object().expect("a record").keys().collect();
    assert_eq!(fields, written, "{name}");
}

#[tokio::test]
async fn schemas_name_the_fields_that_are_written() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let run = engine(&server).await;
    compare(&document, "Ship", &spawn(&server).await);
    let structure = json!({"name": "Halo", "parent_body": "Earth"});
    compare(&document, "Station", &server.post("/v1/galaxy/stations", structure.clone()).await.json(201));
    compare(&document, "Jumpgate", &server.post("/v1/galaxy/jumpgates", structure).await.json(201));
    let body = json!({"name": "Earth", "position": [0, 0, 0], "velocity": [0, 0, 0]});
    compare(&document, "CelestialBody", &server.post("/v1/galaxy/bodies", body).await.json(201));
    let example = |name: &str| document["components"]["schemas"][name]["example"].clone();
    let rules = server.post(&ship_path("/rules"), example("RuleDraft")).await.json(201);
    compare(&document, "AutomationRule", &rules["rules"][0]);
    compare(
        &document,
        "Maneuver",
        &server.put(&ship_path("/maneuver"), example("ManeuverStart")).await.json(200),
    );
    tick(&run).await;
    compare(&document, "GalaxyClock", &server.get("/v1/galaxy/clock").await.json(200));
    compare(&document, "Fleet", &server.get(&format!("/v1/galaxy/players/{ANN}/fleet")).await.json(200));
    let sol = server.get("/v1/galaxy/systems/sol").await.json(200);
    compare(&document, "SystemState", &sol);
    compare(&document, "ShipState", &sol["ships"][SHIP]);
    compare(&document, "PlaceState", &sol["bodies"]["Earth"]);
}
