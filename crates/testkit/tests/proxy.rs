//! Delays and losses, before a real Redis.

use std::time::{Duration, Instant};

use emberkeep_testkit::{FaultProxy, Resp, shared_redis};

/// A key of one's own, a proxy, a client through it and one beside it.
fn set_up(key: &str) -> Option<(FaultProxy, Resp, Resp)> {
    let redis = shared_redis()?;
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let through = Resp::connect(proxy.address()).unwrap();
    let mut beside = redis.client();
    beside.call(&["DEL", key]);
    Some((proxy, through, beside))
}

#[test]
fn without_faults_everything_passes() {
    let Some((proxy, mut through, _)) = set_up("pass") else { return };
    let big = "x".repeat(3 << 20);
    assert!(through.call(&["SET", "pass", &big]).is_ok());
    assert_eq!(through.call(&["GET", "pass"]).text(), big);
    assert_eq!(proxy.counts().requests, 2);
}

#[test]
fn a_dropped_request_is_not_executed() {
    let Some((proxy, mut through, mut beside)) = set_up("before") else { return };
    proxy.drop_requests(1);
    assert!(through.try_call(&["INCR", "before"]).is_err());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(beside.call(&["EXISTS", "before"]).int(), 0);
    let mut again = Resp::connect(proxy.address()).unwrap();
    assert_eq!(again.call(&["INCR", "before"]).int(), 1);
    assert_eq!(proxy.counts().requests_dropped, 1);
}

#[test]
fn a_dropped_reply_means_executed_exactly_once() {
    let Some((proxy, mut through, mut beside)) = set_up("after") else { return };
    for round in 1..=200 {
        proxy.drop_replies(1);
        assert!(through.try_call(&["INCR", "after"]).is_err(), "the client must see the end");
        // No waiting: the end of the stream comes after the execution.
        assert_eq!(beside.call(&["GET", "after"]).text(), round.to_string());
        through = Resp::connect(proxy.address()).unwrap();
    }
    assert_eq!(proxy.counts().replies_dropped, 200);
}

#[test]
fn in_a_pipeline_all_before_the_doomed_one_are_executed_and_none_after() {
    let Some((proxy, mut through, mut beside)) = set_up("pipe") else { return };
    proxy.only_requests_with("doomed");
    proxy.drop_replies(1);
    for word in ["a", "b", "doomed", "c", "d"] {
        through.send(&["RPUSH", "pipe", word]).unwrap();
    }
    while through.read().is_ok() {}
    let list = beside.call(&["LRANGE", "pipe", "0", "-1"]);
    let words: Vec<String> = list.items().iter().map(|item| item.text()).collect();
    assert_eq!(words, ["a", "b", "doomed"]);
}

#[test]
fn random_drops_lose_only_what_the_counters_say() {
    let Some((proxy, _, mut beside)) = set_up("random") else { return };
    proxy.random_drops(42, 0.1, 0.1);
    let mut acknowledged = 0;
    for _ in 0..300 {
        let mut through = Resp::connect(proxy.address()).unwrap();
        acknowledged += i64::from(through.try_call(&["INCR", "random"]).is_ok());
    }
    let counts = proxy.counts();
    let executed: i64 = beside.call(&["GET", "random"]).text().parse().unwrap();
    assert!(counts.requests_dropped > 0 && counts.replies_dropped > 0, "{counts:?}");
    assert_eq!(executed, 300 - counts.requests_dropped as i64);
    assert_eq!(acknowledged, executed - counts.replies_dropped as i64);
}

#[test]
fn cut_refused_and_accepted_again() {
    let Some((proxy, mut through, _)) = set_up("cut") else { return };
    assert_eq!(through.call(&["PING"]).text(), "PONG");
    proxy.cut_all();
    assert!(through.try_call(&["PING"]).is_err());
    proxy.refuse();
    // The kernel completes the handshake; the first use shows that no server is there.
    let refused = Resp::connect(proxy.address()).and_then(|mut c| c.try_call(&["PING"]));
    assert!(refused.is_err());
    proxy.accept();
    assert_eq!(Resp::connect(proxy.address()).unwrap().call(&["PING"]).text(), "PONG");
    assert_eq!((proxy.counts().cuts, proxy.counts().refused), (2, 1));
}

#[test]
fn a_dead_backend_cuts_and_a_dropped_proxy_is_gone() {
    let proxy = FaultProxy::start(("127.0.0.1", emberkeep_testkit::free_port())).unwrap();
    let mut through = Resp::connect(proxy.address()).unwrap();
    assert!(through.try_call(&["PING"]).is_err());
    let address = proxy.address();
    drop(proxy);
    // Not at once: a child that another test is starting right now holds copies of all our sockets
    // between its fork and its exec.
    let deadline = Instant::now() + Duration::from_secs(2);
    while Resp::connect(&address).is_ok() {
        assert!(Instant::now() < deadline, "a process still listens on {address}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The fastest of many round trips: what other tests and compilers take away from the machine is not
/// the proxy's delay. Nothing may be faster than asked, and something must be about as fast.
#[test]
fn a_delay_is_precise_and_costs_no_throughput() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let mut through = Resp::connect(proxy.address()).unwrap();
    for (there, back) in [(500, 500), (1_300, 400), (5_000, 5_000)] {
        proxy.delay(Duration::from_micros(there), Duration::from_micros(back));
        let asked = Duration::from_micros(there + back);
        let fastest = fastest_round_trip(&mut through, asked + Duration::from_millis(1));
        assert!(fastest > asked - Duration::from_micros(200), "asked {asked:?}, got {fastest:?}");
        assert!(fastest < asked + Duration::from_millis(1), "asked {asked:?}, got {fastest:?}");
    }
    let started = Instant::now();
    for _ in 0..2_000 {
        through.send(&["PING"]).unwrap();
    }
    for _ in 0..2_000 {
        through.read().unwrap();
    }
    // A sleep per request would take 20 s here.
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// At least 50 round trips, and on until one is below `enough` or ten seconds have passed.
fn fastest_round_trip(client: &mut Resp, enough: Duration) -> Duration {
    let (started, mut fastest) = (Instant::now(), Duration::MAX);
    for round in 0.. {
        let sent = Instant::now();
        client.call(&["PING"]);
        fastest = fastest.min(sent.elapsed());
        let late = started.elapsed() > Duration::from_secs(10);
        if round >= 50 && (fastest < enough || late) {
            break;
        }
    }
    fastest
}

#[test]
fn a_silent_connection_stays_open_and_never_speaks_again() {
    let Some((proxy, mut through, mut beside)) = set_up("silent") else { return };
    assert_eq!(through.call(&["INCR", "silent"]).int(), 1);
    proxy.silence();
    through.set_read_timeout(Duration::from_millis(50)).unwrap();
    let error = through.try_call(&["INCR", "silent"]).unwrap_err();
    assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{error}");
    let mut another = Resp::connect(proxy.address()).unwrap();
    another.set_read_timeout(Duration::from_millis(50)).unwrap();
    assert!(another.try_call(&["PING"]).is_err(), "new connections are let in and get no answer");
    proxy.speak();
    assert!(through.try_call(&["PING"]).is_err(), "it has lost bytes");
    assert_eq!(Resp::connect(proxy.address()).unwrap().call(&["INCR", "silent"]).int(), 2);
    assert_eq!(beside.call(&["GET", "silent"]).text(), "2", "what was swallowed was never executed");
}
