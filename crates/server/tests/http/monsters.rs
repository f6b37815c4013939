//! Every operation on monsters, over HTTP.

use crate::support::{FIELD, Server, TENANT};
use serde_json::{Value, json};

async fn spawn(server: &Server) -> (String, Value) {
    let answer = server
        .post(&format!("{FIELD}/monsters"), json!({"monsterId": 100_100, "maxHp": 50, "maxMp": 30}))
        .await;
    let monster = answer.json(201);
    let path = answer.header("location").expect("a new thing says where it is").to_owned();
    (path, monster)
}

#[tokio::test]
async fn a_monster_lives_and_dies() {
    let server = Server::open().await;
    let (path, born) = spawn(&server).await;
    assert_eq!(path, format!("/v1/tenants/{TENANT}/monsters/{}", born["uniqueId"]));
    assert_eq!(server.get(&path).await.json(200), born);
    assert_eq!((&born["hp"], &born["team"], &born["mapId"]), (&json!(50), &json!(-1), &json!(100_000_000)));

    let hit = json!({"characterId": 7, "amount": 15});
    assert_eq!(
        server.post(&format!("{path}/damage"), hit.clone()).await.json(200),
        json!({"actual": 15, "hp": 35, "killed": false})
    );
    let drained =
        server.post(&format!("{path}/damage-over-time"), json!({"characterId": 8, "amount": 999})).await;
    assert_eq!(drained.json(200), json!({"actual": 34, "hp": 1, "killed": false}));
    let leader = server.get(&format!("{path}/damage-leader")).await.json(200);
    assert_eq!(leader, json!({"leader": {"characterId": 8, "damage": 34}}));
    assert_eq!(
        server.post(&format!("{path}/heal"), json!({"amount": 9})).await.json(200),
        json!({"actual": 9, "hp": 10})
    );
    assert_eq!(
        server.post(&format!("{path}/use-mp"), json!({"amount": 40})).await.json(200),
        json!({"actual": 30, "mp": 0})
    );

    assert_eq!(server.post(&format!("{path}/damage"), hit.clone()).await.json(200)["killed"], true);
    let late = server.post(&format!("{path}/damage"), hit).await;
    assert_eq!(late.problem(409), "already_dead");
    assert_eq!(late.json(409)["details"]["monster"], born["uniqueId"]);
    assert_eq!(server.delete(&path).await.status, 204);
    assert_eq!(server.delete(&path).await.problem(404), "not_found");
    assert_eq!(server.get(&path).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_monster_is_controlled_moved_and_taken() {
    let server = Server::open().await;
    let (path, _) = spawn(&server).await;
    let leader = server.get(&format!("{path}/damage-leader")).await.json(200);
    assert_eq!(leader, json!({"leader": null}));
    let controlled = server.put(&format!("{path}/control"), json!({"characterId": 7})).await;
    assert_eq!(controlled.json(200), json!({"former": 0}));
    assert_eq!(server.delete(&format!("{path}/control/8")).await.json(200), json!({"released": false}));
    assert_eq!(server.delete(&format!("{path}/control/7")).await.json(200), json!({"released": true}));
    assert_eq!(
        server.put(&format!("{path}/control"), json!({"characterId": 0})).await.problem(422),
        "invalid"
    );

    assert_eq!(
        server.put(&format!("{path}/position"), json!({"x": -5, "y": 6, "fh": 3, "stance": 2})).await.status,
        204
    );
    assert_eq!(server.put(&format!("{path}/position"), json!({"x": -6, "y": 7})).await.status, 204);
    let walked = server.get(&path).await.json(200);
    assert_eq!(
        (&walked["x"], &walked["fh"], &walked["stance"]),
        (&json!(-6), &json!(3), &json!(2)),
        "what a move does not name stays"
    );
    let moved =
        server.put(&format!("{path}/field"), json!({"worldId": 1, "channelId": 2, "mapId": 3, "x": 4})).await;
    let moved = moved.json(200);
    assert_eq!(
        (&moved["worldId"], &moved["mapId"], &moved["x"], &moved["y"]),
        (&json!(1), &json!(3), &json!(4), &json!(0))
    );
    assert_eq!(server.get(&format!("{FIELD}/monsters")).await.json(200)["monsters"], json!([]));

    assert_eq!(server.post(&format!("{path}/take"), json!({})).await.json(200), moved);
    assert_eq!(server.post(&format!("{path}/take"), json!({})).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_long_field_is_listed_in_pages_and_destroyed() {
    let server = Server::open().await;
    for _ in 0..25 {
        spawn(&server).await;
    }
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = server.get(&format!("{FIELD}/monsters?limit=10{cursor}")).await.json(200);
        let monsters = page["monsters"].as_array().unwrap();
        assert!(monsters.len() <= 10, "{}", monsters.len());
        found.extend(monsters.iter().map(|monster| monster["uniqueId"].as_u64().unwrap()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!((found.len(), pages), (25, 3));
    assert_eq!(server.get(&format!("{FIELD}/monsters?limit=0")).await.problem(422), "invalid");
    assert_eq!(server.get(&format!("{FIELD}/monsters?limit=1001")).await.problem(422), "invalid");
    assert_eq!(server.get(&format!("{FIELD}/monsters?cursor=nonsense")).await.problem(422), "invalid");

    let destroyed = server.delete(&format!("{FIELD}/monsters")).await.json(200);
    assert_eq!((destroyed["removed"].as_array().unwrap().len(), &destroyed["stopped"]), (25, &Value::Null));
    assert_eq!(server.delete(&format!("{FIELD}/monsters")).await.json(200)["removed"], json!([]));
}

#[tokio::test]
async fn effects_are_applied_run_and_cancelled() {
    let server = Server::open().await;
    let (path, monster) = spawn(&server).await;
    let poison = json!({"sourceType": "PLAYER_SKILL", "sourceCharacterId": 7, "statuses": {"POISON": 10},
        "durationMs": 60_000, "tickIntervalMs": 1_000});
    let applied = server.post(&format!("{path}/effects"), poison.clone()).await;
    let location = applied.header("location").expect("an effect says where it is").to_owned();
    let effect = applied.json(201)["effect"].clone();
    assert_eq!(location, format!("{path}/effects/{}", effect["effectId"].as_str().unwrap()));
    let again = server.post(&format!("{path}/effects"), poison.clone()).await.json(201);
    assert_eq!(again["replaced"], json!([effect]));
    assert_eq!(server.delete(&location).await.problem(404), "no_effect");

    let mut of_a_monster = poison.clone();
    (of_a_monster["sourceType"], of_a_monster["sourceSkillId"]) = (json!("MONSTER_SKILL"), json!(65_536));
    let refused = server.post(&format!("{path}/effects"), of_a_monster).await;
    assert_eq!(refused.problem(422), "invalid");
    assert!(refused.json(422)["detail"].as_str().unwrap().contains("65535"), "{:?}", refused.json(422));
    let mut of_the_game = poison.clone();
    (of_the_game["sourceType"], of_the_game["statuses"]) = (json!("GM_COMMAND"), json!({"FREEZE": 1}));
    let frozen = server.post(&format!("{path}/effects"), of_the_game.clone()).await.json(201);
    assert_eq!(frozen["effect"]["sourceType"], "GM_COMMAND");
    assert_eq!(frozen["effect"]["lastTickMs"], frozen["effect"]["createdAtMs"]);
    of_the_game["sourceType"] = json!("");
    assert_eq!(server.post(&format!("{path}/effects"), of_the_game).await.problem(422), "invalid");
    assert_eq!(
        server.delete(&format!("{path}/effects?status=FREEZE")).await.json(200)["cancelled"],
        json!([frozen["effect"]])
    );

    let ran = server.post(&format!("{path}/effects/tick"), json!({})).await.json(200);
    assert_eq!((&ran["uniqueId"], &ran["ticks"]), (&monster["uniqueId"], &json!([])));
    let due = server.post(&format!("/v1/tenants/{TENANT}/due-effects"), json!({"limit": 10})).await.json(200);
    assert_eq!(due, json!({"done": [], "corrupt": [], "stopped": null}));
    assert_eq!(
        server.delete(&format!("{path}/effects?status=FREEZE")).await.json(200)["cancelled"],
        json!([])
    );
    let cancelled = server.delete(&format!("{path}/effects?status=POISON")).await.json(200);
    assert_eq!(cancelled["cancelled"], json!([again["effect"]]));

    let applied = server.post(&format!("{path}/effects"), poison).await;
    assert_eq!(
        server.delete(applied.header("location").unwrap()).await.json(200),
        applied.json(201)["effect"]
    );
    assert_eq!(server.delete(&format!("{path}/effects")).await.json(200), json!({"cancelled": []}));
}

#[tokio::test]
async fn skills_cool_down() {
    let server = Server::open().await;
    let (path, _) = spawn(&server).await;
    let skill = format!("{path}/cooldowns/126");
    let beyond = server.put(&format!("{path}/cooldowns/65536"), json!({"durationMs": 5_000})).await;
    assert_eq!(beyond.problem(422), "invalid");
    assert!(beyond.json(422)["detail"].as_str().unwrap().contains("65536"), "{:?}", beyond.json(422));
    assert_eq!(server.get(&skill).await.json(200), json!({"cooling": false, "remainingMs": null}));
    assert_eq!(server.put(&skill, json!({"durationMs": 60_000})).await.status, 204);
    let cooling = server.get(&skill).await.json(200);
    assert!(cooling["remainingMs"].as_u64().is_some_and(|ms| (1..=60_000).contains(&ms)), "{cooling}");
    assert_eq!(server.delete(&skill).await.json(200), json!({"cleared": 1}));
    assert_eq!(server.put(&skill, json!({"durationMs": 60_000})).await.status, 204);
    assert_eq!(server.delete(&format!("{path}/cooldowns")).await.json(200), json!({"cleared": 1}));
    assert_eq!(server.put(&skill, json!({"durationMs": 0})).await.problem(422), "invalid");
}

#[tokio::test]
async fn friendly_monsters_drop() {
    let server = Server::open().await;
    let (path, monster) = spawn(&server).await;
    let timer = format!("{path}/drop-timer");
    assert_eq!(server.get(&timer).await.problem(404), "no_drop_timer");
    assert_eq!(server.post(&format!("{timer}/hit"), json!({})).await.problem(404), "no_drop_timer");
    let registered = server.put(&timer, json!({"dropPeriodMs": 60_000, "weaponAttack": 30})).await.json(200);
    assert_eq!(
        (&registered["monsterId"], &registered["dropPeriodMs"]),
        (&monster["monsterId"], &json!(60_000))
    );
    assert_eq!(server.get(&timer).await.json(200), registered);
    let hit = server.post(&format!("{timer}/hit"), json!({})).await.json(200);
    assert!(hit["lastHitAtMs"].as_i64() > Some(0), "{hit}");
    let due = server.post(&format!("/v1/tenants/{TENANT}/due-drops"), json!({"limit": 10})).await.json(200);
    assert_eq!(due, json!({"done": [], "corrupt": [], "stopped": null}));
    assert_eq!(server.delete(&timer).await.status, 204);
    assert_eq!(server.delete(&timer).await.problem(404), "no_drop_timer");
}

#[tokio::test]
async fn a_tenant_is_swept_and_torn_down() {
    let server = Server::open().await;
    for _ in 0..3 {
        spawn(&server).await;
    }
    let swept = server.post("/v1/monsters/sweep", json!({"turns": 1})).await.json(200);
    assert_eq!((&swept["over"], &swept["stale"], &swept["corrupt"]), (&json!(false), &json!(0), &json!([])));
    let mut turns = 0;
    while server.post("/v1/monsters/sweep", json!({"turns": 1_000})).await.json(200)["over"] != true {
        turns += 1;
        assert!(turns < 10, "a sweep comes to its end");
    }
    assert_eq!(
        server.delete(&format!("/v1/tenants/{TENANT}/monsters")).await.json(200),
        json!({"monsters": 3, "cooldowns": 0, "discarded": [], "corrupt": []})
    );
    spawn(&server).await;
    assert_eq!(server.delete("/v1/monsters").await.json(200)["monsters"], 1);
}
