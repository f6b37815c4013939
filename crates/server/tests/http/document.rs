//! The document says what the server does: every route, its role, its schemas.

use crate::support::{FIELD, Server, examples, loopback};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[tokio::test]
async fn every_operation_has_a_name_of_its_own_and_is_described() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    assert_eq!(document["openapi"], "3.1.0");
    let groups: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut names = BTreeSet::new();
    for example in examples(&document) {
        let operation = example.operation;
        let name = operation["operationId"].as_str().expect("an operation id");
        assert!(names.insert(name), "{name} is also {example}");
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with(['.', ':'])), "{example}");
        assert!(groups.contains(&&operation["tags"][0]), "{example}");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{example}: {parameter}");
            let schema = &parameter["schema"];
            let bounded = schema["minimum"].is_number() && schema["maximum"].is_number();
            assert!(bounded || !schema["type"].to_string().contains("integer"), "{example}: {parameter}");
        }
    }
    assert!(names.len() > 40, "{}", names.len());
}

#[tokio::test]
async fn every_route_is_there_with_the_methods_of_the_document_and_no_others() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for example in examples(&document) {
        let known = methods.entry(example.path.clone()).or_default();
        known.insert(example.method.clone());
        if example.method == "GET" {
            known.insert("HEAD".into());
        }
    }
    for (path, documented) in methods {
        let refused = server.request("PATCH", &path).send().await;
        assert_eq!(refused.problem(405), "method_not_allowed", "{path}");
        let allowed = refused.header("allow").expect("what is allowed").split(',').map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), documented, "{path}");
    }
}

#[tokio::test]
async fn every_example_is_understood_and_answered_as_documented() {
    let server = Server::with_history(loopback()).await;
    let document = server.get("/openapi.json").await.json(200);
    for example in examples(&document) {
        let answer = example.send(&server).await;
        let documented = &example.operation["responses"][answer.status.to_string()];
        assert!(documented.is_object(), "{example}: {} {}", answer.status, answer.text());
        assert!(!matches!(answer.status, 400 | 413 | 415 | 422), "{example}: {}", answer.text());
        assert!(answer.status < 500, "{example}: {}", answer.text());
    }
}

/// Every reference in a document.
fn references<'d>(value: &'d Value, found: &mut BTreeSet<&'d str>) {
    if let Some(reference) = value["$ref"].as_str() {
        found.insert(reference);
    }
    let fields = value.as_object().into_iter().flat_map(|fields| fields.values());
    fields.chain(value.as_array().into_iter().flatten()).for_each(|inner| references(inner, found));
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 40, "{}", found.len());
    for reference in found {
        let place = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        assert!(place.is_some(), "{reference} is not in the document");
    }
}

/// The fields that a schema names.
fn fields<'d>(document: &'d Value, name: &str) -> BTreeSet<&'d str> {
    let properties = document["components"]["schemas"][name]["properties"].as_object();
    properties.unwrap_or_else(|| panic!("no schema {name}")).keys().map(String::as_str).collect()
}

#[track_caller]
fn compare(document: &Value, name: &str, record: &Value) {
    let written: BTreeSet<&str> = record.as_object().expect("a record").keys().map(String::as_str).collect();
    assert_eq!(fields(document, name), written, "{name}");
}

