//! A party in a room, over HTTP alone.

use crate::auth::Tokens;
use crate::support::{Answer, Server};
use emberkeep_server::Settings;
use emberkeep_server::auth::Role;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A room and the key of its master.
struct Room<'s> {
    server: &'s Server,
    path: String,
    key: String,
}

impl Room<'_> {
    async fn create(server: &Server) -> Room<'_> {
        let answer = server.request("POST", "/room").send().await;
        let created = answer.json(201);
        let path = format!("/v1/rooms/{}", created["room_code"].as_str().unwrap());
        assert_eq!(answer.header("location"), Some(path.as_str()));
        Room { server, path, key: created["master_key"].as_str().unwrap().to_owned() }
    }

    /// A call of the master.
    async fn lead(&self, method: &str, what: &str, body: Option<Value>) -> Answer {
        let request =
            self.server.request(method, &format!("{}{what}", self.path)).header("X-Master-Key", &self.key);
        match body {
            Some(body) => request.json(&body).send().await,
            None => request.send().await,
        }
    }

    /// Lets a device join; its token.
    async fn join(&self, device: &str) -> String {
        let joined = self.post("/join", json!({"device_id": device, "protocol_version": 1})).await.json(200);
        joined["reconnect_token"].as_str().expect("a token").to_owned()
    }

    /// A call of a device.
    async fn act(&self, method: &str, what: &str, token: &str, body: Value) -> Answer {
        let request = self.server.request(method, &format!("{}{what}", self.path));
        request.header("X-Reconnect-Token", token).json(&body).send().await
    }

    async fn post(&self, what: &str, body: Value) -> Answer {
        self.server.post(&format!("{}{what}", self.path), body).await
    }

    async fn state(&self, query: &str) -> Value {
        self.server.get(&format!("{}{query}", self.path)).await.json(200)
    }
}

fn setup() -> Value {
    json!({
        "senders": [{"sender_id": "kim", "name": "Kim"}, {"sender_id": "lee", "name": "Lee"}],
        "rounds": [{"round_id": "r1", "items": [
            {"item_id": "i1", "reel_url": "https://reels.example/1", "k": 1, "true_sender_ids": ["kim"]}]}],
        "players": [{"player_id": "ann", "name": "Ann"}, {"player_id": "ben", "name": "Ben"}],
    })
}

fn vote(device: &str, sender: &str) -> Value {
    json!({"device_id": device, "round_id": "r1", "item_id": "i1", "selections": [sender]})
}

#[tokio::test]
async fn a_whole_game_is_played() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    let of_client = room.path.replace("/v1/rooms/", "/room/");
    let set_up = server.request("POST", &format!("{of_client}/setup")).header("X-Master-Key", &room.key);
    assert_eq!(set_up.json(&setup()).send().await.status, 204);
    assert_eq!(room.lead("POST", "/setup", Some(setup())).await.problem(409), "conflict");

    let (one, two) = (room.join("one").await, room.join("two").await);
    let refused = room.post("/join", json!({"device_id": "three", "protocol_version": 9})).await;
    assert_eq!(refused.problem(422), "invalid_protocol_version");
    let claim = |device: &str, player: &str| json!({"device_id": device, "player_id": player});
    assert_eq!(room.act("POST", "/claims", &one, claim("one", "ann")).await.status, 204);
    assert_eq!(room.act("POST", "/claims", &two, claim("two", "ann")).await.problem(409), "taken_now");
    assert_eq!(room.act("POST", "/claims", &two, claim("two", "ben")).await.status, 204);
    assert_eq!(room.act("GET", "?device_id=one", &one, json!({})).await.json(200)["my_player_id"], "ann");

    assert_eq!(room.lead("POST", "/start", None).await.status, 204);
    let item = json!({"round_id": "r1", "item_id": "i1"});
    assert_eq!(room.lead("POST", "/open", Some(item)).await.status, 204);
    let voted = room.act("POST", "/votes", &one, vote("one", "kim")).await.json(200);
    assert_eq!(voted, json!({"player_id": "ann", "closed": false}));
    assert_eq!(room.act("POST", "/votes", &one, vote("one", "kim")).await.problem(409), "already_voted");
    assert_eq!(
        room.act("POST", "/votes", &two, vote("two", "nobody")).await.problem(422),
        "invalid_selection"
    );
    let closes = room.lead("POST", "/force-close", None).await.json(200);
    assert!(closes["closes_at"].as_i64() > Some(0));
    assert_eq!(room.post("/settle", json!({})).await.json(200)["next_deadline"], closes["closes_at"]);
    assert_eq!(room.act("POST", "/votes", &two, vote("two", "lee")).await.json(200)["closed"], true);
    assert_eq!(room.state("").await["game"]["revealed"], Value::Null, "hidden before it is shown");
    assert_eq!(room.lead("POST", "/reveal", None).await.status, 204);
    assert_eq!(room.state("").await["scores"], json!({"ann": 1, "ben": 0}));
    let mut calls = 0;
    while room.state("").await["phase"] != "game_over" {
        assert_eq!(room.lead("POST", "/next-round", None).await.status, 204);
        calls += 1;
        assert!(calls <= 2, "the points of the round, then the end");
    }
    assert_eq!(room.lead("DELETE", "", None).await.status, 204);
    assert_eq!(server.get(&room.path).await.problem(404), "room_not_found");
}

