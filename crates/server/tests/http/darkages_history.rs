//! DarkAges over HTTP: what is read from history, and written there.

use crate::darkages::{log_in, login};
use crate::support::{Server, loopback};
use emberkeep_games::darkages::{COMBAT_LOG, Shards};
use emberkeep_history::{Deferred, History};
use emberkeep_hot::command::Write;
use emberkeep_schema::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Deliveries take milliseconds; a busy machine may take longer.
const DELIVERED_WITHIN: Duration = Duration::from_secs(20);

async fn city() -> Server {
    Server::with_history(loopback()).await
}

/// Reads until the answer is as expected.
async fn until(server: &Server, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = server.get(path).await.json(200);
        if expected(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < DELIVERED_WITHIN, "{path}: {answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn rows(page: &Value) -> &Vec<Value> {
    page["rows"].as_array().expect("rows")
}

async fn hit(server: &Server, attacker: i64, target: i64, damage: i32) -> Value {
    let hit = json!({"attacker_id": attacker, "damage": damage, "ability_name": "fireball"});
    server.post(&format!("/v1/darkages/sessions/{target}/damage"), hit).await.json(200)
}

#[tokio::test]
async fn a_fight_is_in_history_from_every_side() {
    let server = city().await;
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    for _ in 0..3 {
        hit(&server, 1, 2, 40).await;
    }
    assert_eq!(server.delete("/v1/darkages/sessions/2").await.status, 204);
    for path in
        ["combat-events", "attackers/1/combat-events", "targets/2/combat-events", "zones/42/combat-events"]
    {
        let page = until(&server, &format!("/v1/darkages/{path}"), |page| rows(page).len() == 3).await;
        let damage: i64 = rows(&page).iter().map(|event| event["damage"].as_i64().unwrap()).sum();
        assert_eq!((damage, &page["next"], &page["unreadable"]), (100, &Value::Null, &json!([])), "{path}");
    }
    let none = server.get("/v1/darkages/attackers/2/combat-events").await.json(200);
    assert_eq!(none["rows"], json!([]));
    let event = rows(&server.get("/v1/darkages/combat-events?limit=1").await.json(200))[0].clone();
    assert_eq!(event["hit_type"], "normal");
    assert_eq!((&event["zone_id"], &event["position_x"]), (&json!(42), &json!(1.5)));
    let kills = until(&server, "/v1/darkages/kills", |page| rows(page).len() == 1).await;
    assert_eq!(kills["rows"][0]["attacker_id"], 1);
    let stats = until(&server, "/v1/darkages/players/1/stats", |stats| stats["total_kills"] == 1).await;
    assert_eq!(stats["total_damage_dealt"], 100);
    let stats = until(&server, "/v1/darkages/players/2/stats", |stats| stats["total_deaths"] == 1).await;
    assert_eq!(stats["total_damage_taken"], 100);
    let played = until(&server, "/v1/darkages/players/2/play-sessions", |page| rows(page).len() == 1).await;
    let session = &played["rows"][0];
    assert_eq!(
        (&session["deaths"], &session["damage_taken"], &session["zone_id"]),
        (&json!(1), &json!(100), &json!(42))
    );
    let audit = until(&server, "/v1/darkages/audit-log", |page| rows(page).len() == 3).await;
    let types: Vec<&str> = rows(&audit).iter().map(|entry| entry["event_type"].as_str().unwrap()).collect();
    assert_eq!(types.iter().filter(|word| **word == "login").count(), 2, "{types:?}");
    let logouts = server.get("/v1/darkages/audit-log?event_type=logout&severity=info").await.json(200);
    assert_eq!(rows(&logouts).len(), 1);
}

#[tokio::test]
async fn a_long_list_is_read_by_pages_in_both_directions() {
    let server = city().await;
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    for _ in 0..7 {
        hit(&server, 1, 2, 1).await;
    }
    let all = until(&server, "/v1/darkages/combat-events", |page| rows(page).len() == 7).await;
    for order in ["newest_first", "oldest_first"] {
        let path = format!("/v1/darkages/combat-events?limit=3&order={order}");
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{path}{cursor}")).await.json(200);
            found.extend(rows(&page).clone());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let times: Vec<i64> = found.iter().map(|event| event["timestamp"].as_i64().unwrap()).collect();
        let is_newest_first = order == "newest_first";
        assert!(
            times.is_sorted_by(|one, next| if is_newest_first { one >= next } else { one <= next }),
            "{times:?}"
        );
        assert_eq!(found.len(), 7, "{order}");
        let other = server.get(&format!("/v1/darkages/kills?{}", cursor.trim_start_matches('&'))).await;
        assert_eq!(other.problem(422), "invalid_cursor", "a cursor of another list");
    }
    let first = all["rows"][6]["timestamp"].as_i64().unwrap();
    let before = server.get(&format!("/v1/darkages/combat-events?from=0&to={first}")).await;
    assert_eq!(before.problem(422), "too_large", "more days than a range may have");
    let day = first - 86_400_000;
    let before = server.get(&format!("/v1/darkages/combat-events?from={day}&to={first}")).await.json(200);
    assert_eq!(before["rows"], json!([]), "`to` is exclusive");
    let after = server.get(&format!("/v1/darkages/combat-events?from={first}")).await.json(200);
    assert_eq!(rows(&after).len(), 7, "`from` is inclusive");
    let long_ago = "/v1/darkages/combat-events?from=2024-01-01T10:00:00Z&to=2024-01-01T11:00:00%2B00:00";
    assert_eq!(server.get(long_ago).await.json(200)["rows"], json!([]));
    for wrong in ["limit=0", "limit=1001", "from=yesterday", "from=5&to=4", "cursor=x", "order=up", "who=1"] {
        let refused = server.get(&format!("/v1/darkages/combat-events?{wrong}")).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }
}

fn event(number: u32, at: i64) -> Value {
    json!({"timestamp": at, "event_id": format!("0197a3c8-7b7e-7cc3-9d3e-{number:012x}"), "attacker_id": 1,
        "target_id": 2, "target_is_npc": true, "damage": 10, "is_kill": number == 0, "zone_id": 7, "position_x": 0,
        "position_y": 0, "position_z": 0, "server_instance": "zone-7"})
}

#[tokio::test]
async fn a_thousand_events_are_recorded_once() {
    let server = city().await;
    let now = server.store.now().await.unwrap();
    let events: Vec<Value> = (0..1_000).map(|number| event(number, now - 1_000)).collect();
    for (recorded, repeated) in [(1_000, 0), (0, 1_000)] {
        let answer = server.post("/v1/darkages/combat-events", json!({"events": events})).await.json(200);
        assert_eq!(answer, json!({"recorded": recorded, "repeated": repeated, "durability": "everysec"}));
    }
    let range = format!("from={}&to={}&limit=1000", now - 2_000, now);
    let path = format!("/v1/darkages/zones/7/combat-events?{range}");
    until(&server, &path, |page| rows(page).len() == 1_000).await;
    let stats =
        until(&server, "/v1/darkages/players/1/stats", |stats| stats["total_damage_dealt"] == 10_000).await;
    assert_eq!(stats["total_kills"], 1);
    let creature = server.get("/v1/darkages/players/2/stats").await.json(200);
    assert_eq!((&creature["total_damage_taken"], &creature["last_updated"]), (&json!(0), &Value::Null));
    let too_many: Vec<Value> = (0..1_001).map(|number| event(number, now)).collect();
    let refused = server.post("/v1/darkages/combat-events", json!({"events": too_many})).await;
    assert_eq!(refused.problem(422), "invalid");
    let delta = json!({"event_id": "0197a3c8-7b7e-7cc3-9d3e-2f6f3f1f2a12", "timestamp": now, "wins": 1, "playtime_ms": 120_000});
    for repeated in [0, 1] {
        let answer = server.post("/v1/darkages/players/1/stats", delta.clone()).await.json(200);
        assert_eq!(answer["repeated"], repeated);
    }
    let stats = until(&server, "/v1/darkages/players/1/stats", |stats| stats["total_wins"] == 1).await;
    assert_eq!(stats["total_playtime_minutes"], 2);
    // Recorded events are on the boards, too, each once.
    for (category, score) in [("damage", 10_000), ("kills", 1), ("wins", 1), ("playtime", 120_000)] {
        let path = format!("/v1/darkages/boards/{category}?period=all-time");
        until(&server, &path, |board| board["rows"][0]["score"] == score).await;
    }
    let (begun, delivered) = (Instant::now(), "emberkeep_history_lag_entries{log=\"spool\"} 0");
    while !server.get("/metrics").await.text().contains(delivered) {
        assert!(begun.elapsed() < DELIVERED_WITHIN, "the spool is never empty");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn names_are_registered_once_and_found_in_any_case() {
    let server = city().await;
    let register = async |player: i64, name: &str, email: &str| {
        let body = json!({"player_id": player, "username": name, "email": email});
        server.post("/v1/darkages/profiles", body).await
    };
    let created = register(1, "Ann", "ann@example.org").await;
    assert_eq!(created.header("location"), Some("/v1/darkages/profiles/1"));
    let profile = created.json(201);
    assert_eq!(
        (&profile["level"], &profile["is_banned"], &profile["settings"]),
        (&json!(1), &json!(false), &Value::Null)
    );
    assert_eq!(register(2, "ANN", "other@example.org").await.problem(409), "taken");
    assert_eq!(register(2, "Ben", "Ann@Example.org").await.problem(409), "taken");
    assert_eq!(register(1, "Anna", "anna@example.org").await.problem(409), "already_registered");
    assert_eq!(register(2, "", "ben@example.org").await.problem(422), "invalid");
    for path in ["1", "by-username/aNN", "by-email/ANN@example.org"] {
        assert_eq!(server.get(&format!("/v1/darkages/profiles/{path}")).await.json(200), profile, "{path}");
    }
    let change = json!({"level": 2, "experience": 150, "preferred_class": 3, "settings": {"volume": 7}});
    let changed = server.post("/v1/darkages/profiles/1/change", change).await.json(200);
    assert_eq!((&changed["level"], &changed["settings"]), (&json!(2), &json!({"volume": 7})));
    let removed = json!({"preferred_class": null, "settings": null});
    let changed = server.post("/v1/darkages/profiles/1/change", removed).await.json(200);
    let expected = (&json!(2), &Value::Null, &Value::Null);
    assert_eq!((&changed["level"], &changed["preferred_class"], &changed["settings"]), expected);
    let login = json!({"client_version": "1.4.2", "ip": "192.0.2.7"});
    let known = server.post("/v1/darkages/profiles/1/logins", login).await.json(200);
    assert_eq!(
        (&known["client_versions"], &known["last_known_ip"]),
        (&json!(["1.4.2"]), &json!("192.0.2.7"))
    );
    let renamed = server.put("/v1/darkages/profiles/1/username", json!({"username": "Anna"})).await.json(200);
    assert_eq!(renamed["username"], "Anna");
    assert_eq!(register(2, "ann", "ben@example.org").await.status, 201, "the old name is free");
    let moved = server.put("/v1/darkages/profiles/1/email", json!({"email": "ben@example.org"})).await;
    assert_eq!(moved.problem(409), "taken");
    let missing = server.get("/v1/darkages/profiles/99").await;
    assert_eq!(missing.problem(404), "not_registered");
}

#[tokio::test]
async fn the_board_of_a_day_is_read_from_history_by_pages() {
    let server = city().await;
    for player in 1..=3 {
        log_in(&server, player, 42).await;
    }
    for (attacker, damage) in [(1, 30), (2, 20)] {
        hit(&server, attacker, 3, damage).await;
    }
    let day = Timestamp(server.store.now().await.unwrap()).day();
    let path = format!("/v1/darkages/boards/damage/days/{day}");
    let whole = until(&server, &path, |page| rows(page).len() == 2).await;
    let scores = |page: &Value| -> Vec<(Value, Value)> {
        rows(page).iter().map(|row| (row["player_id"].clone(), row["score"].clone())).collect()
    };
    assert_eq!(scores(&whole), [(json!(1), json!(30)), (json!(2), json!(20))]);
    let first = server.get(&format!("{path}?limit=1")).await.json(200);
    let next = first["next"].as_str().expect("a second page");
    let second = server.get(&format!("{path}?limit=1&cursor={next}")).await.json(200);
    assert_eq!([scores(&first), scores(&second)].concat(), scores(&whole));
    let before = server.get("/v1/darkages/boards/damage/days/2020-01-31").await.json(200);
    assert_eq!((&before["rows"], &before["next"]), (&json!([]), &Value::Null));
    for path in ["damage/days/2020-02-30", "damage/days/today", "luck/days/2020-01-31"] {
        let refused = server.get(&format!("/v1/darkages/boards/{path}")).await;
        assert!((400..500).contains(&refused.status), "{path}: {}", refused.status);
    }
    let metrics = server.get("/metrics").await.text();
    let applied =
        metrics.lines().filter_map(|line| line.strip_prefix("emberkeep_log_feed_applied_total{log="));
    let counts: Vec<f64> = applied.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect();
    assert_eq!(counts.iter().sum::<f64>(), 2.0, "{metrics}");
}

#[tokio::test]
async fn a_ban_is_in_the_profile_and_in_the_audit_log() {
    let server = city().await;
    let body = json!({"player_id": 1, "username": "Ann", "email": "ann@example.org"});
    server.post("/v1/darkages/profiles", body).await.json(201);
    let expires = server.store.now().await.unwrap() + 86_400_000;
    let ban = json!({"reason": "speed hack", "expires": expires});
    let banned = server.put("/v1/darkages/profiles/1/ban", ban.clone()).await.json(200);
    let expected = (&json!(true), &json!("speed hack"), &json!(expires));
    assert_eq!((&banned["is_banned"], &banned["ban_reason"], &banned["ban_expires"]), expected);
    assert_eq!(server.get("/v1/darkages/profiles/1/ban").await.json(200), ban);
    let entries = server.get("/v1/darkages/audit-log?event_type=ban").await.json(200);
    assert_eq!(entries["rows"][0]["details"], ban);
    let past = server.put("/v1/darkages/profiles/1/ban", json!({"reason": "x", "expires": 5})).await;
    assert_eq!(past.problem(422), "invalid");
    let free = server.delete("/v1/darkages/profiles/1/ban").await.json(200);
    assert_eq!(server.get("/v1/darkages/profiles/1/ban").await.problem(404), "not_found");
    assert_eq!(server.get("/v1/darkages/profiles/77/ban").await.problem(404), "not_registered");
    assert_eq!((&free["is_banned"], &free["ban_reason"]), (&json!(false), &Value::Null));
    assert_eq!(server.put("/v1/darkages/profiles/2/ban", ban).await.problem(404), "not_registered");
    let noticed = json!({"event_type": "suspicious", "severity": "critical", "player_id": 1, "details": [1, {"a": null}]});
    assert_eq!(server.post("/v1/darkages/audit-log", noticed).await.status, 204);
    let entries = server.get("/v1/darkages/audit-log?severity=critical").await.json(200);
    assert_eq!(entries["rows"][0]["details"], json!([1, {"a": null}]));
}

/// A ban ends the session and keeps the player out, and is in the audit log once although it was sent twice.
#[tokio::test]
async fn a_banned_player_is_not_in_the_game() {
    let server = city().await;
    for player in [1, 2] {
        let (name, email) = (format!("Ann{player}"), format!("ann{player}@example.org"));
        let body = json!({"player_id": player, "username": name, "email": email});
        server.post("/v1/darkages/profiles", body).await.json(201);
    }
    let session = log_in(&server, 1, 42).await;
    let profile = server.get("/v1/darkages/profiles/1").await.json(200);
    let noted = (&profile["last_login"], &profile["last_known_ip"], &profile["client_versions"]);
    assert_eq!(noted, (&session["login_time"], &json!("192.0.2.7"), &json!(["1.4.2"])));
    let ban = json!({"reason": "speed hack", "event_id": "0197a3c8-7b7e-7cc3-9d3e-000000000001",
        "timestamp": server.store.now().await.unwrap()});
    for _ in 0..2 {
        let banned = server.put("/v1/darkages/profiles/1/ban", ban.clone()).await.json(200);
        assert_eq!(banned["is_banned"], true);
        assert_eq!(server.get("/v1/darkages/sessions/1").await.problem(404), "not_logged_in");
    }
    let entries = server.get("/v1/darkages/audit-log?event_type=ban&severity=critical").await.json(200);
    assert_eq!((rows(&entries).len(), &entries["rows"][0]["event_id"]), (1, &ban["event_id"]));
    let kicks = until(&server, "/v1/darkages/audit-log?event_type=kick", |page| rows(page).len() == 1).await;
    assert_eq!(kicks["rows"][0]["player_id"], 1);
    let refused = server.post("/v1/darkages/sessions", login(1, 42)).await;
    assert_eq!(refused.problem(403), "player_banned");
    assert!(refused.text().contains("speed hack"), "{}", refused.text());
    assert_eq!(server.get("/v1/darkages/sessions/1").await.problem(404), "not_logged_in");
    // Another entity, if the ban names it.
    let mut other = login(2, 42);
    other["entity_id"] = json!(70);
    server.post("/v1/darkages/sessions", other).await.json(201);
    let named = json!({"reason": "speed hack", "entity_id": 70});
    server.put("/v1/darkages/profiles/2/ban", named).await.json(200);
    assert_eq!(server.get("/v1/darkages/sessions/70").await.problem(404), "not_logged_in");
    let outside = json!({"reason": "x", "timestamp": -1});
    assert_eq!(server.put("/v1/darkages/profiles/2/ban", outside).await.problem(422), "invalid");
    server.delete("/v1/darkages/profiles/1/ban").await.json(200);
    log_in(&server, 1, 42).await;
}

#[tokio::test]
async fn a_rename_of_a_profile_is_on_the_boards() {
    let server = city().await;
    let body = json!({"player_id": 1, "username": "Ann", "email": "ann@example.org"});
    server.post("/v1/darkages/profiles", body).await.json(201);
    for player in [1, 2] {
        log_in(&server, player, 42).await;
    }
    // Another player's entity has the number of the player who is renamed next.
    let mut other = login(5, 42);
    other["entity_id"] = json!(9);
    server.post("/v1/darkages/sessions", other).await.json(201);
    for attacker in [1, 9] {
        hit(&server, attacker, 2, 30).await;
    }
    let path = "/v1/darkages/boards/damage";
    let names = |board: &Value| -> Vec<Value> {
        let rows = board["rows"].as_array().expect("rows");
        rows.iter().map(|row| row["player_name"].clone()).collect()
    };
    until(&server, path, |board| names(board) == ["P1", "P5"]).await;
    server.put("/v1/darkages/profiles/1/username", json!({"username": "Anna"})).await.json(200);
    assert_eq!(names(&server.get(path).await.json(200)), ["Anna", "P5"]);
    hit(&server, 1, 2, 10).await;
    until(&server, path, |board| board["rows"][0]["score"] == 40).await;
    let body = json!({"player_id": 9, "username": "Ben", "email": "ben@example.org"});
    server.post("/v1/darkages/profiles", body).await.json(201);
    server.put("/v1/darkages/profiles/9/username", json!({"username": "Benn"})).await.json(200);
    assert_eq!(names(&server.get(path).await.json(200)), ["Anna", "P5"]);
}

#[tokio::test]
async fn ticks_of_several_servers_are_merged_by_hour() {
    let server = city().await;
    let now = server.store.now().await.unwrap();
    let hour = now - now % 3_600_000;
    let report = async |name: &str, ticks: &[(i32, f32)]| {
        let sample = |(players, ms): &(i32, f32)| json!({"at": hour + 5, "player_count": players, "tick_time_ms": ms, "packets_sent": 10});
        let samples: Vec<Value> = ticks.iter().map(sample).collect();
        let body = json!({"server_instance": name, "samples": samples});
        server.post("/v1/darkages/zones/42/metrics", body).await
    };
    assert_eq!(report("a", &[(10, 5.0), (20, 7.5)]).await.status, 204);
    assert_eq!(report("b", &[(30, 12.5)]).await.status, 204);
    assert_eq!(report("a", &[(40, 10.0)]).await.status, 204);
    let page = server.get("/v1/darkages/zones/42/metrics").await.json(200);
    let row = &page["rows"][0];
    assert_eq!((rows(&page).len(), &row["hour_bucket"]), (1, &json!(hour)));
    assert_eq!(
        (&row["avg_player_count"], &row["max_player_count"], &row["min_player_count"]),
        (&json!(25), &json!(40), &json!(10))
    );
    assert_eq!((&row["avg_tick_time_ms"], &row["max_tick_time_ms"]), (&json!(8.75), &json!(12.5)));
    assert_eq!((&row["total_packets_sent"], &row["server_instance"]), (&json!(40), &json!("a")));
    assert_eq!(report("a", &[(1, -1.0)]).await.problem(422), "invalid");
    assert_eq!(report("", &[(1, 1.0)]).await.problem(422), "invalid");
}

#[tokio::test]
async fn a_server_without_history_says_so() {
    let server = Server::open().await;
    for path in ["combat-events", "kills", "players/1/stats", "profiles/1", "audit-log", "zones/1/metrics"] {
        let refused = server.get(&format!("/v1/darkages/{path}")).await;
        assert_eq!(refused.problem(503), "history_not_configured", "{path}");
    }
    let refused = server.post("/v1/darkages/combat-events", json!({"events": []})).await;
    assert_eq!(refused.problem(503), "recorder_not_configured");
    log_in(&server, 1, 42).await;
}

#[tokio::test]
async fn history_that_is_away_is_an_error_that_names_no_place() {
    let away = Deferred::new("cql://10.0.0.9/k", "connection refused by 10.0.0.9");
    let server = Server::on_history(History::new(Arc::new(away))).await;
    let refused = server.get("/v1/darkages/combat-events").await;
    assert_eq!(refused.problem(503), "history_unavailable");
    assert!(
        refused.header("retry-after").is_some() && !refused.text().contains("10.0.0.9"),
        "{}",
        refused.text()
    );
    // What happens in hot state waits for it.
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    assert_eq!(hit(&server, 1, 2, 5).await["actual"], 5);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("emberkeep_darkages_logins_unchecked_total 2"), "{metrics}");
}

/// The values of a series, by log.
async fn series(server: &Server, name: &str) -> Vec<(String, f64)> {
    let metrics = server.get("/metrics").await.text();
    let of_log = |line: &str| {
        let (log, value) = line.strip_prefix(name)?.strip_prefix("{log=\"")?.split_once("\"} ")?;
        Some((log.to_owned(), value.parse().ok()?))
    };
    metrics.lines().filter_map(of_log).collect()
}

async fn until_series(server: &Server, name: &str, log: &str, expected: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    loop {
        let found = series(server, name).await;
        if found.iter().any(|(of, value)| of == log && expected(*value)) {
            return;
        }
        assert!(begun.elapsed() < DELIVERED_WITHIN, "{name} of {log}: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn metrics_show_how_long_entries_wait() {
    let server = Server::on_history(History::new(Arc::new(Deferred::new("a cluster", "it is away")))).await;
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    hit(&server, 1, 2, 5).await;
    let waiting = series(&server, "emberkeep_history_lag_entries").await;
    let combat =
        waiting.iter().map(|(log, _)| log).find(|log| log.contains("combat")).expect("a log of hits");
    until_series(&server, "emberkeep_history_oldest_entry_seconds", combat, |seconds| seconds > 0.0).await;
    until_series(&server, "emberkeep_history_lag_entries", combat, |entries| entries == 1.0).await;
    until_series(&server, "emberkeep_history_errors_total", combat, |errors| errors > 0.0).await;
}

#[tokio::test]
async fn metrics_show_dead_letters() {
    let server = city().await;
    let waiting = series(&server, "emberkeep_history_dead_letters_total").await;
    let combat =
        waiting.iter().map(|(log, _)| log).find(|log| log.contains("combat")).expect("a log of hits");
    let shard = Shards::default().partitions(server.store.key_layout())[0];
    let scope = server.store.scope(shard);
    let foreign = scope.transact(|tx| {
        tx.raw_write(tx.raw_name(&COMBAT_LOG.key()), Write::RPush(vec!["not an entry".into()]))
    });
    foreign.await.expect("written");
    // An entry behind it wakes the consumer.
    log_in(&server, 1, 42).await;
    log_in(&server, 2, 42).await;
    hit(&server, 1, 2, 5).await;
    until_series(&server, "emberkeep_history_dead_letters_total", combat, |letters| letters == 1.0).await;
    until_series(&server, "emberkeep_history_oldest_entry_seconds", combat, |seconds| seconds == 0.0).await;
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    let server = city().await;
    let body = json!({"player_id": 1, "username": "Ann", "email": "ann@example.org"});
    server.post("/v1/darkages/profiles", body).await.json(201);
    for address in ["192.0.2.256", "192.0.2", "::g", "example.org", ""] {
        let login = json!({"client_version": "1.4.2", "ip": address});
        let refused = server.post("/v1/darkages/profiles/1/logins", login).await;
        assert_eq!(refused.problem(422), "invalid", "{address}");
        let entry =
            json!({"event_type": "suspicious", "severity": "info", "player_ip": address, "details": {}});
        let refused = server.post("/v1/darkages/audit-log", entry).await;
        assert_eq!(refused.problem(422), "invalid", "{address}");
    }
    let profile = server.get("/v1/darkages/profiles/1").await.json(200);
    assert_eq!(profile["last_known_ip"], Value::Null, "nothing is half-written");
    assert_eq!(rows(&server.get("/v1/darkages/audit-log").await.json(200)).len(), 0);
}
