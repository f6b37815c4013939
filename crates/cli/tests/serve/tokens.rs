//! Tokens, from the command that makes them to the server that asks for them.

use super::{Server, emberkeep, run, status_of, text};
use emberkeep_testkit::scratch;
use std::process::{Child, Stdio};

#[test]
fn a_token_is_shown_once_and_lets_its_owner_in() {
    let folder = scratch();
    let file = folder.path().join("tokens.toml").display().to_string();
    let made = run(&["token", "new", "--name", "lobby", "--tokens", &file]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let token = text(&made.stdout).trim().to_owned();
    assert!(token.starts_with("ek_") && !std::fs::read_to_string(&file).unwrap().contains(&token));
    let server = Server::start(&["--tokens", &file]);
    let path = "/v1/tenants/00000000-0000-4000-8000-000000000001/monsters/1000000001";
    assert_eq!(status_of(&server, path, None), 401);
    assert_eq!(status_of(&server, path, Some("ek_wrong")), 401);
    assert_eq!(status_of(&server, path, Some(&token)), 404);
}

#[test]
fn of_twelve_tokens_made_at_once_each_lets_its_owner_in() {
    let folder = scratch();
    let file = folder.join("tokens.toml").display().to_string();
    let new = |number: usize| {
        let mut command = emberkeep(&["token", "new", "--name", &format!("n{number}"), "--tokens", &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts")
    };
    let running: Vec<Child> = (0..12).map(new).collect();
    let made = running.into_iter().map(|child| child.wait_with_output().expect("it ends"));
    let tokens: Vec<String> = made.map(|made| text(&made.stdout).trim().to_owned()).collect();
    let server = Server::start(&["--tokens", &file]);
    let path = "/v1/tenants/00000000-0000-4000-8000-000000000001/monsters/1000000001";
    for token in &tokens {
        assert_eq!(status_of(&server, path, Some(token)), 404, "{tokens:?}");
    }
    let refused = run(&["token", "new", "--name", "x", "--role", "king", "--tokens", &file]);
    assert!(text(&refused.stderr).contains("`read-only`, `service`"), "{}", text(&refused.stderr));
}