#[tokio::test]
async fn schemas_of_records_name_the_fields_that_are_written() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let spawned = server.post(&format!("{FIELD}/monsters"), json!({"monsterId": 1, "maxHp": 9})).await;
    let path = spawned.header("location").unwrap();
    server.post(&format!("{path}/damage"), json!({"characterId": 7, "amount": 1})).await.json(200);
    let effect = json!({"sourceType": "MONSTER_SKILL", "statuses": {"POISON": 1}, "durationMs": 1_000});
    server.post(&format!("{path}/effects"), effect).await.json(201);
    let monster = server.get(path).await.json(200);
    compare(&document, "Monster", &monster);
    compare(&document, "DamageEntry", &monster["damageEntries"][0]);
    compare(&document, "StatusEffect", &monster["statusEffects"][0]);
    let timer = server.put(&format!("{path}/drop-timer"), json!({"dropPeriodMs": 1_000})).await.json(200);
    compare(&document, "DropTimer", &timer);
    compare(&document, "FieldFields", &timer["field"]);

    let event = json!({"nextState": 1, "reactorItem": {"itemId": 1, "quantity": 2}, "activeSkills": [1]});
    let reactor = json!({"classification": 1, "x": 0, "y": 0,
        "data": {"stateInfo": {"0": [event], "-1": []}, "timeoutInfo": {"0": 5}}});
    let reactor = server.post(&format!("{FIELD}/reactors"), reactor).await.json(201);
    compare(&document, "Reactor", &reactor);
    let classification = &document["components"]["schemas"]["NewReactor"]["properties"]["classification"];
    assert_eq!(classification["minimum"], 1, "0 is refused");
    compare(&document, "TenantFields", &reactor["tenant"]);
    compare(&document, "ReactorData", &reactor["data"]);
    compare(&document, "Offset", &reactor["data"]["tl"]);
    compare(&document, "Event", &reactor["data"]["stateInfo"]["0"][0]);
    compare(&document, "ReactorItem", &reactor["data"]["stateInfo"]["0"][0]["reactorItem"]);
}

#[tokio::test]
async fn schemas_of_rooms_name_the_fields_that_are_written() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let room = server.request("POST", "/room").send().await.json(201);
    let path = format!("/v1/rooms/{}", room["room_code"].as_str().unwrap());
    let lead = async |method: &str, what: &str, body: &Value| {
        let key = room["master_key"].as_str().unwrap();
        server.request(method, &format!("{path}{what}")).header("X-Master-Key", key).json(body).send().await
    };
    let example = &document["components"]["schemas"]["RoomSetup"]["example"];
    assert_eq!(lead("POST", "/setup", example).await.status, 204);
    let joined =
        server.post(&format!("{path}/join"), json!({"device_id": "one", "protocol_version": 1})).await;
    compare(&document, "Joined", &joined.json(200));
    let mut tokens = vec![joined.json(200)["reconnect_token"].as_str().unwrap().to_owned()];
    let two = server.post(&format!("{path}/join"), json!({"device_id": "two", "protocol_version": 1})).await;
    tokens.push(two.json(200)["reconnect_token"].as_str().unwrap().to_owned());
    let act = async |what: &str, token: &str, body: Value| {
        let request = server.request("POST", &format!("{path}{what}")).header("X-Reconnect-Token", token);
        request.json(&body).send().await
    };
    for ((device, player), token) in [("one", "ann"), ("two", "ben")].into_iter().zip(&tokens) {
        act("/claims", token, json!({"device_id": device, "player_id": player})).await;
    }
    lead("POST", "/start", &json!({})).await;
    let before = lead("GET", "/master", &json!({})).await.json(200);
    compare(&document, "NextItem", &before["next_item"]);
    lead("POST", "/open", &json!({"round_id": "r1", "item_id": "i1"})).await;
    let state = server.get(&path).await.json(200);
    compare(&document, "PlayerSync", &state);
    compare(&document, "VisiblePlayer", &state["players_visible"][0]);
    compare(&document, "VisibleSender", &state["senders_visible"][0]);
    compare(&document, "GameView", &state["game"]);
    compare(&document, "CurrentItem", &state["game"]["item"]);
    for (device, token) in ["one", "two"].into_iter().zip(&tokens) {
        let vote = json!({"device_id": device, "round_id": "r1", "item_id": "i1", "selections": ["kim"]});
        act("/votes", token, vote).await.json(200);
    }
    let master = lead("GET", "/master", &json!({})).await.json(200);
    compare(&document, "Revealed", &master["current_vote_results"]);
    compare(&document, "RevealedPlayer", &master["current_vote_results"]["players"][0]);
    lead("POST", "/reveal", &json!({})).await;
    let page = server.get(&format!("{path}/events")).await.json(200);
    compare(&document, "EventPage", &page);
    lead("POST", "/players/ann/ban", &json!({})).await;
    compare(&document, "VisibleBan", &lead("GET", "/master", &json!({})).await.json(200)["bans"][0]);
}
