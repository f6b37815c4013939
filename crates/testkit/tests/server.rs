//! Starting, stopping and disturbing one server.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use emberkeep_testkit::{Flavor, RedisServer, Resp, require, scratch, shared_redis};

#[test]
fn starts_answers_and_leaves_nothing_behind() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let (pid, folder, address) = (redis.pid().unwrap(), redis.folder().to_owned(), redis.address());
    assert_eq!(redis.client().call(&["PING"]).text(), "PONG");
    drop(redis);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!folder.exists());
    assert!(Resp::connect(address).is_err());
}

#[test]
fn valkey_answers_too() {
    let Some(valkey) = emberkeep_testkit::valkey() else { return };
    assert_eq!(valkey.flavor(), Flavor::Valkey);
    assert!(valkey.client().call(&["INFO", "server"]).text().contains("valkey_version:9"));
}

#[test]
fn fresh_databases_do_not_see_each_other() {
    let Some(redis) = shared_redis() else { return };
    let (mine, yours) = (redis.fresh_db(), redis.fresh_db());
    assert!(redis.client_of(&mine).call(&["SET", "k", "v"]).is_ok());
    assert_eq!(redis.client_of(&yours).call(&["DBSIZE"]).int(), 0);
}

#[test]
fn killed_stopped_and_restarted_on_the_same_port() {
    let Some(redis) = require(RedisServer::options().appendonly().set("appendfsync", "always").start())
    else {
        return;
    };
    let mut before = redis.client();
    assert!(before.call(&["SET", "k", "v"]).is_ok());
    redis.kill9();
    assert!(before.try_call(&["PING"]).is_err());
    assert!(redis.pid().is_none());
    redis.restart().unwrap();
    assert_eq!(redis.client().call(&["GET", "k"]).text(), "v");
    redis.stop();
    assert!(Resp::connect(redis.address()).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.client().call(&["GET", "k"]).text(), "v");
}

#[test]
fn paused_it_is_silent_and_resumed_it_answers() {
    let Some(redis) = emberkeep_testkit::redis() else { return };
    let mut client = redis.client();
    redis.pause();
    client.set_read_timeout(Duration::from_millis(100)).unwrap();
    assert!(client.try_call(&["INCR", "n"]).is_err());
    redis.resume();
    client.set_read_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(client.read().unwrap().int(), 1);
}

#[test]
fn passwords_acls_and_memory_limits_hold() {
    let options = RedisServer::options()
        .acl("user default on >secret ~* &* +@all")
        .acl("user guest on >guest ~open:* +get")
        .maxmemory(1 << 20)
        .password("secret");
    let Some(redis) = require(options.start()) else { return };
    let mut guest = Resp::connect(redis.address()).unwrap();
    assert!(guest.call(&["GET", "open:1"]).is_error("NOAUTH"));
    assert!(guest.call(&["AUTH", "guest", "guest"]).is_ok());
    assert!(guest.call(&["SET", "open:1", "x"]).is_error("NOPERM"));
    let mut owner = redis.client();
    let big = "x".repeat(1 << 20);
    let _ = owner.call(&["SET", "big", &big]);
    assert!(owner.call(&["SET", "more", "x"]).is_error("OOM"));
    assert!(redis.url().contains(":secret@"));
}

#[test]
fn a_journal_in_two_parts_is_loaded_and_not_touched() {
    let folder = scratch();
    let (base, more) = (folder.join("base"), folder.join("more"));
    std::fs::write(&base, "#EK:1:27:0\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n").unwrap();
    let torn = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*2\r\n$4\r\nINC";
    std::fs::write(&more, torn).unwrap();
    let Some(one) = require(RedisServer::loading(&base)) else { return };
    assert_eq!(one.client().call(&["GET", "a"]).text(), "1");
    let two = RedisServer::options().load(&base).load(&more).start().unwrap();
    assert_eq!(two.client().call(&["GET", "a"]).text(), "2");
    assert_eq!(std::fs::read_to_string(&more).unwrap(), torn);
}

#[test]
fn a_journal_that_is_not_one_is_a_failure_with_the_reason() {
    let folder = scratch();
    std::fs::write(folder.join("bad"), "*1\r\n$9\r\nNOSUCHCMD\r\n").unwrap();
    if emberkeep_testkit::redis().is_none() {
        return;
    }
    let why = RedisServer::loading(folder.join("bad")).unwrap_err().to_string();
    assert!(why.contains("Unknown command"), "{why}");
}

#[test]
fn a_shifted_clock_is_off_by_what_was_asked_and_expiry_still_works() {
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        let options = RedisServer::options().flavor(flavor).clock_offset(180);
        let Some(server) = require(options.start()) else { continue };
        let mut client = server.client();
        assert_off_by(&mut client, 180);
        server.set_clock_offset(-180);
        assert_off_by(&mut client, -180);
        assert!(client.call(&["SET", "k", "v", "PX", "100"]).is_ok());
        let started = Instant::now();
        while client.call(&["EXISTS", "k"]).int() == 1 {
            assert!(started.elapsed() < Duration::from_secs(5), "{flavor:?} never expires");
        }
        assert!(started.elapsed() > Duration::from_millis(80), "{flavor:?} expires at once");
    }
}

fn assert_off_by(client: &mut Resp, offset_s: i64) {
    let theirs: i64 = client.call(&["TIME"]).items()[0].text().parse().unwrap();
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((theirs - ours - offset_s).abs() <= 2, "off by {} s", theirs - ours);
}