#[tokio::test]
async fn the_lobby_is_led_by_its_master() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    assert_eq!(room.lead("POST", "/setup", Some(setup())).await.status, 204);
    let added = room.lead("POST", "/players", Some(json!({"player_id": "cem", "name": "Cem"}))).await;
    assert_eq!(added.json(201), json!({"player_id": "cem"}));
    assert_eq!(room.lead("PUT", "/players/cem/name", Some(json!({"name": "Cem K."}))).await.status, 204);
    assert_eq!(room.lead("PUT", "/players/cem/active", Some(json!({"active": false}))).await.status, 204);
    assert_eq!(
        room.lead("PUT", "/players/dan/active", Some(json!({"active": false}))).await.problem(404),
        "player_not_found"
    );
    assert_eq!(room.lead("DELETE", "/players/cem", None).await.status, 204);
    let one = room.join("one").await;
    let claim = json!({"device_id": "one", "player_id": "ann"});
    assert_eq!(room.act("POST", "/claims", &one, claim.clone()).await.status, 204);
    let named = room.act("PUT", "/my-name", &one, json!({"device_id": "one", "name": "Anna"})).await;
    assert_eq!(named.json(200), json!({"player_id": "ann"}));
    assert_eq!(
        room.act("POST", "/release", &one, json!({"device_id": "one"})).await.json(200),
        json!({"player_id": "ann"})
    );
    let again = room.act("POST", "/release", &one, json!({"device_id": "one"})).await;
    assert_eq!(again.problem(409), "not_claimed");
    assert_eq!(room.lead("DELETE", "/claims", None).await.json(200), json!({"cleared": 0}));
    let master = room.lead("GET", "/master", None).await.json(200);
    assert_eq!((&master["is_set_up"], &master["next_item"]["item_id"]), (&json!(true), &Value::Null));
    assert_eq!(master["players_all"].as_array().unwrap().len(), 2);
    assert_eq!(room.act("POST", "/claims", &one, claim).await.status, 204);
    for name in ["", &"x".repeat(10_000), "a\u{7}b"] {
        let refused = room.act("PUT", "/my-name", &one, json!({"device_id": "one", "name": name})).await;
        assert_eq!(refused.problem(422), "invalid_payload", "{name:?}");
    }
}

