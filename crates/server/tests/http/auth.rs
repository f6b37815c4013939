//! Who may call what.

use crate::support::{Example, Server, examples, loopback};
use emberkeep_server::auth::{Entry, Role, Token, write_entry};
use emberkeep_server::{ListenError, Settings, listen};
use emberkeep_testkit::{Scratch, scratch};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A file with a token of each role.
pub(crate) struct Tokens {
    folder: Scratch,
    tokens: [(Role, Token); 3],
}

impl Tokens {
    pub(crate) fn new() -> Tokens {
        let folder = scratch();
        let new = |role| (role, Token::new().expect("randomness"));
        let tokens = [new(Role::ReadOnly), new(Role::Service), new(Role::Admin)];
        for (role, token) in &tokens {
            let entry = Entry { name: format!("{role:?}"), role: *role, service: None, hash: token.hash() };
            write_entry(&folder.join("tokens.toml"), &entry).expect("the folder is ours");
        }
        Tokens { folder, tokens }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.toml")
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { tokens: Some(self.path()), ..loopback() }
    }

    pub(crate) fn of(&self, role: Role) -> &str {
        self.tokens.iter().find(|(known, _)| *known == role).expect("one of each").1.reveal()
    }
}

fn role(name: &str) -> Role {
    serde_json::from_value(name.into()).expect("a role")
}

#[tokio::test]
async fn every_route_asks_for_the_role_that_the_document_names() {
    let tokens = Tokens::new();
    let server = Server::with(tokens.settings()).await;
    let document = server.get("/openapi.json").await.json(200);
    let mut fenced = 0;
    for example in examples(&document) {
        let Some(needed) = example.operation["x-role"].as_str().map(role) else {
            assert_eq!(example.operation["security"], serde_json::json!([]), "{example}");
            let answer = example.send(&server).await.text();
            assert!(
                !answer.contains("\"error\":\"unauthorized\"") && !answer.contains("\"error\":\"forbidden\""),
                "{example}: {answer}"
            );
            continue;
        };
        check_role(&server, &tokens, &example, needed).await;
        fenced += 1;
    }
    assert!(fenced > 40, "{fenced}");
}

async fn check_role(server: &Server, tokens: &Tokens, example: &Example<'_>, needed: Role) {
    assert_eq!(example.operation["security"], serde_json::json!([{"token": []}]), "{example}");
    let anonymous = example.send(server).await;
    assert_eq!(anonymous.problem(401), "unauthorized", "{example}");
    assert_eq!(anonymous.header("www-authenticate"), Some("Bearer"));
    let stranger = example.request(server).token("ek_unknown").send().await;
    assert_eq!(stranger.problem(401), "unauthorized", "{example}");
    for (role, token) in &tokens.tokens {
        let answer = example.request(server).token(token.reveal()).send().await;
        if *role >= needed {
            assert!(!matches!(answer.status, 401 | 403), "{example}: {}", answer.text());
        } else {
            assert_eq!(answer.problem(403), "forbidden", "{example}");
        }
    }
}

#[tokio::test]
async fn a_replaced_file_of_tokens_is_in_force_without_a_restart() {
    let (tokens, others) = (Tokens::new(), Tokens::new());
    let server = Server::with(tokens.settings()).await;
    let path = format!("/v1/tenants/{}/reactors", crate::support::TENANT);
    let status = async |token: &str| server.request("GET", &path).token(token).send().await.status;
    assert_eq!((status(tokens.of(Role::Admin)).await, status(others.of(Role::Admin)).await), (200, 401));
    // What cannot be read leaves the old ones in force.
    std::fs::write(tokens.path(), "[[token]]\nnonsense").expect("the folder is ours");
    std::fs::copy(others.path(), tokens.folder.join("beside")).expect("the folder is ours");
    std::fs::rename(tokens.folder.join("beside"), tokens.path()).expect("the folder is ours");
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(others.of(Role::Admin)).await != 200 {
        assert!(Instant::now() < deadline, "the new tokens are never in force");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status(tokens.of(Role::Admin)).await, 401);
}

#[tokio::test]
async fn without_tokens_the_server_listens_on_loopback_only() {
    let everywhere = Settings::new(SocketAddr::from(([0, 0, 0, 0], 0)));
    let store = Server::open().await.store;
    let Err(error) = listen(store.clone(), &everywhere).await else { panic!("it listens") };
    assert!(matches!(error, ListenError::OpenToAll { .. }), "{error}");
    assert!(error.to_string().contains("emberkeep token new"), "{error}");
    let tokens = Tokens::new();
    let missing = Settings { tokens: Some(tokens.folder.join("missing")), ..loopback() };
    assert!(matches!(listen(store, &missing).await, Err(ListenError::Tokens(_))));
}
