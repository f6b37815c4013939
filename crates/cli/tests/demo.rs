//! The demo as its users run it: in process, on a real Redis and on a real Cluster, in one process and in several.

#![cfg(unix)]

use emberkeep_testkit::{Resp, shared_cluster, shared_redis};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A game that ends soon, but not before every kind of thing has happened on a busy machine.
const SHORT: [&str; 7] = ["demo", "--for", "5s", "--players", "12", "--monsters", "120"];

fn emberkeep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emberkeep"));
    command.args(arguments).env_remove("EMBERKEEP_HOT").env_remove("EMBERKEEP_DATA");
    command
}

fn run(arguments: &[&str]) -> Output {
    emberkeep(arguments).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a game said that must have held.
fn held(output: &Output) -> String {
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{complaints}");
    assert!(said.ends_with("\ninvariants held\n"), "{said}\n{complaints}");
    said
}

/// A number that stands before a word in what was said last.
fn counted(said: &str, word: &str) -> u64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let place = words.iter().rposition(|found| found.trim_end_matches([',', ';', ')']) == word);
    let number = place.map(|place| words[place - 1].replace([',', '('], ""));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number of {word} in: {said}"))
}

/// All that lives in a field happened, and every line of the check was said.
fn lived(said: &str) {
    for word in
        ["hits", "spawns", "kills", "ticks", "drops", "triggered", "teardowns", "hand-offs", "inspections"]
    {
        assert!(counted(said, word) > 0, "no {word}: {said}");
    }
    for checked in [
        "no stale entries, no orphans",
        "one winner",
        "exact sums",
        "unique ids",
        "deadlines",
        "auxiliary indexes agree",
        "the city's events = hits",
        "each play session once",
    ] {
        assert!(said.contains(&format!("checked {checked}")), "{checked} is missing: {said}");
    }
}

fn keys(client: &mut Resp) -> Vec<String> {
    client.call(&["KEYS", "*"]).items().iter().map(|key| key.text()).collect()
}

#[test]
fn a_field_lives_in_process() {
    let said = held(&run(&SHORT));
    assert!(
        said.starts_with("12 players hit 120 monsters on the embedded engine, in 4 fields of 2 tenants"),
        "{said}"
    );
    assert!(said.contains("what stays: reactors:next_id"), "{said}");
    lived(&said);
}

#[test]
fn a_field_lives_on_redis_in_three_processes_and_leaves_nothing_behind() {
    let Some(server) = shared_redis() else { return };
    let url = server.fresh_db();
    let said = held(&run(&[&SHORT[..], &["--processes", "3", "--hot", &url]].concat()));
    assert!(said.contains("in 4 fields of 2 tenants, 3 processes"), "{said}");
    lived(&said);
    let left = keys(&mut server.client_of(&url));
    let known = |key: &String| key == "reactors:next_id" || key.starts_with("ember:r:");
    assert!(left.iter().all(known), "{left:?}");
}

#[test]
fn a_field_lives_on_a_cluster_in_two_processes() {
    let Some(cluster) = shared_cluster() else { return };
    let nodes: Vec<String> = cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("redis+cluster://{}", nodes.join(","));
    let said = held(&run(&[&SHORT[..], &["--processes", "2", "--tenants", "3", "--hot", &url]].concat()));
    assert!(said.contains("in 6 fields of 3 tenants, 2 processes"), "{said}");
    lived(&said);
    let left: Vec<String> = cluster.nodes().iter().flat_map(|node| keys(&mut node.client())).collect();
    let receipt = |key: &String| key.split_once('}').is_some_and(|(_, name)| name.starts_with("ember:r:"));
    assert!(left.iter().all(receipt), "{left:?}");
}

#[test]
fn a_city_whose_events_belong_to_others_is_left_out_unless_their_history_is_named() {
    let Some(server) = shared_redis() else { return };
    let (url, folder) = (server.fresh_db(), emberkeep_testkit::scratch());
    let mut client = server.client_of(&url);
    client.call(&["RPUSH", "ember:log:combat", "not ours"]);
    let short = ["demo", "--for", "500ms", "--players", "4", "--monsters", "40", "--hot", &url];
    let said = held(&run(&short));
    assert!(said.contains("the city was left out") && !said.contains("events = hits"), "{said}");
    assert_eq!(client.call(&["LLEN", "ember:log:combat"]).int(), 1, "it is as it was");
    client.call(&["DEL", "ember:log:combat"]);
    let history = format!("file:{}", folder.join("h").display());
    let said = held(&run(&[&short[..], &["--history", &history]].concat()));
    assert!(said.contains("checked the city's events = hits"), "{said}");
}

