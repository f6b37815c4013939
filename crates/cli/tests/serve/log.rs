//! A log that cannot be written, or is never read, stops nothing: no request, no background task, no end in order.

use super::{Server, emberkeep, run, status_and_body, status_of, text};
use emberkeep_testkit::scratch;
use std::fs::{File, OpenOptions};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// By then a file that was replaced is in force, however busy the machine is.
const RELOADED_WITHIN: Duration = Duration::from_secs(30);
const MONSTER: &str = "/v1/tenants/00000000-0000-4000-8000-000000000001/monsters/1000000001";

/// What every write to answers with "no space left".
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < RELOADED_WITHIN, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ends_in_order(mut server: Server) {
    server.signal("TERM");
    let code = server.process.wait().expect("it is ours").code();
    assert_eq!(code, Some(0), "an end in order");
}

#[test]
fn a_revoked_token_is_refused_though_the_log_cannot_be_written() {
    let folder = scratch();
    let file = folder.join("tokens.toml");
    let path = file.display().to_string();
    let new = |name: &str| {
        let made = run(&["token", "new", "--name", name, "--role", "admin", "--tokens", &path]);
        text(&made.stdout).trim().to_owned()
    };
    let first = new("first");
    let arguments = ["serve", "--http", "127.0.0.1:0", "--tokens", &path];
    let server = Server::of(emberkeep(&arguments).stderr(full()));
    assert_eq!(status_of(&server, MONSTER, Some(&first)), 404);
    let second = new("second");
    until("the second token counts", || status_of(&server, MONSTER, Some(&second)) == 404);
    let whole = std::fs::read_to_string(&file).unwrap();
    let revoked = whole.find("[[token]]\nname = \"second\"").expect("the second entry");
    std::fs::write(&file, &whole[revoked..]).unwrap();
    until("the first token is refused", || status_of(&server, MONSTER, Some(&first)) == 401);
    ends_in_order(server);
}

#[test]
fn every_request_is_answered_though_no_line_of_the_log_can_be_written() {
    let arguments = ["serve", "--http", "127.0.0.1:0", "--log-level", "debug"];
    let server = Server::of(emberkeep(&arguments).stderr(full()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(status_of(&server, MONSTER, None), 404)));
        }
    });
    // A thread writes the lines, so the last of them may be counted after the answer.
    until("every line was lost and counted", || {
        let metrics = status_and_body(&server, "/metrics");
        let line = metrics.lines().find(|line| line.starts_with("emberkeep_log_lines_dropped_total "));
        let dropped: f64 = line.and_then(|line| line.split(' ').nth(1)).expect("a count").parse().unwrap();
        dropped >= 400.0
    });
    ends_in_order(server);
}

#[test]
fn a_log_that_is_never_read_blocks_nothing() {
    let arguments = ["serve", "--http", "127.0.0.1:0", "--log-level", "debug"];
    // Kept open and never read: after 64 KiB a write to it waits for ever.
    let server = Server::of(emberkeep(&arguments).stderr(Stdio::piped()));
    for _ in 0..1_500 {
        assert_eq!(status_of(&server, MONSTER, None), 404);
    }
    let asked = Instant::now();
    ends_in_order(server);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
}
