//! The server as its users run it: a process that listens, is killed, is started again; a client in another language.

#![cfg(unix)]

#[path = "../../server/tests/party/phone.rs"]
#[allow(dead_code)] // A part of it is for other tests.
mod phone;

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
    said: BufReader<std::process::ChildStdout>,
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
        Server { process, address, said }
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
    // Nobody does anything any more; the server itself notices.
    ben.until("the end of the vote", is_closed).await;
    let mut master = Phone::join(server.address, "tv", &evening.code, Some(&evening.key)).await;
    let results = &master.state["current_vote_results"]["players"];
    assert_eq!(results.as_array().map(Vec::len), Some(1), "ann's vote counts, ben gave none: {results}");
    master.send("ROOM_CLOSED", json!({})).await;
    assert_eq!(ben.ended().await, Some(1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_end_says_goodbye_and_keeps_everything() {
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
fn nobody_listens_to_the_world_without_tokens() {
    let refused = run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("without tokens"), "{}", text(&refused.stderr));
}

#[test]
fn settings_are_shown_with_their_sources_and_without_secrets() {
    let folder = scratch();
    let file = folder.path().join("emberkeep.toml");
    std::fs::write(&file, "hot = \"redis://:s3cret@127.0.0.1:1/0\"\nlog = \"json\"\n").unwrap();
    let file = file.display().to_string();
    let mut command = emberkeep(&["config", "--config", &file, "--log-level", "debug"]);
    let shown = command.env("EMBERKEEP_LOG", "text").output().unwrap();
    let said = text(&shown.stdout);
    assert!(said.contains(&format!("hot = \"redis://:***@127.0.0.1:1/0\"  # {file}")), "{said}");
    assert!(
        said.contains("log = \"text\"  # variable") && said.contains("log-level = \"debug\"  # flag"),
        "{said}"
    );
    assert!(!said.contains("s3cret"));
    std::fs::write(&file, "htpp = \"127.0.0.1:1\"\n").unwrap();
    let refused = run(&["serve", "--config", &file]);
    assert!(
        text(&refused.stderr).contains("unknown key \"htpp\"; did you mean http?"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn who_says_stop_twice_does_not_wait() {
    let mut server = Server::start(&[]);
    // A request that is never whole: an end in order waits for it.
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let head = "POST /room/AB23CD/setup HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}x-master-key: x\r\ncontent-length: 9\r\n\r\n{{").unwrap();
    // Another one is answered, so the first has surely arrived.
    status_of(&server, "/healthz", None);
    server.signal("INT");
    while std::net::TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.process.try_wait().unwrap(), None, "it waits for the request");
    let told = std::time::Instant::now();
    server.signal("INT");
    assert_eq!(server.process.wait().unwrap().code(), Some(130));
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
}

#[test]
fn a_demo_is_for_a_store_of_its_own_on_this_machine() {
    let folder = scratch();
    let (file, tokens) = (folder.join("emberkeep.toml"), folder.join("tokens.toml").display().to_string());
    std::fs::write(&file, "hot = \"redis://127.0.0.1:1\"\n").unwrap();
    let refused = |mut command: Command| {
        let ran = command.output().expect("the binary starts");
        assert_eq!(ran.status.code(), Some(1));
        text(&ran.stderr)
    };
    let mut by_variable = emberkeep(&["serve", "--demo"]);
    by_variable.env("EMBERKEEP_HOT", "redis://127.0.0.1:1");
    for command in [
        emberkeep(&["serve", "--demo", "--hot", "redis://127.0.0.1:1"]),
        emberkeep(&["serve", "--demo", "--config", &file.display().to_string()]),
        by_variable,
    ] {
        let told = refused(command);
        assert!(told.contains("--demo fills a store of its own"), "{told}");
    }
    run(&["token", "new", "--name", "lobby", "--tokens", &tokens]);
    let told = refused(emberkeep(&["serve", "--demo", "--http", "0.0.0.0:0", "--tokens", &tokens]));
    assert!(told.contains("--demo is for this machine only, and http is 0.0.0.0:0"), "{told}");
}

#[test]
fn a_log_for_machines_is_one_object_per_line_with_the_id_of_the_request() {
    let arguments = ["serve", "--http", "127.0.0.1:0", "--log", "json", "--log-level", "debug"];
    let mut server = Server::of(emberkeep(&arguments).stderr(Stdio::piped()));
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let head =
        "GET /nowhere HTTP/1.1\r\nhost: localhost\r\nx-request-id: lobby-17\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    server.signal("TERM");
    let mut log = String::new();
    server.process.stderr.take().expect("it is piped").read_to_string(&mut log).unwrap();
    let lines: Vec<serde_json::Map<_, _>> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let of_request: Vec<_> =
        lines.iter().filter(|line| line.get("request_id") == Some(&json!("lobby-17"))).collect();
    let [line] = of_request.as_slice() else { panic!("{log}") };
    assert_eq!(
        (&line["status"], &line["error"], &line["level"]),
        (&json!(404), &json!("no_such_route"), &json!("DEBUG"))
    );
    assert!(
        lines.iter().any(|line| line["message"].as_str().is_some_and(|text| text.starts_with("ending"))),
        "{log}"
    );
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
}

#[test]
fn variables_of_others_refuse_nothing_and_empty_ones_hide_nothing() {
    let with = |variables: &[(&str, &str)]| {
        let shown =
            emberkeep(&["config"]).envs(variables.iter().copied()).output().expect("the binary starts");
        (shown.status.success(), text(&shown.stderr))
    };
    let kubernetes = [
        ("EMBERKEEP_SERVICE_HOST", "10.96.3.7"),
        ("EMBERKEEP_SERVICE_PORT", "7777"),
        ("EMBERKEEP_PORT", "tcp://10.96.3.7:7777"),
        ("EMBERKEEP_PORT_7777_TCP", "tcp://10.96.3.7:7777"),
        ("EMBERKEEP_PORT_7777_TCP_ADDR", "10.96.3.7"),
    ];
    assert_eq!(with(&kubernetes), (true, String::new()));
    let (passed, told) = with(&[("EMBERKEEP_TOKEN", "tokens.toml")]);
    assert!(!passed && told.contains("did you mean EMBERKEEP_TOKENS?"), "{told}");
    let (passed, told) = with(&[("EMBERKEEP_TOKENS", "")]);
    assert!(!passed && told.contains("tokens is empty (variable)"), "{told}");
}

#[test]
fn a_store_that_cannot_be_opened_is_named_without_its_password() {
    for hot in [":s3cret@host", "redis://127.0.0.1:1?password=s3cret", "http://joe:s3cret@host"] {
        for command in ["serve", "config"] {
            let ran = run(&[command, "--hot", hot]);
            let told = text(&ran.stdout) + &text(&ran.stderr);
            assert_eq!(ran.status.success(), command == "config", "{told}");
            assert!(!told.is_empty() && !told.contains("s3cret"), "{told}");
        }
    }
}

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
        assert!(server.said.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let field =
        said.split(&server.url()).last().and_then(|rest| rest.lines().next()).expect("a path").to_owned();
    let code = said.split("room       ").last().expect("a room")[..6].to_owned();
    assert!(status_and_body(&server, &format!("/v1/rooms/{code}")).contains("\"name\":\"Cleo\""), "{said}");
    // The first round begins by itself; nobody says when.
    let begun = std::time::Instant::now();
    while status_and_body(&server, &field).matches("uniqueId").count() < 10 {
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody lives at {field}");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.signal("INT");
    assert!(server.process.wait().unwrap().success());
}

fn status_and_body(server: &Server, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
