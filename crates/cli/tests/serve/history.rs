//! History as a tier of the server: where it is by default, what waits, and the commands that look at it.

use super::{Server, emberkeep, run, text};
use emberkeep::OpenHistory as _;
use emberkeep::history::spool::{Spool, SpoolConsumer, SpoolOptions};
use emberkeep::history::{Batch, History, Rejection};
use emberkeep::schema::Utf8;
use emberkeep_testkit::{block_on, scratch, shared_redis};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Output;

fn get(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn stop(server: &mut Server) {
    server.signal("TERM");
    assert_eq!(server.process.wait().expect("it is ours").code(), Some(0));
}

#[test]
fn a_data_folder_has_history_and_it_survives_a_kill() {
    let folder = scratch();
    let data = folder.path().to_str().expect("plain");
    let server = Server::start(&["--data", data]);
    assert!(folder.join("history/LEDGER").exists(), "history is beside the journal");
    let ready = get(&server, "/readyz");
    assert!(ready.contains(r#""history":{"status":"ok","waiting_entries":0}"#), "{ready}");
    let metrics = get(&server, "/metrics");
    assert!(metrics.contains("\nemberkeep_history_open 1\n"), "{metrics}");
    let busy = run(&["history", "lag", "--data", data]);
    let answer = said(&busy);
    assert!(busy.status.code() == Some(1) && answer.contains("/metrics has the lag"), "{answer}");
    server.kill9();
    let mut again = Server::start(&["--data", data]);
    assert!(get(&again, "/readyz").contains(r#""history":{"status":"ok""#));
    stop(&mut again);
    let lag = run(&["history", "lag", "--data", data, "--max-age", "1s"]);
    assert!(lag.status.success(), "{}", said(&lag));
    let drained = run(&["history", "drain", "--data", data]);
    assert!(drained.status.success(), "{}", said(&drained));
}

#[test]
fn without_a_folder_there_is_none_unless_it_is_named() {
    let mut server = Server::start(&[]);
    assert!(!get(&server, "/readyz").contains("history"));
    stop(&mut server);
    let folder = scratch();
    let url = format!("file:{}?durability=always", folder.join("h").display());
    let mut server = Server::start(&["--history", &url]);
    assert!(get(&server, "/readyz").contains(r#""history":{"status":"ok""#));
    stop(&mut server);
    let mut server = Server::start(&["--data", folder.path().to_str().expect("plain"), "--history", "none"]);
    assert!(!get(&server, "/readyz").contains("history") && !folder.join("history").exists());
    stop(&mut server);
}

#[test]
fn the_usual_mistakes_are_named() {
    let folder = scratch();
    let data = folder.path().to_str().expect("plain");
    let cases: [(&[&str], &str); 7] = [
        (
            &["serve", "--history", "redis://:s3cret@h"],
            "begins with redis:, which is not known; understood are file:DIR, cql://",
        ),
        (&["serve", "--history", "memory:"], "not a place for history"),
        (&["config", "--history", "file:d?durability=no"], "expected always or everysec"),
        (&["history", "lag"], "name what the server uses: --data DIR or --hot URL"),
        (&["history", "lag", "--hot", "redis://127.0.0.1:1"], "no history is named"),
        (&["history", "dead-letters", "--data", data, "--log", "nosuch"], "there is no log nosuch"),
        (&["history", "dead-letters", "--data", data, "--show", "3"], "--log"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let answer = said(&output);
        assert!(!output.status.success() && answer.contains(expected), "{arguments:?}: {answer}");
        assert!(!answer.contains("s3cret"), "{answer}");
    }
}

#[test]
fn the_settings_show_history_without_its_password() {
    let shown = run(&["config", "--history", "cql://ann:s3cret@h/k?layout=scaled"]);
    let answer = said(&shown);
    assert!(answer.contains("cql://ann:***@h/k?layout=scaled") && !answer.contains("s3cret"), "{answer}");
    let by_variable = emberkeep(&["config"]).env("EMBERKEEP_HISTORY", "file:h").output().expect("it runs");
    assert!(text(&by_variable.stdout).contains("history = \"file:h\"  # variable"));
}

#[test]
fn commands_work_on_redis_beside_history_in_a_folder() {
    let Some(redis) = shared_redis() else { return };
    let folder = scratch();
    let (hot, url) = (redis.fresh_db(), format!("file:{}", folder.join("h").display()));
    for command in ["lag", "drain", "dead-letters"] {
        let output = run(&["history", command, "--hot", &hot, "--history", &url]);
        assert!(output.status.success(), "{command}: {}", said(&output));
    }
}

#[test]
fn a_history_spool_belongs_to_one_process_and_its_mistakes_are_named() {
    let folder = scratch();
    let path = |name: &str| folder.join(name).to_str().expect("plain").to_owned();
    let (a, b, spool) = (path("a"), path("b"), path("s"));
    let (a, b, spool) = (a.as_str(), b.as_str(), spool.as_str());
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output = run(arguments);
        let answer = said(&output);
        assert!(!output.status.success(), "{arguments:?}: {answer}");
        expected.iter().for_each(|part| assert!(answer.contains(part), "{arguments:?}: {answer}"));
    };
    let mut server = Server::start(&["--data", a, "--history-spool", spool]);
    let metrics = get(&server, "/metrics");
    assert!(metrics.contains("\nemberkeep_history_spool_bytes{log="), "{metrics}");
    let other = ["serve", "--http", "127.0.0.1:0", "--data", b, "--history-spool", spool];
    refused(&other, &["cannot open the history spool", "in use by"]);
    let drain = ["history", "drain", "--data", b, "--history-spool", spool];
    refused(&drain, &["in use by", "a folder belongs to one process"]);
    stop(&mut server);
    let drained = run(&drain);
    assert!(drained.status.success(), "{}", said(&drained));
    refused(
        &["history", "drain", "--data", b, "--history-spool", &path("absent")],
        &["absent, and there is no such folder"],
    );
    refused(&["config", "--history", "none", "--history-spool", spool], &["no history is named"]);
    std::fs::create_dir(folder.join("s/of-another-log")).expect("made");
    std::fs::write(folder.join("s/of-another-log/spool-00000001.seg"), "x").expect("written");
    refused(&drain, &["of-another-log: entries of a log that these stores do not have"]);
}

#[test]
fn dead_letters_of_recorded_events_are_listed_and_shown() {
    let folder = scratch();
    let data = folder.path().to_str().expect("plain");
    let logs = block_on(async {
        let url = format!("file:{}", folder.join("history").display());
        let history = History::open(&url, emberkeep::games::history_schema()).await.expect("our folder");
        let spool: Spool<Utf8> = Spool::open(folder.join("recorded"), SpoolOptions::default()).expect("ours");
        spool.record(&"what happened".to_owned()).await.expect("recorded");
        let refuse = |_: &String, _: &mut Batch| Err(Rejection::new("no such player"));
        assert_eq!(
            SpoolConsumer::new(&spool, history.clone(), refuse).drain_once().await.expect("delivered"),
            1
        );
        let logs = history.spools_with_dead_letters().await.expect("read");
        history.close().await.expect("closed");
        logs
    });
    let listed = said(&run(&["history", "dead-letters", "--data", data]));
    assert!(listed.contains(&logs[0]) && listed.contains("no such player"), "{listed}");
    let shown = said(&run(&["history", "dead-letters", "--data", data, "--log", &logs[0], "--show", "1"]));
    assert!(shown.contains("entry        what happened"), "{shown}");
}

#[cfg(feature = "cql")]
mod cluster {
    use super::*;
    use emberkeep::history::cql::schema::{LiveKeyspace, Replication};
    use emberkeep_testkit::shared_cassandra;
    use std::process::Stdio;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    #[test]
    fn a_cluster_without_the_tables_is_refused_and_with_them_used() {
        let Some(cassandra) = shared_cassandra() else { return };
        let url = cassandra.url("served");
        block_on(async {
            let live = LiveKeyspace::connect(&url).await.expect("it answers");
            live.create(&Replication::Simple(1)).await.expect("created");
        });
        let missing = run(&["serve", "--http", "127.0.0.1:0", "--history", &url]);
        assert!(said(&missing).contains("schema apply"), "{}", said(&missing));
        assert!(run(&["schema", "apply", "--history", &url]).status.success());
        let mut server = Server::start(&["--history", &url]);
        assert!(get(&server, "/readyz").contains(r#""history":{"status":"ok""#));
        stop(&mut server);
    }

    /// Says something to the server and answers its status line.
    fn post(server: &Server, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        let length = body.len();
        write!(stream, "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    fn spooled(metrics: &str) -> f64 {
        let of_log = |line: &str| {
            line.strip_prefix("emberkeep_history_spooled_entries{")?.rsplit(' ').next()?.parse::<f64>().ok()
        };
        metrics.lines().filter_map(of_log).sum::<f64>()
    }

    /// The server never reached history. What it left in its spool is delivered by hand.
    #[test]
    fn events_of_a_server_without_history_are_drained_from_its_spool() {
        let Some(cassandra) = shared_cassandra() else { return };
        let folder = scratch();
        let data = folder.path().to_str().expect("plain");
        let mut server = Server::start(&["--data", data, "--history", "cql://127.0.0.1:1/k"]);
        let login = r#"{"player_id": 7, "client_id": "c", "player_name": "P", "zone_id": 42,
            "position": {"x": 1.5, "y": 0, "z": -2}, "client_version": "1.4.2", "ip": "192.0.2.7"}"#;
        for _ in 0..2 {
            let answer = post(&server, "/v1/darkages/sessions", login);
            assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        }
        let begun = Instant::now();
        while spooled(&get(&server, "/metrics")) < 3.0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", get(&server, "/metrics"));
            std::thread::sleep(Duration::from_millis(50));
        }
        stop(&mut server);
        let url = cassandra.url("drained");
        block_on(async {
            let live = LiveKeyspace::connect(&url).await.expect("it answers");
            live.create(&Replication::Simple(1)).await.expect("created");
        });
        assert!(run(&["schema", "apply", "--drop", "--history", &url]).status.success());
        let drain = ["history", "drain", "--data", data, "--history", &url];
        let output = run(&drain);
        let answer = said(&output);
        let of_log =
            |line: &str| line.split_once(" delivered, 0 of them")?.0.rsplit(' ').next()?.parse::<u64>().ok();
        let delivered = answer.lines().filter_map(of_log).sum::<u64>();
        assert!(output.status.success() && delivered >= 3, "two logins and the end of a session: {answer}");
        let again = said(&run(&drain));
        assert!(again.lines().filter_map(of_log).sum::<u64>() == 0, "each once: {again}");
    }

    /// It stopped while history was away: its folders are counted and delivered without another server.
    #[test]
    fn what_a_stopped_server_left_is_counted_and_drained() {
        let folder = scratch();
        let path = |name: &str| folder.join(name).to_str().expect("plain").to_owned();
        let (data, spool, recorded) = (path("d"), path("s"), path("r"));
        let away = ["--history", "cql://127.0.0.1:1/k", "--history-spool", &spool, "--spool", &recorded];
        let mut server = Server::start(&[&["--data", &data][..], &away].concat());
        let at = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() - 60_000;
        let event = format!(
            r#"{{"events": [{{"timestamp": {at}, "event_id": "0197a3c8-7b7e-7cc3-9d3e-000000000001", "attacker_id": 1,
            "target_id": 2, "target_is_npc": true, "damage": 10, "is_kill": false, "zone_id": 7, "position_x": 0,
            "position_y": 0, "position_z": 0, "server_instance": "zone-7"}}]}}"#
        );
        let answer = post(&server, "/v1/darkages/combat-events", &event);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let login = r#"{"player_id": 7, "client_id": "c", "player_name": "P", "zone_id": 42,
            "position": {"x": 1.5, "y": 0, "z": -2}, "client_version": "1.4.2", "ip": "192.0.2.7"}"#;
        for _ in 0..2 {
            assert!(post(&server, "/v1/darkages/sessions", login).starts_with("HTTP/1.1 201"));
        }
        let begun = Instant::now();
        while spooled(&get(&server, "/metrics")) < 3.0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", get(&server, "/metrics"));
            std::thread::sleep(Duration::from_millis(50));
        }
        stop(&mut server);
        let url = format!("file:{}", path("h"));
        let stores = ["--data", &data, "--history", &url, "--history-spool", &spool, "--spool", &recorded];
        let history =
            |command: &str, more: &[&str]| run(&[&["history", command][..], &stores, more].concat());
        let waiting = |output: &Output| -> u64 {
            let entries = |line: &str| -> Option<u64> {
                let log: serde_json::Value = serde_json::from_str(line).ok()?;
                log["entries"].as_u64()
            };
            text(&output.stdout).lines().filter_map(entries).sum()
        };
        let lag = history("lag", &["--json", "--max-age", "30s"]);
        assert_eq!((lag.status.code(), waiting(&lag)), (Some(1), 4), "{}", said(&lag));
        let again = history("lag", &["--json", "--max-age", "1h"]);
        assert_eq!((again.status.code(), waiting(&again)), (Some(0), 4), "nothing changed: {}", said(&again));
        let drained = history("drain", &[]);
        assert!(
            drained.status.success() && said(&drained).contains("spool: 1 delivered"),
            "{}",
            said(&drained)
        );
        let lag = history("lag", &["--json", "--max-age", "1s"]);
        assert_eq!((lag.status.code(), waiting(&lag)), (Some(0), 0), "{}", said(&lag));
    }

    #[test]
    fn a_server_starts_while_its_cluster_is_away() {
        let arguments = ["serve", "--http", "127.0.0.1:0", "--history", "cql://ann:s3cret@127.0.0.1:1/k"];
        let mut server = Server::of(emberkeep(&arguments).stderr(Stdio::piped()));
        let begun = Instant::now();
        while !get(&server, "/readyz").contains(r#""status":"ok","history":{"status":"waiting""#) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", get(&server, "/readyz"));
        }
        assert!(get(&server, "/metrics").contains("\nemberkeep_history_open 0\n"));
        stop(&mut server);
        let mut log = String::new();
        server.process.stderr.take().expect("it is piped").read_to_string(&mut log).expect("read");
        assert!(log.contains("history cannot be reached") && !log.contains("s3cret"), "{log}");
    }
}
