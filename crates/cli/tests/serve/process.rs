//! The process as those see it who watch over it: signals and the log.

use super::{Server, emberkeep, status_of};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

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
    let signalled = std::time::Instant::now();
    server.signal("INT");
    assert_eq!(server.process.wait().unwrap().code(), Some(130));
    assert!(signalled.elapsed() < Duration::from_secs(5), "{:?}", signalled.elapsed());
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
fn a_hangup_reads_the_files_again_and_ends_nothing() {
    let arguments = ["serve", "--http", "127.0.0.1:0"];
    let mut server = Server::of(emberkeep(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()));
    server.signal("HUP");
    let mut log = BufReader::new(server.process.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("reading tokens and certificate again") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it ended");
    }
    assert_eq!(status_of(&server, "/healthz", None), 200);
    server.signal("TERM");
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

#[test]
fn connections_leave_files_for_all_else_and_the_soft_limit_is_raised() {
    let binary = env!("CARGO_BIN_EXE_emberkeep");
    let serve = |limits: &str| {
        let script = format!("ulimit -{limits}; exec {binary} serve --http 127.0.0.1:0");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).stderr(Stdio::null()).env_remove("EMBERKEEP_HOT");
        Server::of(&mut command)
    };
    let connect = |server: &Server, number: usize| -> Vec<TcpStream> {
        (0..number).map(|_| TcpStream::connect(server.address).unwrap()).collect()
    };
    // The soft limit alone would be used up.
    let server = serve("Sn 64");
    let open = connect(&server, 120);
    assert_eq!(status_of(&server, "/healthz", None), 200);
    drop((open, server));
    let server = serve("n 96");
    let open = connect(&server, 120);
    let is_closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        !matches!(stream.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    // Soon enough that none is closed because it says nothing.
    let (expected, begun) = (120 - 96 / 2, std::time::Instant::now());
    let mut refused = 0;
    while refused < expected && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
        refused = open.iter().filter(|stream| is_closed(stream)).count();
    }
    assert_eq!(refused, expected, "those that do not fit are closed, and none waits");
    drop(open);
    let begun = std::time::Instant::now();
    // Those that left are noticed one by one; until then further ones are closed, too.
    let page = loop {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let _ = write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let mut page = Vec::new();
        if stream.read_to_end(&mut page).is_ok() && !page.is_empty() {
            break String::from_utf8(page).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not recover");
    };
    let line = page.lines().find_map(|line| line.strip_prefix("emberkeep_connections_refused_total "));
    assert!(line.is_some_and(|count| count.parse::<usize>().unwrap() >= refused), "{page}");
}

#[test]
fn a_store_that_is_full_says_so() {
    let server = Server::start(&["--memory-max", "256KiB", "--rooms-per-second", "0"]);
    let create = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "POST /room HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let full = (0..5_000).map(|_| create()).find(|answer| !answer.starts_with("HTTP/1.1 201"));
    let full = full.expect("256 KiB are less than 5,000 rooms");
    assert!(full.starts_with("HTTP/1.1 507") && full.contains("\"store_full\""), "{full}");
    let refused = super::run(&["serve", "--memory-max", "lots"]);
    let said = super::text(&refused.stderr);
    assert!(said.contains("'lots' for '--memory-max <SIZE>': expected a size such as 512MiB"), "{said}");
}