#[tokio::test]
async fn events_are_sent_to_those_whom_they_concern() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    room.lead("POST", "/setup", Some(setup())).await;
    let mut tokens = Vec::new();
    for (device, player) in [("one", "ann"), ("two", "ben")] {
        let token = room.join(device).await;
        room.act("POST", "/claims", &token, json!({"device_id": device, "player_id": player})).await;
        tokens.push(token);
    }
    room.lead("POST", "/start", None).await;
    room.lead("POST", "/open", Some(json!({"round_id": "r1", "item_id": "i1"}))).await;
    let before = room.state("/events").await;
    room.act("POST", "/votes", &tokens[0], vote("one", "kim")).await.json(200);
    let types = |page: &Value| -> Vec<String> {
        let events = page["events"].as_array().unwrap();
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    let everybody = room.state("/events").await;
    assert_eq!(everybody, before, "a vote shows in no event and no number");
    room.lead("PUT", "/players/ann/active", Some(json!({"active": false}))).await;
    let stranger = room.state("/events?device_id=one").await;
    assert!(!types(&stranger).contains(&"slot_invalidated".to_owned()), "{stranger}");
    let own = room.act("GET", "/events?device_id=one", &tokens[0], json!({})).await.json(200);
    assert!(types(&own).contains(&"slot_invalidated".to_owned()), "{own}");
    let master = own;
    let last = room.state(&format!("/events?after={}", master["last"])).await;
    assert_eq!(last["events"], json!([]));
    // A client that knows of more events than there are, as after a failover, gets no error that the room is gone.
    let beyond = room.state(&format!("/events?after={}", master["last"].as_u64().unwrap() + 5)).await;
    assert_eq!((&beyond["events"], &beyond["missed"]), (&json!([]), &json!(5)));
}

#[tokio::test]
async fn wrong_keys_are_slowed_down_and_rooms_that_are_none_are_reported() {
    let server = Server::open().await;
    let (room, other) = (Room::create(&server).await, Room::create(&server).await);
    let start = format!("{}/start", room.path);
    assert_eq!(server.request("POST", &start).send().await.problem(403), "not_master");
    let wrong = async || server.request("POST", &start).header("X-Master-Key", &other.key).send().await;
    for _ in 0..3 {
        assert_eq!(wrong().await.problem(403), "not_master");
    }
    let began = Instant::now();
    assert_eq!(wrong().await.problem(403), "not_master");
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
    // One wrong key waits for its answer, the others are sent away, and the right one is not held up by any of them.
    let crowd = futures_util::future::join_all((0..20).map(|_| wrong()));
    let master = async {
        let began = Instant::now();
        let answer = room.lead("GET", "/master", None).await;
        (answer.status, began.elapsed())
    };
    let (answers, (status, took)) = tokio::join!(crowd, master);
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 403).count(), 1, "{statuses:?}");
    let sent_away = answers.iter().find(|answer| answer.status == 429).expect("the others");
    assert_eq!(sent_away.problem(429), "rate_limited");
    assert!(sent_away.header("retry-after").is_some());
    assert!(status == 200 && took < Duration::from_millis(400), "{status} after {took:?}");
    let malformed = server.request("POST", &start).header("X-Master-Key", "short").send().await;
    assert_eq!(malformed.problem(403), "not_master", "a text that cannot be a key is a wrong one");
    assert_eq!(other.lead("POST", "/start", None).await.problem(409), "not_in_phase");
    assert_eq!(server.get("/v1/rooms/ZZZZZZ").await.problem(404), "room_not_found");
    assert_eq!(server.get("/v1/rooms/ZZZZZ").await.problem(422), "invalid_payload");
}

#[tokio::test]
async fn an_address_creates_only_so_many_rooms_unless_it_shows_a_token() {
    let tokens = Tokens::new();
    let server = Server::with(Settings { rooms_per_second: 1, ..tokens.settings() }).await;
    let create = async |token: Option<&str>| {
        let request = server.request("POST", "/room");
        match token {
            Some(token) => request.token(token).send().await,
            None => request.send().await,
        }
    };
    let mut refused = None;
    for _ in 0..100 {
        let answer = create(None).await;
        if answer.status != 201 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("at some time it is enough");
    assert_eq!(refused.problem(429), "rate_limited");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(create(Some(tokens.of(Role::Service))).await.status, 201);
}

#[tokio::test]
async fn a_players_own_id_is_found_where_the_answer_says() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    for id in ["a/b", "two words", "\u{fc}?#", ".."] {
        let added = room.lead("POST", "/players", Some(json!({"player_id": id, "name": "Odd"}))).await;
        let place = added.header("location").expect("where it is").to_owned();
        let gone = server.request("DELETE", &place).header("X-Master-Key", &room.key).send().await;
        assert_eq!(gone.status, 204, "{id:?} at {place}");
    }
}

