//! Clients behind a reverse proxy.

use crate::auth::Tokens;
use crate::support::{Server, loopback};
use emberkeep_server::limits::ROOMS_BURST_SECONDS;
use emberkeep_server::{ListenError, Settings, listen};

/// Creates a room as a client behind a proxy on this machine; whether the rate limit let it pass.
async fn creates_room(server: &Server, forwarded_for: &str) -> bool {
    let answer = server.request("POST", "/v1/rooms").header("X-Forwarded-For", forwarded_for).send().await;
    assert!(matches!(answer.status, 201 | 429), "{}", answer.text());
    answer.status == 201
}

/// Rooms that a client can create before it is limited: at one a second, a new client has a whole burst.
async fn use_up(server: &Server, forwarded_for: &str) -> u32 {
    let mut created = 0;
    while created < 10 * ROOMS_BURST_SECONDS && creates_room(server, forwarded_for).await {
        created += 1;
    }
    created
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_limited_one_by_one() {
    let tokens = Tokens::new();
    let trusted_proxies = vec!["127.0.0.0/8".into()];
    let settings = Settings { rooms_per_second: 1, trusted_proxies, ..tokens.settings() };
    let server = Server::with(settings).await;
    assert!(use_up(&server, "203.0.113.1").await < 200);
    assert!(creates_room(&server, "203.0.113.2").await, "another client has its own limit");
    assert!(
        !creates_room(&server, "198.51.100.7, 203.0.113.1").await,
        "the client's own entry is not believed"
    );
}

#[tokio::test]
async fn without_trusted_proxies_the_header_is_ignored() {
    let tokens = Tokens::new();
    let settings = Settings { rooms_per_second: 1, ..tokens.settings() };
    let server = Server::with(settings).await;
    assert!(use_up(&server, "203.0.113.1").await >= ROOMS_BURST_SECONDS);
    assert!(use_up(&server, "203.0.113.2").await < ROOMS_BURST_SECONDS);
}

#[tokio::test]
async fn a_proxy_that_is_not_an_address_is_refused() {
    let store = Server::open().await.store;
    let settings = Settings { trusted_proxies: vec!["proxy.example".into()], ..loopback() };
    let refused = listen(store, &settings).await.err().expect("it is refused");
    assert!(matches!(refused, ListenError::Proxy(_)), "{refused}");
    assert!(refused.to_string().contains("10.0.0.0/8"), "{refused}");
}
