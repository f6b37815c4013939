//! Many strings in one call: more than one MGET takes, all of them there, and for a user who may not MGET.

mod fault_harness;

use emberkeep_hot::command::RawKey;
use emberkeep_hot::{Error, Scope};
use emberkeep_schema::{Key, Number, Text, family};
use emberkeep_testkit::{FaultProxy, RedisServer, Resp, require};
use fault_harness::*;

family! {
    /// A number.
    pub NUMBER = "number:{arena}:{n}" { kind: Text<Number<i64>>, partition: Arena, parts: (n: u32), ttl: persistent, owner: "test" }
}

/// As many as one transaction may read together.
const MANY: u32 = 1_000;
/// What transactions before it may miss in the same call.
const BEFORE: u32 = 500;

/// How often the server has run a command.
fn calls(client: &mut Resp, command: &str) -> u64 {
    let stats = client.call(&["INFO", "commandstats"]);
    let head = format!("cmdstat_{command}:calls=");
    let found = stats.text().lines().find_map(|line| line.strip_prefix(&head)).map(str::to_owned);
    found.map_or(0, |line| line.split(',').next().and_then(|n| n.parse().ok()).expect("a number"))
}

/// Every other one is there.
fn fill(client: &mut Resp, name: &str) {
    for n in (0..MANY + BEFORE).step_by(2) {
        client.call(&["SET", &format!("number:{name}:{n}"), &n.to_string()]);
    }
}

async fn read(scope: &Scope<Arena>, numbers: std::ops::Range<u32>) -> Result<Vec<Option<i64>>, Error> {
    scope
        .transact(move |tx| tx.get_many(&numbers.clone().map(|n| NUMBER.key(n)).collect::<Vec<Key<_>>>()))
        .await
}

fn expected(numbers: std::ops::Range<u32>) -> Result<Vec<Option<i64>>, Error> {
    Ok(numbers.map(|n| n.is_multiple_of(2).then_some(i64::from(n))).collect())
}

#[tokio::test]
async fn more_strings_than_one_command_takes() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let mut client = server.client();
    fill(&mut client, "many");
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("many"));
    let before = calls(&mut client, "mget");
    let (some, more) = tokio::join!(read(&scope, 0..BEFORE), read(&scope, BEFORE..BEFORE + MANY));
    assert_eq!((some, more), (expected(0..BEFORE), expected(BEFORE..BEFORE + MANY)));
    assert_eq!(calls(&mut client, "mget") - before, 2, "{:?}", store.stats().unwrap());
    assert_eq!(store.stats().unwrap().read_calls, 1, "{:?}", store.stats().unwrap());
}

#[tokio::test]
async fn strings_that_are_all_there_are_read_without_a_script() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let mut client = server.client();
    fill(&mut client, "there");
    let store = store_on(&server.url()).await;
    let scope = store.scope(arena("there"));
    let keys: Vec<Key<_>> = (0..MANY).step_by(2).map(|n| NUMBER.key(n)).collect();
    let all: Vec<_> = (0..i64::from(MANY)).step_by(2).map(|n| Ok(Some(n))).collect();
    let before = calls(&mut client, "exec");
    // Twice: every now and then the script is asked, because it also tells the time.
    for _ in 0..2 {
        assert_eq!(scope.get_each(&keys).await, Ok(all.clone()));
    }
    assert!(calls(&mut client, "exec") > before, "{:?}", store.stats().unwrap());

    client.call(&["DEL", "number:there:2"]);
    client.call(&["DEL", "number:there:4"]);
    client.call(&["SADD", "number:there:4", "a"]);
    let found = scope.get_each(&keys).await.expect("each by itself");
    assert_eq!((&found[0], &found[1]), (&Ok(Some(0)), &Ok(None)));
    assert!(matches!(found[2], Err(Error::WrongType { .. })), "{:?}", found[2]);
    assert_eq!(found[3..], all[3..]);
}