#[test]
fn what_is_kept_is_no_trouble_for_the_next_game() {
    let Some(server) = shared_redis() else { return };
    let url = server.fresh_db();
    let short = ["demo", "--for", "500ms", "--players", "4", "--monsters", "40", "--hot", &url];
    let said = held(&run(&[&short[..], &["--keep"]].concat()));
    assert!(!said.contains("removed"), "{said}");
    let kept = keys(&mut server.client_of(&url)).len();
    assert!(kept > 40, "{kept}");
    held(&run(&short));
    let monsters =
        keys(&mut server.client_of(&url)).into_iter().filter(|key| key.starts_with("atlas:monster:"));
    assert_eq!(monsters.count(), 40, "those of the first game, and no others");
}

/// A game of three processes that would go on for a minute, after its first line.
fn long_game(url: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let arguments =
        ["demo", "--for", "60s", "--players", "6", "--monsters", "60", "--processes", "3", "--hot", url];
    let mut command = emberkeep(&arguments);
    let mut game = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(game.stdout.take().expect("it is piped"));
    let mut said = String::new();
    lines.read_line(&mut said).expect("the game is announced");
    assert!(said.starts_with("6 players hit 60 monsters on "), "{said}");
    (game, lines)
}

/// The processes that a process started.
fn children_of(process: &Child) -> Vec<u32> {
    let listed = Command::new("ps").args(["-o", "pid=", "--ppid", &process.id().to_string()]).output();
    let listed = text(&listed.expect("ps is there").stdout);
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill is there").success(), "{signal} to {pid}");
}

fn await_end(pids: &[u32]) {
    let start = Instant::now();
    let lives =
        |pid: &u32| Command::new("kill").args(["-0", &pid.to_string()]).stderr(Stdio::null()).status();
    while pids.iter().any(|pid| lives(pid).expect("kill is there").success()) {
        assert!(start.elapsed() < Duration::from_secs(20), "{pids:?} are left behind");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn processes_that_are_interrupted_still_send_their_results() {
    let Some(server) = shared_redis() else { return };
    let (mut game, mut lines) = long_game(&server.fresh_db());
    let children = children_of(&game);
    assert_eq!(children.len(), 3);
    send("-INT", game.id());
    let mut said = String::new();
    lines.read_to_string(&mut said).expect("it speaks until its end");
    assert!(game.wait().expect("it ends").success(), "{said}");
    assert!(said.ends_with("invariants held\n"), "{said}");
    await_end(&children);
}

#[test]
fn a_process_that_dies_is_named_and_the_others_stop() {
    let Some(server) = shared_redis() else { return };
    let (mut game, mut lines) = long_game(&server.fresh_db());
    let children = children_of(&game);
    send("-KILL", children[1]);
    let (mut said, mut complaints) = (String::new(), String::new());
    lines.read_to_string(&mut said).expect("it speaks until its end");
    let stderr = game.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut complaints).expect("it speaks until its end");
    assert_eq!(game.wait().expect("it ends").code(), Some(1), "{said}\n{complaints}");
    let named = format!("(pid {}) ended without its results: signal: 9", children[1]);
    assert!(complaints.contains(&named) && !said.contains("invariants held"), "{said}\n{complaints}");
    // What it did stands in whole transactions: only its results are missing.
    assert!(complaints.ends_with("invariants violated: 1 finding\n"), "{said}\n{complaints}");
    assert!(said.contains("checked no stale entries") && !said.contains("checked exact sums"), "{said}");
    await_end(&children);
}

#[test]
fn processes_whose_parent_dies_end_too() {
    let Some(server) = shared_redis() else { return };
    let (mut game, _lines) = long_game(&server.fresh_db());
    let children = children_of(&game);
    assert_eq!(children.len(), 3);
    game.kill().expect("it runs");
    game.wait().expect("it ends");
    await_end(&children);
}

#[test]
fn a_mistake_about_processes_is_explained() {
    let cases: [(&[&str], &str); 4] = [
        (&["demo", "--processes", "2"], "name one with --hot redis://… or redis+cluster://…"),
        (&["demo", "--processes", "2", "--data", "x"], "needs a server that all of them reach"),
        (&["demo", "--processes", "0"], "0 is not in 1..=64"),
        (
            &["demo", "--processes", "4", "--players", "3", "--hot", "redis://127.0.0.1:1"],
            "--players 3 are fewer than --processes 4",
        ),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
}
