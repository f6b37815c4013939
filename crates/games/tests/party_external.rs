//! Party rooms on one Redis: two of our processes, and an external service that implements the storage
//! document with plain commands and none of our code.

use emberkeep_games::party::*;
use emberkeep_hot::Store;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{RedisServer, Reply, Resp, redis};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The Lua script of the storage document: claims a player.
const CLAIM: &str = r"
    if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 'device_already_has_player' end
    if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 'taken_now' end
    redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
    return 'OK'";

/// The external service.
struct ExternalService {
    line: Resp,
    code: String,
}

impl ExternalService {
    fn key(&self, name: &str) -> String {
        format!("brp:room:{}:{name}", self.code)
    }

    fn call(&mut self, command: &[&str]) -> Reply {
        let reply = self.line.call(command);
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
        reply
    }

    fn claim(&mut self, device: &str, player: &str) -> String {
        let keys = [self.key("device_to_player"), self.key("player_to_device")];
        self.call(&["EVAL", CLAIM, "2", &keys[0], &keys[1], device, player]).text()
    }

    /// HSETNX, then SADD.
    fn vote(&mut self, player: &str, selections: &str) -> bool {
        let (votes, received) = (self.key("vote:r1:i1"), self.key("vote_received:r1:i1"));
        let first = self.call(&["HSETNX", &votes, player, selections]).int() == 1;
        if first {
            self.call(&["SADD", &received, player]);
        }
        first
    }

    fn json(&mut self, name: &str) -> Value {
        let key = self.key(name);
        serde_json::from_slice(self.call(&["GET", &key]).bytes()).expect("what we write is JSON")
    }
}

const PLAYERS: u32 = 8;

fn device(n: u32) -> DeviceId {
    DeviceId::new(format!("ours-{n}")).unwrap()
}

fn player(n: u32) -> PlayerId {
    PlayerId::new(format!("p{n}")).unwrap()
}

fn setup() -> Setup {
    let sender = |n: u32| SenderId::new(format!("s{n}")).unwrap();
    let item = SetupItem {
        item_id: ItemId::new("i1").unwrap(),
        reel_url: "https://example.org/1".into(),
        k: 1,
        true_sender_ids: vec![sender(1)],
    };
    Setup {
        senders: (1..=2)
            .map(|n| SetupSender {
                sender_id: sender(n),
                name: "Sender".into(),
                active: true,
                reels_count: 1,
            })
            .collect(),
        rounds: vec![SetupRound { round_id: RoundId::new("r1").unwrap(), items: vec![item] }],
        players: (1..=PLAYERS).map(|n| SetupPlayer::new(player(n), "Player")).collect(),
    }
}

/// A server, two of our processes, and a room that is set up.
struct Stage {
    server: RedisServer,
    ours: [Rooms; 2],
    code: RoomCode,
    master: Master,
}

impl Stage {
    async fn set() -> Option<Stage> {
        let server = redis()?;
        let mut ours = Vec::new();
        for _ in 0..2 {
            let engine = RedisEngine::connect(&server.url()).await.expect("the server of the test is up");
            ours.push(Rooms::new(Store::new(engine)));
        }
        let created = ours[0].create().await.unwrap();
        // One process creates the room, the other uses it.
        let master = ours[1].master(created.room_code, &created.master_key).await.unwrap();
        ours[1].setup(&master, setup()).await.unwrap();
        let ours = ours.try_into().ok().expect("two of them");
        Some(Stage { server, ours, code: created.room_code, master })
    }

    fn external_service(&self) -> ExternalService {
        ExternalService { line: self.server.client(), code: self.code.to_string() }
    }

