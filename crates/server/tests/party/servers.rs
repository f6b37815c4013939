//! Two servers on one store, and a store that goes away.

use super::{all, on_redis};
use crate::phone::{Phone, request, room};
use emberkeep_server::RunningServer;
use emberkeep_testkit::{RedisServer, require};
use serde_json::json;
use std::time::{Duration, Instant};

/// The master, Ann and Ben with a player each, every one on a server of its own choice.
async fn seated([of_master, of_ann, of_ben]: [&RunningServer; 3]) -> [Phone; 3] {
    let (code, key) = room(of_master.address(), 2, 1).await;
    let master = Phone::join(of_master.address(), "tv", &code, Some(&key)).await;
    let mut ann = Phone::join(of_ann.address(), "ann", &code, None).await;
    let mut ben = Phone::join(of_ben.address(), "ben", &code, None).await;
    ann.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    ben.ask("TAKE_PLAYER", json!({ "player_id": "p2" }), &["TAKE_PLAYER_OK"]).await;
    [master, ann, ben]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_on_one_server_reaches_the_sockets_of_another() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (first, second) = (on_redis(&redis.url()).await, on_redis(&redis.url()).await);
    let [mut master, mut ann, mut ben] = seated([&first, &second, &first]).await;
    master.until("both taken", all(2, "taken")).await;
    master.send("START_GAME", json!({})).await;
    ann.expect("GAME_START").await;
    master.send("OPEN_ITEM", json!({ "round_id": "r1", "item_id": "i1" })).await;
    ann.expect("START_VOTE").await;
    let vote = json!({ "round_id": "r1", "item_id": "i1", "selections": ["s1"] });
    ann.ask("SUBMIT_VOTE", vote.clone(), &["VOTE_ACK"]).await;
    assert_eq!(master.expect("PLAYER_VOTED").await["payload"]["player_id"], "p1");
    ben.ask("SUBMIT_VOTE", vote.clone(), &["VOTE_ACK"]).await;
    ann.until("the end of the vote", |state| state["game"]["status"] == "reveal_wait").await;
    master.send("REVEAL_ITEM", json!({})).await;
    ann.expect("VOTE_RESULTS").await;
    for late in [&mut ann, &mut ben] {
        let answer = late.ask("SUBMIT_VOTE", vote.clone(), &["ERROR"]).await;
        assert_eq!(answer["payload"]["code"], "late", "on both servers");
    }
    master.send("ROOM_CLOSED", json!({})).await;
    ann.expect("ROOM_CLOSED_BROADCAST").await;
    assert_eq!(ann.ended().await, Some(1000));
    first.end().await.unwrap();
    second.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_loses_its_player_is_notified_through_the_other_server_and_only_it() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (first, second) = (on_redis(&redis.url()).await, on_redis(&redis.url()).await);
    let [mut master, mut ann, mut ben] = seated([&first, &second, &second]).await;
    master.send("TOGGLE_PLAYER", json!({ "player_id": "p1", "active": false })).await;
    let message = ann.expect("SLOT_INVALIDATED").await;
    assert_eq!(message["payload"], json!({ "player_id": "p1", "reason": "player_deactivated" }));
    loop {
        let message = ben.next().await.unwrap();
        assert_ne!(message["type"], "SLOT_INVALIDATED", "{message}");
        if ben.state["players_visible"][0]["active"] == false {
            break;
        }
    }
    assert_eq!(ben.state["my_player_id"], "p2");
    first.end().await.unwrap();
    second.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_outlast_a_store_that_goes_away_and_comes_back() {
    let options = RedisServer::options().appendonly().set("appendfsync", "always");
    let Some(redis) = require(options.start()) else { return };
    let server = on_redis(&redis.url()).await;
    let (code, key) = room(server.address(), 2, 1).await;
    let mut phone = Phone::join(server.address(), "phone", &code, None).await;
    redis.kill9();
    let answer = phone.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_FAIL"]).await;
    assert_eq!(answer["payload"]["code"], "unavailable", "{answer}");
    redis.restart().unwrap();
    let (path, name) = (format!("/v1/rooms/{code}/players/p1/name"), json!({ "name": "Ann" }));
    let deadline = Instant::now() + Duration::from_secs(20);
    while request("PUT", server.address(), &path, Some(&key), &name).await.status >= 300 {
        assert!(Instant::now() < deadline, "the store is back, and the server does not find it");
    }
    phone.until("the new name", |state| state["players_visible"][0]["name"] == "Ann").await;
    phone.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    server.end().await.unwrap();
}
