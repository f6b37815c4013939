//! Standard output that is closed or full: a reader that stops early is not a failure, a full disk is one, and a server goes on.

use super::{Server, emberkeep, status_of, text};
use emberkeep_testkit::scratch;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

fn run_with(arguments: &[&str], stdout: Stdio) -> Output {
    let child =
        emberkeep(arguments).stdout(stdout).stderr(Stdio::piped()).spawn().expect("the binary starts");
    child.wait_with_output().expect("it ends")
}

const COMMANDS: [&[&str]; 7] = [
    &["--help"],
    &["--version"],
    &["serve", "--help"],
    &["schema", "keys"],
    &["schema", "keys", "--format", "json"],
    &["config"],
    &["demo", "--for", "100ms", "--players", "2", "--monsters", "4"],
];

#[test]
fn a_reader_that_has_seen_enough_ends_a_command_quietly() {
    for arguments in COMMANDS {
        let ran = run_with(arguments, closed());
        let said = (ran.status.code(), text(&ran.stderr));
        assert_eq!(said, (Some(0), String::new()), "{arguments:?}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    for arguments in COMMANDS {
        let ran = run_with(arguments, full());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to standard output"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_token_that_was_not_shown_is_not_kept() {
    let folder = scratch();
    let file = folder.join("tokens.toml");
    let path = file.display().to_string();
    let new = ["token", "new", "--name", "lobby", "--tokens", &path];
    for stdout in [closed(), full()] {
        let ran = run_with(&new, stdout);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains("it was not added"), "{said}");
        assert!(!file.exists(), "the hash of a token that was not shown");
    }
    assert!(run_with(&new, Stdio::piped()).status.success(), "the name is free");
}

#[test]
fn a_server_goes_on_without_standard_output() {
    for stdout in [closed(), full()] {
        let mut command = emberkeep(&["serve", "--http", "127.0.0.1:0"]);
        let mut process = command.stdout(stdout).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("serving ") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the log says where it serves");
        }
        let address = line.trim_end().rsplit_once("//").and_then(|(_, address)| address.parse().ok());
        let mut server = Server { process, address: address.expect("an address"), said: None };
        assert_eq!(status_of(&server, "/healthz", None), 200);
        server.signal("TERM");
        assert_eq!(server.process.wait().unwrap().code(), Some(0));
    }
}