    async fn vote(&self, n: u32, sender: &str) -> Result<VoteReceipt> {
        let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
        let chosen = vec![SenderId::new(sender).unwrap()];
        self.ours[n as usize % 2].submit_vote(self.code, &device(n), &round, &item, chosen).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn party_claims_of_a_script_and_of_two_processes_have_one_winner_each() {
    let Some(stage) = Stage::set().await else { return };
    for turn in 0..20_u32 {
        let mut theirs = stage.external_service();
        let external = tokio::task::spawn_blocking(move || {
            (0..PLAYERS)
                .filter(|n| theirs.claim(&format!("theirs-{n}"), &format!("p{}", (n + turn) % 8 + 1)) == "OK")
                .count()
        });
        let tasks: Vec<_> = (0..16_u32)
            .map(|n| {
                let (rooms, code) = (stage.ours[n as usize % 2].clone(), stage.code);
                tokio::spawn(async move {
                    match rooms.take_player(code, &device(n), &player((n + turn) % PLAYERS + 1)).await {
                        Ok(()) => 1,
                        Err(Error::TakenNow(_)) => 0,
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        let mut won = external.await.unwrap();
        for task in tasks {
            won += task.await.unwrap();
        }
        assert_eq!(won, PLAYERS as usize, "turn {turn}");
        assert_eq!(stage.ours[0].reset_claims(&stage.master).await, Ok(PLAYERS as usize), "turn {turn}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn party_votes_by_hand_and_ours_are_counted_once_each() {
    let Some(stage) = Stage::set().await else { return };
    let mut theirs = stage.external_service();
    for n in 1..=PLAYERS {
        stage.ours[n as usize % 2].take_player(stage.code, &device(n), &player(n)).await.unwrap();
    }
    stage.ours[0].start_game(&stage.master).await.unwrap();
    let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
    stage.ours[1].open_item(&stage.master, &round, &item).await.unwrap();
    // Both sides vote for all players but the last at the same time. The first vote counts.
    let external = tokio::task::spawn_blocking(move || {
        let first = (1..PLAYERS).filter(|n| theirs.vote(&format!("p{n}"), r#"["s1"]"#));
        let first: BTreeSet<u32> = first.collect();
        (theirs, first)
    });
    let mut ours = BTreeSet::new();
    for n in (1..PLAYERS).rev() {
        match stage.vote(n, "s2").await {
            Ok(_) => drop(ours.insert(n)),
            Err(Error::AlreadyVoted(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let (mut theirs, first) = external.await.unwrap();
    assert!(
        ours.is_disjoint(&first) && ours.len() + first.len() == PLAYERS as usize - 1,
        "{ours:?} {first:?}"
    );
    assert!(stage.vote(PLAYERS, "s2").await.unwrap().closed);
    let results = stage.ours[0].sync_master(&stage.master, None).await.unwrap().current_vote_results.unwrap();
    let right: BTreeSet<u32> = results
        .players
        .iter()
        .filter(|result| result.points == 1)
        .map(|result| result.player_id.as_str()[1..].parse().unwrap())
        .collect();
    assert_eq!(right, first, "each vote is the one that its service received");
    // The external service reads our votes.
    let state = theirs.json("state");
    assert_eq!((&state["phase"], &state["game"]["status"]), (&"game".into(), &"reveal_wait".into()));
    let ttl = theirs.key("vote:r1:i1");
    assert!(theirs.call(&["PTTL", &ttl]).int() > 23 * 3_600_000, "its keys end with the room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_party_closed_by_hand_is_gone_for_us() {
    let Some(stage) = Stage::set().await else { return };
    let mut theirs = stage.external_service();
    stage.ours[0].take_player(stage.code, &device(1), &player(1)).await.unwrap();
    let pattern = theirs.key("*");
    let found = theirs.call(&["KEYS", &pattern]);
    for key in found.items() {
        let key = key.text();
        theirs.call(&["DEL", &key]);
    }
    let gone = stage.ours[1].sync(stage.code, None).await.unwrap_err();
    assert_eq!(gone, Error::RoomNotFound(stage.code));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_in_a_party_on_one_process_reaches_followers_of_the_other() {
    let Some(stage) = Stage::set().await else { return };
    let mut follower = stage.ours[1].subscribe(stage.code).await.unwrap();
    let mut at = stage.ours[1].sync(stage.code, None).await.unwrap().sequence;
    for n in 1..=4 {
        stage.ours[0].take_player(stage.code, &device(n), &player(n)).await.unwrap();
    }
    let mut found = Vec::new();
    while found.len() < 4 {
        let signal = tokio::time::timeout(Duration::from_secs(10), follower.next()).await;
        assert!(matches!(signal, Ok(Some(Wakeup::Events { .. } | Wakeup::Missed))), "{signal:?}");
        for recorded in stage.ours[1].events_after(stage.code, at).await.unwrap().events {
            at = recorded.sequence;
            found.push(recorded.entry.event);
        }
    }
    let expected: Vec<_> = (1..=4).map(|n| Event::PlayerTaken { player_id: player(n) }).collect();
    assert_eq!(found, expected);
    stage.ours[0].close(&stage.master).await.unwrap();
    loop {
        match tokio::time::timeout(Duration::from_secs(10), follower.next()).await.expect("a signal comes") {
            Some(Wakeup::Closed) => return,
            Some(_) => {}
            None => panic!("the store is open"),
        }
    }
}
