//! A journal's folder is a Redis `appendonlydir`: a real redis-server loads it, and ours loads Redis' own.

use bytes::Bytes;
use emberkeep_hot::command::{Expiry, RawKey, Score, Write};
use emberkeep_hot::journal::{Durability, Journal, JournalOptions, Recovery};
use emberkeep_testkit::{RedisServer, Resp, Scratch, require, scratch};
use std::fs;
use std::path::Path;

type Transaction = Vec<(RawKey, Write)>;

/// A deadline that no test lives to see.
const LATER: i64 = 4_000_000_000_123;

fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn list(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(|word| b(word)).collect()
}

fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

/// Every write, beside the words in which a person would tell it to Redis. `/` parts the commands of one
/// transaction.
fn story() -> Vec<(&'static str, Transaction)> {
    let one = |key: &str, write: Write| vec![(b(key), write)];
    vec![
        ("SET plain hello", one("plain", Write::Set(b("hello"), Expiry::Never))),
        ("SET timed hello PXAT 4000000000123", one("timed", Write::Set(b("hello"), Expiry::At(LATER)))),
        ("SET timed again KEEPTTL", one("timed", Write::Set(b("again"), Expiry::Keep))),
        (
            "SET gone soon / DEL gone",
            vec![(b("gone"), Write::Set(b("soon"), Expiry::Never)), (b("gone"), Write::Del)],
        ),
        ("INCRBY count 41", one("count", Write::IncrBy(41))),
        ("INCRBY count -50", one("count", Write::IncrBy(-50))),
        (
            "HSET hash a 1 b 2 c 3",
            one("hash", Write::HSet(vec![(b("a"), b("1")), (b("b"), b("2")), (b("c"), b("3"))])),
        ),
        ("HDEL hash b nothing", one("hash", Write::HDel(list(&["b", "nothing"])))),
        ("SADD set x y z", one("set", Write::SAdd(list(&["x", "y", "z"])))),
        ("SREM set y", one("set", Write::SRem(list(&["y"])))),
        (
            "ZADD board 1.5 a -inf b 1e300 c 17179869184000 d 0.1 e",
            one(
                "board",
                Write::ZAdd(vec![
                    (b("a"), score(1.5)),
                    (b("b"), score(f64::NEG_INFINITY)),
                    (b("c"), score(1e300)),
                    (b("d"), score(17_179_869_184_000.0)),
                    (b("e"), score(0.1)),
                ]),
            ),
        ),
        ("ZREM board c", one("board", Write::ZRem(list(&["c"])))),
        ("LPUSH list a b c", one("list", Write::LPush(list(&["a", "b", "c"])))),
        ("RPUSH list d e f g", one("list", Write::RPush(list(&["d", "e", "f", "g"])))),
        ("LPOP list 1 / RPOP list 2", vec![(b("list"), Write::LPop(1)), (b("list"), Write::RPop(2))]),
        ("LTRIM list 0 -2", one("list", Write::LTrim(0, -2))),
        ("PEXPIREAT hash 4000000000123", one("hash", Write::ExpireAt(LATER))),
        ("PEXPIREAT list 4000000000123 NX", one("list", Write::ExpireAtIfNone(LATER))),
        (
            "PEXPIREAT set 4000000000123 / PERSIST set",
            vec![(b("set"), Write::ExpireAt(LATER)), (b("set"), Write::Persist)],
        ),
    ]
}

/// Bytes that look like the journal's own lines must not confuse either side.
fn awkward() -> Transaction {
    let value = b"\r\n#EK:1:2:00000000\r\n#EK-SYNC:9999:00000000\r\n*1\r\n$4\r\nEXEC\r\n\0\xff".as_slice();
    vec![(Bytes::from_static(b"\r\n#\0\xfe"), Write::Set(Bytes::from_static(value), Expiry::Never))]
}

fn tell(client: &mut Resp, words: &str) {
    for command in words.split(" / ") {
        let reply = client.call(&command.split(' ').collect::<Vec<_>>());
        assert!(!reply.is_error(""), "{command}: {reply:?}");
    }
}

/// Everything Redis holds: its own digest of all keys and values, and each key's deadline.
fn keyspace(client: &mut Resp) -> (String, Vec<(Vec<u8>, i64)>) {
    let digest = client.call(&["DEBUG", "DIGEST"]).text();
    let mut deadlines: Vec<_> =
        client.call(&["KEYS", "*"]).items().iter().map(|key| key.bytes().to_vec()).collect();
    deadlines.sort();
    let deadlines = deadlines.into_iter().map(|key| {
        let at = client.call(&[b"PEXPIRETIME".as_slice(), &key]).int();
        (key, at)
    });
    (digest, deadlines.collect())
}

