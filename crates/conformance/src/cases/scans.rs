//! Scans: every key that lives throughout, in pages, by glob patterns.

use crate::builders::*;
use crate::context::Context;
use crate::families::{COUNT, NOTE, World};
use bytes::Bytes;
use emberkeep_hot::command::Write;
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::{Error, Scope};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A glob that matches these bytes and nothing else, before `rest`.
fn literal(bytes: &[u8], rest: &str) -> Vec<u8> {
    let mut pattern = Vec::new();
    for byte in bytes {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.extend_from_slice(rest.as_bytes());
    pattern
}

/// All keys of a pattern; every cursor is printed and parsed on the way.
async fn scan(context: &Context, pattern: &[u8], count: usize) -> BTreeSet<Bytes> {
    let (mut keys, mut from) = (BTreeSet::new(), None);
    loop {
        let page = context.store().engine().scan(from, pattern, count).await.expect("a scan goes on");
        keys.extend(page.keys);
        let Some(next) = page.next else { return keys };
        from = Some(next.to_string().parse::<Cursor>().expect("a printed cursor can be parsed"));
    }
}

async fn write_all(context: &Context, keys: &[Bytes], write: Write) {
    for piece in keys.chunks(200) {
        context
            .write(piece.iter().map(|key| (key.clone(), write.clone())).collect())
            .await
            .expect("a transaction");
    }
}

/// Keys come and go while the scan runs: those that stay are all returned.
pub async fn keys_that_live_throughout(context: &Context) {
    let stay: Vec<Bytes> = (0..600).map(|n| context.key(&format!("stay:{n}"))).collect();
    write_all(context, &stay, set("x")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let churn = tokio::spawn(churn(context.other_scope(), context.key("come:"), stop.clone()));
    let prefix = context.key("");
    for count in [1, 7, 50, 1_000] {
        let found = scan(context, &literal(&prefix, "*"), count).await;
        let missing: Vec<_> = stay.iter().filter(|key| !found.contains(*key)).collect();
        assert!(missing.is_empty(), "{} of {} missing, pages of {count}", missing.len(), stay.len());
        assert!(found.iter().all(|key| key.starts_with(&prefix)));
    }
    stop.store(true, Ordering::Relaxed);
    churn.await.expect("no panic");
}

/// Inserts and deletes around the keys that stay.
async fn churn(scope: Scope<World>, start: Bytes, stop: Arc<AtomicBool>) {
    let key = |n: usize| Bytes::from([&start[..], n.to_string().as_bytes()].concat());
    for round in 0.. {
        for write in [set("x"), Write::Del] {
            let keys: Vec<Bytes> = (0..50).map(|n| key(round % 7 * 50 + n)).collect();
            let body = move |tx: &mut emberkeep_hot::Tx<'_, World>| {
                keys.iter().try_for_each(|key| tx.raw_write(key.clone(), write.clone()))
            };
            scope.transact(body).await.expect("a transaction");
        }
        tokio::task::yield_now().await;
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Patterns match as Redis matches them: stars, questions, classes, negated and reversed ones, escapes.
pub async fn glob_patterns(context: &Context) {
    let names = ["abc", "a*c", "a?c", "a[c", "a]c", "a\\c", "a-c", "aXc", "ac", "abbc", "b", "a^c"];
    let keys: Vec<Bytes> = names.iter().map(|name| context.key(&format!("g:{name}"))).collect();
    write_all(context, &keys, set("x")).await;
    let patterns: [(&str, &[&str]); 18] = [
        ("a*c", &["abc", "a*c", "a?c", "a[c", "a]c", "a\\c", "a-c", "aXc", "ac", "abbc", "a^c"]),
        ("a?c", &["abc", "a*c", "a?c", "a[c", "a]c", "a\\c", "a-c", "aXc", "a^c"]),
        ("a\\*c", &["a*c"]),
        ("a\\?c", &["a?c"]),
        ("a\\[c", &["a[c"]),
        ("a\\\\c", &["a\\c"]),
        ("a[b*]c", &["abc", "a*c"]),
        ("a[a-z]c", &["abc"]),
        ("a[z-a]c", &["abc"]),
        ("a[A-Z]c", &["aXc"]),
        ("a[^a-zA-Z]c", &["a*c", "a?c", "a[c", "a]c", "a\\c", "a-c", "a^c"]),
        ("a[\\]]c", &["a]c"]),
        ("a[\\-]c", &["a-c"]),
        ("a[\\\\]c", &["a\\c"]),
        ("a[[]c", &["a[c"]),
        ("?", &["b"]),
        ("a**c*", &["abc", "a*c", "a?c", "a[c", "a]c", "a\\c", "a-c", "aXc", "ac", "abbc", "a^c"]),
        ("none*", &[]),
    ];
    let start = context.key("g:");
    for (pattern, expected) in patterns {
        let found = scan(context, &literal(&start, pattern), 100).await;
        let expected: BTreeSet<Bytes> =
            expected.iter().map(|name| context.key(&format!("g:{name}"))).collect();
        assert_eq!(found, expected, "{pattern}");
    }
}

/// A pattern made to take exponential time does not.
pub async fn a_hostile_pattern(context: &Context) {
    let key = context.key(&format!("h:{}", "a".repeat(300)));
    context.put(&key, set("x")).await;
    let pattern = literal(&context.key("h:"), &("a*".repeat(12) + "b"));
    let found =
        tokio::time::timeout(std::time::Duration::from_secs(20), scan(context, &pattern, 1_000)).await;
    assert_eq!(found.expect("a scan ends"), BTreeSet::new());
}

/// Keys that have ended are not returned, those with a deadline to come are.
pub async fn ended_keys_are_not_returned(context: &Context) {
    let soon = context.now().await + 20;
    let far = context.far(0).await;
    let (ends, lives) = (context.key("e:ends"), context.key("e:lives"));
    context
        .write(vec![(ends, set_at("x", soon)), (lives.clone(), set_at("x", far))])
        .await
        .expect("a transaction");
    context.past(soon).await;
    let found = scan(context, &literal(&context.key("e:"), "*"), 10).await;
    assert_eq!(found, [lives].into());
}

/// A family's scan gives typed keys, and tells the partition where the key does.
pub async fn typed_scans(context: &Context) {
    let (here, there) = (context.scope(), context.scope_beside("scan"));
    for id in 0..30 {
        here.put(&NOTE.key(id), "x".into()).await.expect("a transaction");
    }
    there.put(&NOTE.key(77), "x".into()).await.expect("a transaction");
    let (mut mine, mut theirs, mut from) = (BTreeSet::new(), BTreeSet::new(), None);
    loop {
        let page = context.store().scan::<NOTE>(from, 10).await.expect("a scan goes on");
        for (partition, key) in page.keys {
            let (id,) = NOTE.parts(&key);
            match partition {
                Some(partition) if partition == *here.partition() => mine.insert(id),
                Some(partition) if partition == *there.partition() => theirs.insert(id),
                _ => false,
            };
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!((mine, theirs), ((0..30).collect(), [77].into()));
}

/// A scan of one partition returns its keys of the family and no others.
pub async fn scans_of_one_partition(context: &Context) {
    let (here, there) = (context.scope(), context.scope_beside("scan"));
    for id in 0..30 {
        here.put(&NOTE.key(id), "x".into()).await.expect("a transaction");
        there.put(&NOTE.key(100 + id), "x".into()).await.expect("a transaction");
    }
    here.put(&COUNT.key(1), 1).await.expect("a transaction");
    for (scope, first) in [(here, 0), (there, 100)] {
        for count in [50, 1_000] {
            let (mut found, mut from) = (BTreeSet::new(), None);
            loop {
                let page = scope.scan::<NOTE>(from, count).await.expect("a scan goes on");
                found.extend(page.keys.iter().map(|key| NOTE.parts(key).0));
                from =
                    page.next.map(|next| next.to_string().parse().expect("a printed cursor can be parsed"));
                if from.is_none() {
                    break;
                }
            }
            assert_eq!(found, (first..first + 30).collect(), "pages of {count}");
        }
    }
}

/// Text that is not a cursor is an error, and a position that no engine has ends the scan or is refused.
pub async fn wrong_cursors(context: &Context) {
    for text in ["", "-", "1", "a-b", "1-", "-1-2", "4294967296-0"] {
        assert!(matches!(text.parse::<Cursor>(), Err(Error::Invalid { what: "cursor", .. })), "{text:?}");
    }
    let nowhere = Cursor { place: u32::MAX, position: 0 };
    let page = context.store().engine().scan(Some(nowhere), b"*", 10).await;
    match page {
        Ok(page) => assert!(page.keys.is_empty() && page.next.is_none(), "{page:?}"),
        Err(error) => assert!(matches!(error, Error::Invalid { .. }), "{error}"),
    }
}
