//! Room codes are not guessed, keys are checked before bodies, and callers do not learn where the store is.

use crate::support::{Server, loopback};
use emberkeep_games::party::Rooms;
use emberkeep_server::limits::MISSING_ROOMS_BURST;
use emberkeep_server::{ListenError, Settings, listen};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::time::Instant;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::Message;

/// The slowest rate that can be set: a token comes back after a minute, which no two requests in a row take.
async fn limited() -> Server {
    Server::with(Settings { missing_rooms_per_minute: 1, ..loopback() }).await
}

/// Tokens that may have come back since then.
fn back_since(begun: Instant) -> u32 {
    (begun.elapsed().as_secs() / 60) as u32
}

/// Names missing rooms until one is refused.
async fn use_up(server: &Server) {
    let (begun, mut missed) = (Instant::now(), 0);
    loop {
        let answer = server.get("/v1/rooms/ZZZZZZ").await;
        if answer.status == 429 {
            break;
        }
        assert_eq!(answer.problem(404), "room_not_found");
        missed += 1;
        assert!(missed <= MISSING_ROOMS_BURST + back_since(begun), "{missed} missing rooms");
    }
}

/// A room that was created elsewhere.
async fn created_elsewhere(server: &Server) -> String {
    Rooms::new(server.store.clone()).create().await.expect("a room").room_code.to_string()
}

#[tokio::test]
async fn guesses_of_room_codes_run_out_and_the_rooms_that_were_found_stay() {
    let server = limited().await;
    let (mine, other) = (created_elsewhere(&server).await, created_elsewhere(&server).await);
    assert_eq!(server.get(&format!("/v1/rooms/{mine}")).await.status, 200);
    use_up(&server).await;
    for path in ["/v1/rooms/ZZZZZZ", "/v1/rooms/ZZZZZZ/events", "/v1/rooms/%5AZZZZZ"] {
        let refused = server.get(path).await;
        assert_eq!(
            (refused.problem(429), refused.header("retry-after")),
            ("rate_limited".into(), Some("60"))
        );
    }
    assert_eq!(server.get(&format!("/v1/rooms/{other}")).await.status, 429, "a hit says nothing either");
    assert_eq!(server.get(&format!("/v1/rooms/{mine}")).await.status, 200, "those who play go on");
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let url = format!("ws://{}/ws", server.address());
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("a socket");
    for (code, expected) in [(&other, "\"rate_limited\""), (&mine, "\"JOIN_OK\"")] {
        let payload = json!({"room_code": code, "device_id": "phone", "protocol_version": 1});
        socket
            .send(Message::text(json!({"type": "JOIN_ROOM", "payload": payload}).to_string()))
            .await
            .unwrap();
        let answer = socket.next().await.expect("an open socket").expect("a message").into_text().unwrap();
        assert!(answer.contains(expected), "{answer}");
    }
    let page = server.get("/metrics").await.text();
    assert!(page.contains("emberkeep_room_codes_refused_total 6\n"), "{page}");
}

#[tokio::test]
async fn sockets_count_guesses_too() {
    let server = limited().await;
    let (begun, mut refused) = (Instant::now(), 0);
    for _ in 0..5 {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let url = format!("ws://{}/ws", server.address());
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.expect("a socket");
        for _ in 0..9 {
            let payload = json!({"room_code": "ZZZZZZ", "device_id": "phone", "protocol_version": 1});
            let join = json!({"type": "JOIN_ROOM", "payload": payload}).to_string();
            socket.send(Message::text(join)).await.expect("an open socket");
            let answer = socket.next().await.expect("an open socket").expect("a message");
            refused += u32::from(answer.into_text().unwrap().contains("\"rate_limited\""));
        }
    }
    assert!(refused <= 45 - MISSING_ROOMS_BURST, "{refused} refused");
    assert!(refused + back_since(begun) >= 45 - MISSING_ROOMS_BURST, "{refused} refused");
}