#[tokio::test]
async fn whether_a_device_has_a_player_is_shown_only_with_its_token() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    room.lead("POST", "/setup", Some(setup())).await;
    let (one, other) = (room.join("phone-1").await, room.join("phone-2").await);
    room.act("POST", "/claims", &one, json!({"device_id": "phone-1", "player_id": "ann"})).await;
    for id in ["phone-1", "phone-2", "phone-3"] {
        let query = format!("?device_id={id}");
        assert_eq!(room.state(&query).await["my_player_id"], Value::Null);
        let bodies = [
            ("POST", "/claims", json!({"device_id": id, "player_id": "ben"})),
            ("POST", "/release", json!({"device_id": id})),
            ("PUT", "/my-name", json!({"device_id": id, "name": "Eve"})),
            ("POST", "/votes", vote(id, "kim")),
        ];
        for (method, what, body) in bodies {
            let token = if id == "phone-2" { &one } else { &other };
            for answer in [
                server.request(method, &format!("{}{what}", room.path)).json(&body).send().await,
                room.act(method, what, token, body.clone()).await,
            ] {
                assert_eq!(answer.problem(403), "not_this_device", "{id} {what}");
            }
        }
    }
    for id in ["phone-1", "phone-2"] {
        let stranger = room.post("/join", json!({"device_id": id, "protocol_version": 1})).await;
        assert_eq!(stranger.problem(403), "not_this_device");
    }
    let joined =
        room.act("POST", "/join", &one, json!({"device_id": "phone-1", "protocol_version": 1})).await;
    assert_eq!(joined.json(200)["my_player_id"], "ann");
}

#[tokio::test]
async fn a_master_locks_bans_and_plays_again() {
    let server = Server::open().await;
    let room = Room::create(&server).await;
    room.lead("POST", "/setup", Some(setup())).await;
    let (one, two) = (room.join("one").await, room.join("two").await);
    for (device, token, player) in [("one", &one, "ann"), ("two", &two, "ben")] {
        room.act("POST", "/claims", token, json!({"device_id": device, "player_id": player})).await;
    }
    assert_eq!(room.lead("PUT", "/locked", Some(json!({"locked": true}))).await.status, 204);
    assert_eq!(room.state("").await["locked"], true);
    let late = room.post("/join", json!({"device_id": "late", "protocol_version": 1})).await;
    assert_eq!(late.problem(403), "room_locked");
    assert_eq!(room.lead("POST", "/start", None).await.status, 204);
    let again = async || room.lead("POST", "/play-again", Some(json!({"keep_rounds": true}))).await;
    assert_eq!(again().await.status, 204);
    assert_eq!(again().await.problem(409), "not_in_phase");
    assert_eq!(room.state("").await["phase"], "lobby");
    let banned = room.lead("POST", "/players/ann/ban", None).await;
    assert_eq!(banned.json(201), json!({"ban_id": "b1"}));
    let claim = room.act("POST", "/claims", &one, json!({"device_id": "one", "player_id": "ann"})).await;
    assert_eq!(claim.problem(403), "banned");
    let place = banned.header("location").expect("where the ban is").to_owned();
    let lifted = async || server.request("DELETE", &place).header("X-Master-Key", &room.key).send().await;
    assert_eq!(lifted().await.status, 204);
    assert_eq!(lifted().await.problem(404), "ban_not_found");
    let no_key = server.put(&format!("{}/locked", room.path), json!({"locked": false})).await;
    assert!(no_key.json(403)["detail"].as_str().unwrap().contains("send the master key"));
}

#[tokio::test]
async fn a_room_is_strict_if_it_was_created_so() {
    let server = Server::open().await;
    let created = server.request("POST", "/v1/rooms?strict_devices=true").send().await.json(201);
    assert!(created["room_code"].is_string());
    assert_eq!(server.request("POST", "/room?strict=true").send().await.status, 422);
}
