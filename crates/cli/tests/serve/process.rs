//! The process as those see it who watch over it: signals and the log.

use super::{Server, emberkeep, status_of};
use serde_json::json;
use std::io::{Read, Write};
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
    let told = std::time::Instant::now();
    server.signal("INT");
    assert_eq!(server.process.wait().unwrap().code(), Some(130));
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
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