/// A Redis that has loaded a copy of the folder.
fn redis_with(data: &Path) -> Option<RedisServer> {
    let server = require(RedisServer::options().appendonly().start())?;
    server.stop();
    let folder = server.folder().join("appendonlydir");
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(data.join("appendonlydir")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    server.restart().unwrap();
    Some(server)
}

fn open(data: &Path) -> (Journal, Recovery, Transaction) {
    let mut loaded = Transaction::new();
    let options = JournalOptions { durability: Durability::Always, ..JournalOptions::new(data) };
    let (journal, recovery) = Journal::open(options, &mut |key, write| {
        loaded.push((key, write));
        Ok(())
    })
    .unwrap();
    (journal, recovery, loaded)
}

/// Writes the story; rewrites it at the given places, with all writes so far for a state.
fn journal_of(data: &Path, rewrite_after: &[usize]) {
    let (journal, ..) = open(data);
    let mut past = Transaction::new();
    for (n, transaction) in
        story().into_iter().map(|(_, transaction)| transaction).chain([awkward()]).enumerate()
    {
        journal.append(&transaction, vec![]).unwrap();
        past.extend(transaction);
        if rewrite_after.contains(&n) {
            let mut rewrite = journal.begin_rewrite().unwrap();
            for (key, write) in &past {
                rewrite.write(key, std::slice::from_ref(write)).unwrap();
            }
            rewrite.finish().unwrap();
        }
    }
    journal.close().unwrap();
}

/// A Redis on which a client has made the same writes.
fn redis_after_writes() -> Option<RedisServer> {
    let server = require(RedisServer::start())?;
    let mut client = server.client();
    story().iter().for_each(|(words, _)| tell(&mut client, words));
    for (key, write) in awkward() {
        let Write::Set(value, _) = write else { unreachable!("the awkward transaction is a SET") };
        client.call(&[b"SET", &key[..], &value[..]]);
    }
    Some(server)
}

#[test]
fn redis_loads_what_we_wrote() {
    let Some(answer) = redis_after_writes() else { return };
    let expected = keyspace(&mut answer.client());
    for rewrite_after in [&[][..], &[4], &[2, 9, 17]] {
        let data: Scratch = scratch();
        journal_of(data.path(), rewrite_after);
        let Some(loaded) = redis_with(data.path()) else { return };
        assert_eq!(
            keyspace(&mut loaded.client()),
            expected,
            "rewritten after {rewrite_after:?}\n{}",
            loaded.log()
        );
    }
}

#[test]
fn redis_loads_all_or_nothing_of_a_torn_transaction() {
    let data = scratch();
    let (journal, ..) = open(data.path());
    let transaction = vec![(b("a"), Write::IncrBy(1)), (b("b"), Write::IncrBy(1))];
    journal.append(&transaction, vec![]).unwrap();
    journal.close().unwrap();
    let file = data.join("appendonlydir/appendonly.aof.1.incr.aof");
    let bytes = fs::read(&file).unwrap();
    let exec = bytes.windows(4).position(|window| window == b"EXEC").unwrap();
    fs::write(&file, &bytes[..exec]).unwrap();
    let Some(server) = redis_with(data.path()) else { return };
    assert_eq!(server.client().call(&["DBSIZE"]).int(), 0);
    assert_eq!(open(data.path()).2, []);
}

#[test]
fn we_load_what_redis_wrote() {
    let options = RedisServer::options().appendonly().set("aof-use-rdb-preamble", "no");
    let Some(server) = require(options.start()) else { return };
    let mut client = server.client();
    story().iter().take(9).for_each(|(words, _)| tell(&mut client, words));
    tell(&mut client, "BGREWRITEAOF");
    while client.call(&["INFO", "persistence"]).text().contains("aof_rewrite_in_progress:1") {
        std::thread::yield_now();
    }
    story().iter().skip(9).for_each(|(words, _)| tell(&mut client, words));
    tell(&mut client, "MULTI / SET in multi / DEL plain / EXEC");
    let expected = keyspace(&mut client);
    server.stop();

    // Ours reads Redis' files and goes on in one of its own; a second Redis judges the whole.
    let (journal, recovery, loaded) = open(server.folder());
    assert!(recovery.files.len() >= 2 && !loaded.is_empty(), "{recovery:?}");
    journal.append(&[(b("ours"), Write::IncrBy(1))], vec![]).unwrap();
    journal.close().unwrap();
    assert_eq!(open(server.folder()).2.len(), loaded.len() + 1);
    let data = scratch();
    let (journal, ..) = open(data.path());
    for transaction in loaded.chunks(5) {
        journal.append(transaction, vec![]).unwrap();
    }
    journal.close().unwrap();
    let Some(judge) = redis_with(data.path()) else { return };
    assert_eq!(keyspace(&mut judge.client()), expected);
    let Some(both) = redis_with(server.folder()) else { return };
    assert_eq!(both.client().call(&["GET", "ours"]).text(), "1");
}
