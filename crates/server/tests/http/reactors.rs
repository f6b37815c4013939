//! Every operation on reactors, over HTTP.

use crate::support::{FIELD, Server, TENANT, loopback};
use emberkeep_games::reactors::HitRules;
use emberkeep_server::Settings;
use serde_json::{Value, json};

/// A box that breaks at the second hit, and whose spot cools down for a minute.
fn a_box() -> Value {
    json!({"classification": 2001, "name": "box", "x": -315, "y": 88, "delay": 60_000,
        "data": {"stateInfo": {"0": [{"type": 0, "nextState": 1}], "1": []}}})
}

async fn create(server: &Server, body: Value) -> (String, Value) {
    let answer = server.post(&format!("{FIELD}/reactors"), body).await;
    let reactor = answer.json(201);
    (answer.header("location").expect("a new thing says where it is").to_owned(), reactor)
}

#[tokio::test]
async fn a_box_stands_breaks_and_its_spot_cools_down() {
    let server = Server::open().await;
    let (path, born) = create(&server, a_box()).await;
    assert_eq!(path, format!("/v1/tenants/{TENANT}/reactors/{}", born["id"]));
    assert_eq!(server.get(&path).await.json(200), born);
    let taken = server.post(&format!("{FIELD}/reactors"), a_box()).await;
    assert_eq!(
        (taken.problem(409), &taken.json(409)["details"]["reactor"]),
        ("spot_taken".into(), &born["id"])
    );

    let hit = server.post(&format!("{path}/hit"), json!({"characterId": 7})).await.json(200);
    assert_eq!(
        (&hit["triggered"], &hit["from"], &hit["reactor"]["state"]),
        (&json!(false), &json!(0), &json!(1))
    );
    let hit = server.post(&format!("{path}/hit"), json!({"characterId": 8, "skillId": 3})).await.json(200);
    assert_eq!(
        (&hit["triggered"], &hit["cooldownMs"], &hit["skillId"]),
        (&json!(true), &json!(60_000), &json!(3))
    );
    assert_eq!(server.get(&path).await.problem(404), "not_found");

    let cooling = server.post(&format!("{FIELD}/reactors"), a_box()).await;
    assert_eq!(cooling.problem(423), "on_cooldown");
    let wait: u64 = cooling.header("retry-after").expect("a time to come back").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let spot = format!("{FIELD}/reactor-cooldowns/2001/-315/88");
    assert_eq!(server.get(&spot).await.json(200)["cooling"], true);
    assert_eq!(server.delete(&spot).await.json(200), json!({"cleared": 1}));
    assert_eq!(server.put(&spot, json!({"durationMs": 5_000})).await.status, 204);
    assert_eq!(server.delete(&format!("{FIELD}/reactor-cooldowns")).await.json(200), json!({"cleared": 1}));
    create(&server, a_box()).await;
}

#[tokio::test]
async fn the_settings_say_what_a_hit_does() {
    let hit_rules = HitRules { last_state_ends: true, ..HitRules::default() };
    let server = Server::with(Settings { hit_rules, ..loopback() }).await;
    let (path, _) = create(&server, a_box()).await;
    let hit = server.post(&format!("{path}/hit"), json!({"characterId": 7})).await.json(200);
    assert_eq!(hit["triggered"], true, "the first hit leads to the last state");
}

#[tokio::test]
async fn an_update_needs_what_was_seen() {
    let server = Server::open().await;
    let id = server.post(&format!("/v1/tenants/{TENANT}/reactor-ids"), json!({})).await;
    let mut body = a_box();
    body["id"] = id.json(201)["id"].clone();
    let (path, born) = create(&server, body.clone()).await;
    assert_eq!(Some(path.as_str()), id.header("location"));
    assert_eq!(server.post(&format!("{FIELD}/reactors"), body).await.problem(409), "spot_taken");

    let mut next = born.clone();
    next["name"] = json!("crate");
    next["touches"] = json!({"7": 1});
    let change = json!({"seen": born, "next": next});
    let updated = server.put(&path, change.clone()).await.json(200);
    assert_eq!((&updated["name"], &updated["touches"]), (&json!("crate"), &json!({"7": 1})));
    let late = server.put(&path, change).await;
    assert_eq!((late.problem(409), &late.json(409)["details"]["current"]), ("changed".into(), &updated));
    let mut other = updated.clone();
    other["id"] = json!(5);
    assert_eq!(server.put(&path, json!({"seen": other, "next": other})).await.problem(422), "invalid");

    let destroyed = server.delete(&path).await.json(200);
    assert_eq!((&destroyed["reactor"], &destroyed["cooldownMs"]), (&updated, &json!(60_000)));
    assert_eq!(server.delete(&path).await.problem(404), "not_found");
}

#[tokio::test]
async fn reactors_are_listed_by_field_by_name_and_all() {
    let server = Server::open().await;
    for x in 0..12 {
        let name = if x % 2 == 0 { "box" } else { "crate" };
        create(&server, json!({"classification": 2001, "name": name, "x": x, "y": 0})).await;
    }
    let count = |list: Value| list["reactors"].as_array().unwrap().len();
    assert_eq!(count(server.get(&format!("{FIELD}/reactors")).await.json(200)), 12);
    assert_eq!(count(server.get(&format!("{FIELD}/reactors?name=crate")).await.json(200)), 6);
    let (mut found, mut cursor) = (0, String::new());
    loop {
        let page = server.get(&format!("/v1/tenants/{TENANT}/reactors?limit=5{cursor}")).await.json(200);
        found += count(page.clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, 12);
    let other = server.get("/v1/tenants/00000000-0000-0000-0000-000000000001/reactors").await.json(200);
    assert_eq!(other["reactors"], json!([]), "another tenant's are not there");

    let destroyed = server.delete(&format!("{FIELD}/reactors")).await.json(200);
    assert_eq!(destroyed["destroyed"].as_array().unwrap().len(), 12);
}

#[tokio::test]
async fn a_tenant_is_swept_and_torn_down() {
    let server = Server::open().await;
    create(&server, a_box()).await;
    let mut calls = 0;
    while server.post("/v1/reactors/sweep", json!({"turns": 1_000})).await.json(200)["over"] != true {
        calls += 1;
        assert!(calls < 10, "a sweep comes to its end");
    }
    let torn = server.delete(&format!("/v1/tenants/{TENANT}/reactors")).await.json(200);
    assert_eq!(torn, json!({"reactors": 1, "cooldowns": 0, "discarded": [], "corrupt": []}));
    create(&server, a_box()).await;
    assert_eq!(server.delete("/v1/reactors").await.json(200)["reactors"], 1);
}
