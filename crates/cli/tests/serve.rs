//! The server as its users run it: a process that listens, is killed, is started again; a client in another language.

#![cfg(unix)]

#[path = "serve/full_disk.rs"]
mod full_disk;
#[path = "serve/history.rs"]
mod history;
#[path = "serve/log.rs"]
mod log;
#[path = "serve/mistakes.rs"]
mod mistakes;
#[path = "../../server/tests/party/phone.rs"]
#[allow(dead_code)] // A part of it is for other tests.
mod phone;
#[path = "serve/process.rs"]
mod process;
#[path = "serve/settings.rs"]
mod settings;
#[path = "serve/stdout.rs"]
mod stdout;
#[path = "serve/tokens.rs"]
mod tokens;

use emberkeep_testkit::{Unavailable, require, scratch};
use phone::{Phone, room};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn emberkeep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emberkeep"));
    command.args(arguments);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("EMBERKEEP_")) {
        command.env_remove(name);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    emberkeep(arguments).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server in a process of its own, killed on drop.
struct Server {
    process: Child,
    address: SocketAddr,
    /// What it says on standard output; `None` where nothing can be read from it.
    said: Option<BufReader<std::process::ChildStdout>>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let arguments = [&["serve", "--http", "127.0.0.1:0"], arguments].concat();
        Server::of(&mut emberkeep(&arguments))
    }

    fn of(command: &mut Command) -> Server {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut said = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("the server says where it is");
        let address = line.trim_end().rsplit_once("//").and_then(|(_, address)| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("expected an address, the server said {line:?}"));
        Server { process, address, said: Some(said) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// As the kernel does it to a process that is out of luck.
    fn kill9(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it is ours");
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().expect("kill").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A room in which two devices are in the middle of a vote; `ann` has voted, `ben` has not.
struct Evening {
    code: String,
    key: String,
    master: Phone,
    ann: Phone,
    ben: Phone,
}

fn vote() -> serde_json::Value {
    json!({ "round_id": "r1", "item_id": "i1", "selections": ["s1"] })
}

/// The master and ben are on the first server, ann is on the last.
async fn in_a_vote(servers: &[SocketAddr]) -> Evening {
    let (first, last) = (servers[0], *servers.last().expect("a server"));
    let (code, key) = room(first, 2, 1).await;
    let mut master = Phone::join(first, "tv", &code, Some(&key)).await;
    let mut ann = Phone::join(last, "ann", &code, None).await;
    let mut ben = Phone::join(first, "ben", &code, None).await;
    ann.ask("TAKE_PLAYER", json!({ "player_id": "p1" }), &["TAKE_PLAYER_OK"]).await;
    ben.ask("TAKE_PLAYER", json!({ "player_id": "p2" }), &["TAKE_PLAYER_OK"]).await;
    master.send("START_GAME", json!({})).await;
    master.expect("GAME_START").await;
    master.send("OPEN_ITEM", json!({ "round_id": "r1", "item_id": "i1" })).await;
    ann.expect("START_VOTE").await;
    ann.ask("SUBMIT_VOTE", vote(), &["VOTE_ACK"]).await;
    Evening { code, key, master, ann, ben }
}

fn is_closed(state: &serde_json::Value) -> bool {
    state["game"]["status"] == "reveal_wait"
}

#[tokio::test(flavor = "multi_thread")]
async fn players_of_a_server_that_was_killed_go_on_at_the_other() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (first, second) = (Server::start(&["--hot", &redis.url()]), Server::start(&["--hot", &redis.url()]));
    let evening = in_a_vote(&[first.address, second.address]).await;
    let (other, mut ann) = (second.address, evening.ann);
    first.kill9();
    let mut master = Phone::join(other, "tv", &evening.code, Some(&evening.key)).await;
    assert_eq!(master.state["votes_received_player_ids"], json!(["p1"]));
    let mut ben = Phone::join(other, "ben", &evening.code, None).await;
    assert_eq!(ben.state["my_player_id"], "p2");
    ben.ask("SUBMIT_VOTE", vote(), &["VOTE_ACK"]).await;
    ann.until("the end of the vote", is_closed).await;
    master.until("the end of the vote", is_closed).await;
    assert_eq!(master.state["current_vote_results"]["players"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_and_its_deadline_survive_the_death_of_the_only_server() {
    let folder = scratch();
    let data = folder.path().display().to_string();
    let arguments = ["--data", &data, "--durability", "always"];
    let server = Server::start(&arguments);
    let mut evening = in_a_vote(&[server.address]).await;
    evening.master.send("FORCE_CLOSE_VOTE", json!({})).await;
    evening.ben.until("the countdown", |state| state["game"]["closes_at"].is_i64()).await;
    let closes_at = evening.ben.state["game"]["closes_at"].clone();
    server.kill9();
    let server = Server::start(&arguments);
    let mut ben = Phone::join(server.address, "ben", &evening.code, None).await;
    assert_eq!(ben.state["game"]["closes_at"], closes_at, "the deadline is the one of before");
    // No client does anything any more; the server itself notices.
    ben.until("the end of the vote", is_closed).await;
    let mut master = Phone::join(server.address, "tv", &evening.code, Some(&evening.key)).await;
    let results = &master.state["current_vote_results"]["players"];
    assert_eq!(results.as_array().map(Vec::len), Some(1), "ann's vote counts, ben gave none: {results}");
    master.send("ROOM_CLOSED", json!({})).await;
    assert_eq!(ben.ended().await, Some(1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_to_end_says_goodbye_and_keeps_everything() {
    let folder = scratch();
    let data = folder.path().display().to_string();
    let mut server = Server::start(&["--data", &data]);
    let (code, _) = room(server.address, 2, 1).await;
    let mut phone = Phone::join(server.address, "phone", &code, None).await;
    server.signal("TERM");
    assert_eq!(phone.ended().await, Some(1001));
    assert!(server.process.wait().expect("it ends").success());
    let server = Server::start(&["--data", &data]);
    let phone = Phone::join(server.address, "phone", &code, None).await;
    assert_eq!(phone.state["phase"], "lobby");
}

/// Node and the packages of the client, which `./test` installs.
fn node() -> Result<(), Unavailable> {
    let there = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    let packages = clients().join("node_modules/ws").is_dir();
    match there && packages {
        true => Ok(()),
        false => Err(Unavailable::NotFound("node with clients/party/node_modules (run ./test once)".into())),
    }
}

fn clients() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/party")
}

/// A whole evening, played by a client that shares no code with us.
fn played_by_node(servers: &[&Server]) -> String {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    let played =
        Command::new("node").arg("play.mjs").args(urls).current_dir(clients()).output().expect("node");
    let said = text(&played.stdout);
    assert!(played.status.success(), "{said}\n{}", text(&played.stderr));
    said
}

#[test]
fn a_client_in_another_language_plays_on_one_server() {
    let Some(()) = require(node()) else { return };
    let server = Server::start(&[]);
    assert!(played_by_node(&[&server]).ends_with("held on one server\n"));
}

#[test]
fn a_client_in_another_language_plays_on_two_servers() {
    let Some(()) = require(node()) else { return };
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (first, second) = (Server::start(&["--hot", &redis.url()]), Server::start(&["--hot", &redis.url()]));
    assert!(played_by_node(&[&first, &second]).ends_with("held on 2 servers\n"));
}

#[test]
fn a_client_in_another_language_asks_for_the_state_after_a_gap() {
    let Some(()) = require(node()) else { return };
    let ran = Command::new("node").arg("gap.mjs").current_dir(clients()).output().expect("node");
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "held after a gap\n");
}

fn status_of(server: &Server, path: &str, token: Option<&str>) -> u16 {
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n{token}connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

#[test]
fn a_demo_fills_the_store_with_life_and_ends_in_order() {
    let mut server = Server::start(&["--demo"]);
    let mut said = String::new();
    while !said.contains("master key") {
        let lines = server.said.as_mut().expect("it is piped");
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let field =
        said.split(&server.url()).last().and_then(|rest| rest.lines().next()).expect("a path").to_owned();
    let code = said.split("room       ").last().expect("a room")[..6].to_owned();
    assert!(status_and_body(&server, &format!("/v1/rooms/{code}")).contains("\"name\":\"Cleo\""), "{said}");
    // The first round begins by itself.
    let begun = std::time::Instant::now();
    while status_and_body(&server, &field).matches("uniqueId").count() < 10 {
        assert!(begun.elapsed() < Duration::from_secs(30), "no monster lives at {field}");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.signal("INT");
    assert!(server.process.wait().unwrap().success());
}

fn status_and_body(server: &Server, path: &str) -> String {
    request(server, &format!("GET {path}"))
}

/// The whole answer to a request without a body, such as `GET /healthz`.
fn request(server: &Server, line: &str) -> String {
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
