//! A test process that is killed leaves no server behind.
//!
//! The victim is this very test binary, started again with a variable that makes `victim` hang
//! with servers in its hands.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use emberkeep_testkit::{redis, shared_redis};

const VARIABLE: &str = "EMBERKEEP_TESTKIT_VICTIM";

#[test]
fn victim() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let (Some(shared), Some(own)) = (shared_redis(), redis()) else { return };
    for server in [shared, &own] {
        println!("SERVER {} {}", server.pid().unwrap(), server.folder().display());
    }
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_test_process_leaves_no_server_and_no_folder() {
    if redis().is_none() {
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["victim", "--exact", "--nocapture"])
        .env(VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let servers: Vec<(String, String)> =
        lines.map_while(Result::ok).filter_map(|line| server_line(&line)).take(2).collect();
    assert_eq!(servers.len(), 2);
    assert!(servers.iter().all(|(pid, folder)| runs(pid) && Path::new(folder).exists()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while servers.iter().any(|(pid, folder)| runs(pid) || Path::new(folder).exists()) {
        assert!(Instant::now() < deadline, "left behind: {servers:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The harness prints `test victim ... ` on the same line first.
fn server_line(line: &str) -> Option<(String, String)> {
    let (pid, folder) = line.split_once("SERVER ")?.1.split_once(' ')?;
    Some((pid.to_owned(), folder.to_owned()))
}

/// A zombie does not run: who reaps orphans is not ours to decide.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