#[tokio::test]
async fn a_user_who_may_get_but_not_mget() {
    let options = RedisServer::options()
        .acl("user default on nopass ~* &* +@all")
        .acl("user nomget on >word ~* &* +@all -mget");
    let Some(server) = require(options.start()) else { return };
    let mut client = server.client();
    fill(&mut client, "few");
    let store = store_on(&server.url().replace("redis://", "redis://nomget:word@")).await;
    let scope = store.scope(arena("few"));
    assert_eq!(read(&scope, 0..20).await, expected(0..20));
    // Twice, because the first commit asks whether it may SET, and only what is sure of it goes as swaps.
    for round in 1..=2 {
        let add = |n| {
            scope.transact(move |tx| {
                let sum = tx.get(&NUMBER.key(n))?.unwrap_or(0) + 100;
                tx.put(&NUMBER.key(n), &sum)
            })
        };
        assert_eq!(tokio::join!(add(2), add(4), add(5)), (Ok(()), Ok(()), Ok(())));
        let sums = read(&scope, 2..6).await;
        assert_eq!(sums, Ok(vec![Some(2 + 100 * round), None, Some(4 + 100 * round), Some(100 * round)]));
    }
    assert_eq!(calls(&mut client, "mget"), 0);
    assert!(
        store.stats().unwrap().commit_calls <= 4,
        "each round is one commit: {:?}",
        store.stats().unwrap()
    );
}

/// Reads of many strings and pages of sets are asked beside ROLE in a transaction where that is allowed. A
/// user who may not do so is served all the same, and the other users of the connection do not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_who_may_not_use_transactions() {
    let mut options = RedisServer::options().acl("user default on nopass ~* &* +@all");
    for missing in ["multi", "exec", "role"] {
        options = options.acl(&format!("user no{missing} on >word ~* &* +@all -{missing}"));
    }
    let Some(server) = require(options.start()) else { return };
    let mut client = server.client();
    fill(&mut client, "less");
    client.call(&["SADD", "members:less", "a", "b"]);
    let keys: Vec<Key<_>> = (0..MANY).step_by(2).map(|n| NUMBER.key(n)).collect();
    let all: Vec<_> = (0..i64::from(MANY)).step_by(2).map(|n| Ok(Some(n))).collect();
    for missing in ["multi", "exec", "role"] {
        let store = store_on(&server.url().replace("redis://", &format!("redis://no{missing}:word@"))).await;
        let scope = store.scope(arena("less"));
        for _ in 0..4 {
            let reads = (scope.get_each(&keys), read(&scope, 0..20));
            let (many, few) = tokio::join!(reads.0, reads.1);
            assert_eq!((many, few), (Ok(all.clone()), expected(0..20)), "without {missing}");
            let page = store.engine().scan_members(&RawKey::from_static(b"members:less"), None, 10).await;
            assert_eq!(page.map(|page| page.members.len()), Ok(2), "without {missing}");
        }
    }
}

/// The reply to the commit is lost: its receipt says how many strings were not greater. So does the reply, where it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_still_tells_what_was_not_greater() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let store = store_on(&proxy.url()).await;
    let scope = store.scope(arena("greater"));
    let all = |least: i64| (0..10u32).map(move |n| (NUMBER.key(n), least + i64::from(n)));
    assert_eq!(scope.put_each_if_greater(all(0)).await, Ok(0));
    scope.put(&NUMBER.key(3), 50).await.expect("a plain write");
    assert_eq!(scope.put_each_if_greater(all(1)).await, Ok(1), "with a reply");
    proxy.only_requests_with("EVALSHA");
    proxy.drop_replies(1);
    scope.put(&NUMBER.key(4), 60).await.expect("a write whose receipt answers");
    proxy.drop_replies(1);
    assert_eq!(scope.put_each_if_greater(all(2)).await, Ok(2), "without one");
    assert!(store.stats().unwrap().receipts_asked >= 2, "{:?}", store.stats().unwrap());
    let found = read(&scope, 0..10).await.expect("a read");
    let numbers: Vec<i64> = found.into_iter().flatten().collect();
    assert_eq!(numbers, [2, 3, 4, 50, 60, 7, 8, 9, 10, 11]);
}

/// What is compared needs GET, and a user without it is refused before anything is written.
#[tokio::test]
async fn a_user_without_get_sets_nothing_that_is_greater() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    let mut client = server.client();
    client.call(&["ACL", "SETUSER", "blind", "on", ">p", "~*", "&*", "+@all", "-get"]);
    let store = store_on(&server.url().replace("redis://", "redis://blind:p@")).await;
    let scope = store.scope(arena("blind"));
    let refused = scope.put_each_if_greater([(NUMBER.key(1), 7)]).await;
    assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
    assert_eq!(client.call(&["EXISTS", "number:blind:1"]).int(), 0);
}