#[tokio::test]
async fn parallel_guesses_do_not_pass_the_limit() {
    let (server, begun) = (limited().await, Instant::now());
    let guess = |n: usize| {
        let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
        let [first, second] = [letters[n / 20], letters[n % 20]].map(char::from);
        server.request("GET", &format!("/v1/rooms/ZZZZ{first}{second}")).send()
    };
    let answers = futures_util::future::join_all((0..200).map(guess)).await;
    let missed = answers.iter().filter(|answer| answer.status == 404).count() as u32;
    assert!(missed >= MISSING_ROOMS_BURST && missed <= MISSING_ROOMS_BURST + back_since(begun), "{missed}");
    assert!(answers.iter().all(|answer| matches!(answer.status, 404 | 429)));
}

#[tokio::test]
async fn a_crowd_that_finds_its_room_at_once_is_not_taken_for_guessers() {
    let server = limited().await;
    let path = format!("/v1/rooms/{}", created_elsewhere(&server).await);
    let answers = futures_util::future::join_all((0..200).map(|_| server.get(&path))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(server.get("/v1/rooms/ZZZZZZ").await.status, 404, "and has its tokens left");
}

#[tokio::test]
async fn a_room_stays_in_reach_of_the_address_that_created_it() {
    let server = limited().await;
    use_up(&server).await;
    for path in ["/v1/rooms", "/room"] {
        let room = server.request("POST", path).send().await.json(201);
        let code = room["room_code"].as_str().expect("a code");
        assert_eq!(server.get(&format!("/v1/rooms/{code}")).await.status, 200);
    }
}

#[tokio::test]
async fn the_master_key_is_checked_before_the_body() {
    let server = Server::open().await;
    let room = server.request("POST", "/v1/rooms").send().await.json(201);
    let (code, key) = (room["room_code"].as_str().unwrap(), room["master_key"].as_str().unwrap());
    let other = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh";
    for path in ["setup", "players", "open"] {
        let post = || {
            let request = server.request("POST", &format!("/v1/rooms/{code}/{path}"));
            request.header("Content-Type", "application/json")
        };
        assert_eq!(post().send().await.problem(403), "not_master", "no key");
        assert_eq!(post().header("X-Master-Key", "short").send().await.problem(403), "not_master");
        assert_eq!(post().header("X-Master-Key", key).send().await.problem(400), "malformed_json");
    }
    let wrong = server.request("POST", &format!("/room/{code}/setup")).header("X-Master-Key", other);
    assert_eq!(wrong.body("nonsense").send().await.problem(403), "not_master");
}

#[tokio::test]
async fn answers_with_secrets_are_not_stored_by_caches() {
    let server = Server::open().await;
    let room = server.request("POST", "/room").send().await;
    assert_eq!(room.header("cache-control"), Some("no-store"));
    assert_eq!(server.get("/openapi.json").await.header("cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn a_server_without_tokens_refuses_what_a_proxy_passes_on() {
    let server = Server::open().await;
    for (name, value) in [
        ("X-Forwarded-For", "203.0.113.9"),
        ("Forwarded", "for=203.0.113.9"),
        ("Via", "1.1 proxy"),
        ("X-Real-IP", "203.0.113.9"),
    ] {
        let refused = server.request("DELETE", "/v1/monsters").header(name, value).send().await;
        assert_eq!(refused.problem(403), "proxy_not_allowed", "{name}");
        assert!(refused.text().contains("configure tokens"), "{}", refused.text());
    }
}

#[tokio::test]
async fn a_server_without_tokens_is_not_opened_to_every_page() {
    let store = Server::open().await.store;
    let settings = Settings { origins: vec!["*".into()], ..loopback() };
    let refused = listen(store, &settings).await.err().expect("it is refused");
    assert!(matches!(refused, ListenError::OpenToAllPages), "{refused}");
}

#[tokio::test]
async fn a_store_that_is_not_ready_is_not_named_to_callers() {
    let server = Server::open().await;
    server.store.close().await.unwrap();
    let name = server.store.name();
    let refused = server.get("/readyz").await;
    assert_eq!(refused.problem(503), "not_ready");
    assert!(!refused.text().contains(&*name), "{}", refused.text());
    assert_eq!(server.get("/healthz").await.status, 200, "a restart is for a journal that does not resume");
}
