//! What a transaction may not read or write is refused before anything is written.

use crate::builders::*;
use crate::context::Context;
use crate::families::*;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, LexBound, Read, Reply, Score, ScoreBound, Write, ZSlice};
use emberkeep_hot::limits::*;
use emberkeep_hot::{Error, Result, Tx};

/// Fills a key with this many elements, in pieces that one command may carry.
async fn fill(context: &Context, count: usize, write: impl Fn(Vec<Bytes>) -> Write) -> Bytes {
    let key = context.fresh();
    for piece in numbered(count).chunks(COMMAND_ARGUMENTS_MAX / 2) {
        context.put(&key, write(piece.to_vec())).await;
    }
    key
}

fn fields(names: Vec<Bytes>) -> Write {
    Write::HSet(names.into_iter().map(|name| (name.clone(), name)).collect())
}

fn zeros(members: Vec<Bytes>) -> Write {
    Write::ZAdd(members.into_iter().map(|member| (member, Score::from_i64(0))).collect())
}

/// A thousand elements are answered, one more is `TooLarge`; counts and parts of the same key are answered.
pub async fn replies_of_too_many_elements(context: &Context) {
    for count in [REPLY_ELEMENTS_MAX, REPLY_ELEMENTS_MAX + 1] {
        let hash = fill(context, count, fields).await;
        let members = fill(context, count, Write::SAdd).await;
        let ranked = fill(context, count, zeros).await;
        let queue = fill(context, count, Write::RPush).await;
        let whole = [
            (&hash, Read::HGetAll),
            (&members, Read::SMembers),
            (&ranked, Read::ZRange(all_ranks(), false)),
            (&ranked, Read::ZRange(all_ranks(), true)),
            (&queue, Read::LRange(0, -1)),
        ];
        for (key, read) in whole {
            check_whole(context, key, read, count).await;
        }
        let counts =
            [(&hash, Read::HLen), (&members, Read::SCard), (&ranked, Read::ZCard), (&queue, Read::LLen)];
        for (key, read) in counts {
            assert_eq!(context.read_in_transaction(key, read).await, Ok(int(count as i64)));
        }
        let parts = [
            Read::ZRange(ZSlice::Rank(1, 1_000), false),
            Read::ZRange(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 1_000), true),
        ];
        for read in parts {
            assert!(context.read_in_transaction(&ranked, read.clone()).await.is_ok(), "{read:?}");
        }
        assert!(context.read_in_transaction(&queue, Read::LRange(-1_000, -1)).await.is_ok());
    }
}

async fn check_whole(context: &Context, key: &Bytes, read: Read, count: usize) {
    let in_transaction = context.read_in_transaction(key, read.clone()).await;
    let plain = context.read(key, read.clone()).await;
    if count <= REPLY_ELEMENTS_MAX {
        assert_eq!(in_transaction.as_ref(), Ok(&plain), "{read:?} of {count}");
        return;
    }
    assert_eq!(plain, Reply::TooMany(count), "{read:?} of {count}");
    let result = matches!(in_transaction, Err(Error::TooLarge { found, .. }) if found == count);
    assert!(result, "{read:?} of {count}: {in_transaction:?}");
}

/// Ranges that ask for more than a reply may hold are refused without asking.
pub async fn ranges_of_too_many_elements(context: &Context) {
    let reads = [
        Read::LRange(0, 1_000),
        Read::LRange(-1_001, -1),
        Read::ZRange(ZSlice::Rank(5, 1_005), true),
        Read::ZRange(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 1_001), false),
        Read::ZRange(ZSlice::Lex(LexBound::Min, LexBound::Max, usize::MAX), false),
        Read::LRange(0, i64::MAX),
    ];
    for read in reads {
        let result = context.read_in_transaction(&context.fresh(), read.clone()).await;
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{read:?}: {result:?}");
    }
}

/// A value of several megabytes is a value; a collection of that size is read in parts.
pub async fn replies_of_too_many_bytes(context: &Context) {
    let large = Bytes::from(vec![b'x'; 3 * REPLY_BYTES_MAX]);
    let text = context.fresh();
    context.put(&text, Write::Set(large.clone(), Expiry::Never)).await;
    assert_eq!(context.read_in_transaction(&text, Read::Get).await, Ok(Reply::Blob(large.clone())));
    let hash = context.fresh();
    let half = large.slice(..REPLY_BYTES_MAX * 6 / 10);
    context.put(&hash, Write::HSet(vec![(b("a"), half.clone()), (b("b"), half.clone())])).await;
    assert_eq!(context.read_in_transaction(&hash, Read::HGet(b("b"))).await, Ok(Reply::Blob(half)));
    let result = context.read_in_transaction(&hash, Read::HGetAll).await;
    assert!(matches!(result, Err(Error::TooLarge { unit: "bytes", .. })), "HGETALL of 1.2 MiB");
    assert_eq!(context.read_in_transaction(&hash, Read::HLen).await, Ok(int(2)));
}

/// A large value is compared as a whole at the commit: a change in its middle makes a body run again.
pub async fn large_values_are_compared_whole(context: &Context) {
    let large = |fill: u8| {
        let mut value = vec![b'x'; 300_000];
        value[150_000] = fill;
        Bytes::from(value)
    };
    copy_while_it_changes(context, large(b'a'), large(b'b')).await;
}

/// The same for two values that were made to have the same SHA-1.
pub async fn values_of_equal_digests_are_distinguished(context: &Context) {
    let bytes = |hex: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    let colliding = |blocks: &str| {
        let mut value = [bytes(SHATTERED_PREFIX), bytes(blocks)].concat();
        value.resize(8_192, b'x');
        Bytes::from(value)
    };
    copy_while_it_changes(context, colliding(SHATTERED_BLOCKS[0]), colliding(SHATTERED_BLOCKS[1])).await;
}

/// Copies a value that an external client replaces in between.
async fn copy_while_it_changes(context: &Context, first: Bytes, second: Bytes) {
    let (key, copy) = (context.fresh(), context.fresh());
    context.put(&key, Write::Set(first, Expiry::Never)).await;
    let mut external = context.external();
    let (from, to) = (key.clone(), copy.clone());
    let mut runs = 0;
    let copied = context.transaction(move |tx| {
        let Reply::Blob(value) = tx.raw_read(&from, Read::Get)? else { return Ok(false) };
        runs += 1;
        if runs == 1 {
            external.disturb(&from, Write::Set(second.clone(), Expiry::Never));
        }
        tx.raw_write(to.clone(), Write::Set(value, Expiry::Never))?;
        Ok(true)
    });
    assert_eq!(copied.await, Ok(true));
    let (one, other) = (context.read(&key, Read::Get).await, context.read(&copy, Read::Get).await);
    assert!(one == other, "the copy is of what was there at the commit");
}

/// What no write may be: too many arguments, too long, too far in time, too large a transaction, empty.
pub async fn writes_out_of_bounds(context: &Context) {
    let many = numbered(COMMAND_ARGUMENTS_MAX + 1);
    let half = numbered(COMMAND_ARGUMENTS_MAX / 2 + 1);
    let long = Bytes::from(vec![b'x'; VALUE_BYTES_MAX + 1]);
    let wrong = [
        Write::SAdd(many.clone()),
        Write::RPush(many.clone()),
        Write::HDel(many),
        fields(half.clone()),
        zeros(half),
        Write::Set(long.clone(), Expiry::Never),
        Write::SAdd(vec![long.clone()]),
        Write::HSet(vec![(b("f"), long)]),
        Write::IncrBy((1 << 53) + 1),
        Write::IncrBy(i64::MIN),
        Write::ExpireAt(DEADLINE_MS_MAX + 1),
        Write::ExpireAt(0),
        Write::ExpireAt(-5),
        set_at("x", i64::MAX),
        set_at("x", 0),
        Write::SAdd(vec![]),
        Write::SRem(vec![]),
        Write::HSet(vec![]),
        Write::HDel(vec![]),
        Write::ZAdd(vec![]),
        Write::ZRem(vec![]),
        Write::LPush(vec![]),
        Write::RPush(vec![]),
        Write::LPop(0),
        Write::RPop(0),
        Write::LPop(usize::MAX),
        Write::RPop(i64::MAX as usize + 1),
    ];
    for write in wrong {
        let (beside, key) = (context.fresh(), context.fresh());
        let shown: String = format!("{write:?}").chars().take(60).collect();
        let result = context.write(vec![(beside.clone(), set("x")), (key, write)]).await;
        assert!(matches!(result, Err(Error::Invalid { .. })), "{shown}: {result:?}");
        assert_eq!(context.read(&beside, Read::Exists).await, int(0), "{shown}");
    }
}

/// The largest commands that are allowed do work.
pub async fn writes_at_the_bounds(context: &Context) {
    let members = fill(context, 1, |_| Write::SAdd(numbered(COMMAND_ARGUMENTS_MAX))).await;
    assert_eq!(context.read(&members, Read::SCard).await, int(COMMAND_ARGUMENTS_MAX as i64));
    let hash = fill(context, 1, |_| fields(numbered(COMMAND_ARGUMENTS_MAX / 2))).await;
    assert_eq!(context.read(&hash, Read::HLen).await, int(COMMAND_ARGUMENTS_MAX as i64 / 2));
    let longest = Bytes::from(vec![b'x'; VALUE_BYTES_MAX]);
    let key = context.fresh();
    context.put(&key, Write::Set(longest.clone(), Expiry::Never)).await;
    assert!(context.read(&key, Read::Get).await == Reply::Blob(longest), "8 MiB come back");
    let many = context.fresh();
    let pushes = (0..TRANSACTION_WRITES_MAX).map(|_| (many.clone(), Write::IncrBy(1))).collect();
    assert_eq!(context.write(pushes).await, Ok(()));
    assert_eq!(context.read(&many, Read::Get).await, blob(&TRANSACTION_WRITES_MAX.to_string()));
    let too_many = (0..=TRANSACTION_WRITES_MAX).map(|_| (many.clone(), Write::IncrBy(1))).collect();
    assert!(matches!(context.write(too_many).await, Err(Error::Invalid { what: "transaction", .. })));
    assert_eq!(context.read(&many, Read::Get).await, blob(&TRANSACTION_WRITES_MAX.to_string()));
    a_transaction_of_too_many_bytes(context).await;
    let furthest = context.fresh();
    context.put(&furthest, set_at("x", DEADLINE_MS_MAX)).await;
    assert_eq!(context.read(&furthest, Read::ExpireTime).await, int(DEADLINE_MS_MAX));
}

/// Entries of logs count as writes do, in number and in bytes.
pub async fn entries_of_logs_at_the_bounds(context: &Context) {
    let scope = context.scope();
    let entries = |log: u32, count: usize, bytes: usize| {
        let (scope, text) = (scope.clone(), "x".repeat(bytes));
        async move {
            let body = move |tx: &mut Tx<'_, World>| {
                tx.incr_by(&COUNT.key(log), 1)?;
                (0..count).try_for_each(|_| tx.append(&EVENTS.key(log), &text))
            };
            scope.transact(body).await
        }
    };
    let is_refused =
        |refused: &Result<()>| matches!(refused, Err(Error::Invalid { what: "transaction", .. }));
    assert_eq!(entries(1, TRANSACTION_WRITES_MAX - 1, 1).await, Ok(()));
    assert_eq!(
        scope.log_last(&EVENTS.key(1)).await.map(|last| last.sequence),
        Ok(TRANSACTION_WRITES_MAX as u64 - 1)
    );
    let refused = entries(2, TRANSACTION_WRITES_MAX, 1).await;
    assert!(is_refused(&refused), "{refused:?}");
    const LONG: usize = LOG_ENTRY_BYTES_MAX - 64;
    let refused = entries(2, TRANSACTION_BYTES_MAX / LONG + 1, LONG).await;
    assert!(is_refused(&refused), "{refused:?}");
    assert_eq!(scope.log_last(&EVENTS.key(2)).await.map(|last| last.sequence), Ok(0), "nothing was written");
    assert_eq!(entries(3, TRANSACTION_BYTES_MAX / LONG - 1, LONG).await, Ok(()));
    // More logs than one commit takes keys: transactions beside each other become several commits.
    let many = (0..4u32).map(|task| {
        let scope = scope.clone();
        let body = move |tx: &mut Tx<'_, World>| {
            (0..200).try_for_each(|n| tx.append(&EVENTS.key(1_000 + 200 * task + n), &"one".to_owned()))
        };
        tokio::spawn(async move { scope.transact(body).await })
    });
    for task in many.collect::<Vec<_>>() {
        assert_eq!(task.await.expect("no task panics"), Ok(()));
    }
    assert_eq!(scope.log_last(&EVENTS.key(1_799)).await.map(|last| last.sequence), Ok(1));
}

/// What a transaction writes is bounded in sum, also where each value is not too long.
async fn a_transaction_of_too_many_bytes(context: &Context) {
    let value = Bytes::from(vec![b'x'; TRANSACTION_BYTES_MAX / 16]);
    let keys: Vec<Bytes> = (0..16).map(|_| context.fresh()).collect();
    let set = |key: &Bytes| (key.clone(), Write::Set(value.clone(), Expiry::Never));
    let result = context.write(keys.iter().map(set).collect()).await;
    assert!(matches!(result, Err(Error::Invalid { what: "transaction", .. })), "{result:?}");
    assert_eq!(context.read(&keys[0], Read::Exists).await, int(0));
    assert_eq!(context.write(keys[1..].iter().map(set).collect()).await, Ok(()));
    assert_eq!(context.read(&keys[15], Read::Exists).await, int(1));
    context.write(keys.iter().map(|key| (key.clone(), Write::Del)).collect()).await.expect("they go again");
}

/// Keys: of no bytes and of too many are refused; the longest one works.
pub async fn keys_out_of_bounds(context: &Context) {
    let start = context.key("");
    let of = |len: usize| Bytes::from([&start[..], &vec![b'k'; len - start.len()]].concat());
    for wrong in [Bytes::new(), of(KEY_BYTES_MAX + 1)] {
        let result = context.write(vec![(wrong, set("x"))]).await;
        assert!(matches!(result, Err(Error::Invalid { what: "key", .. })), "{result:?}");
    }
    let longest = of(KEY_BYTES_MAX);
    context.put(&longest, set("x")).await;
    assert_eq!(context.read(&longest, Read::Get).await, blob("x"));
}

/// A deadline that has passed is refused, not taken for a DEL.
pub async fn deadlines_in_the_past(context: &Context) {
    let (key, beside) = (context.fresh(), context.fresh());
    context.put(&key, set("kept")).await;
    for back in [0, 1, 1_000_000] {
        for of_set in [true, false] {
            let (key, beside) = (key.clone(), beside.clone());
            let result: Result<()> = context
                .transaction(move |tx| {
                    tx.raw_write(beside.clone(), set("x"))?;
                    let at = tx.now() - back;
                    tx.raw_write(key.clone(), if of_set { set_at("new", at) } else { Write::ExpireAt(at) })
                })
                .await;
            assert!(matches!(result, Err(Error::Invalid { what: "deadline", .. })), "{result:?}");
        }
    }
    assert_eq!(context.read(&key, Read::Get).await, blob("kept"));
    assert_eq!(context.read(&beside, Read::Exists).await, int(0));
}

/// A transaction that writes nothing and reads nothing is a transaction.
pub async fn empty_transactions(context: &Context) {
    assert_eq!(context.transaction(|_| Ok(5)).await, Ok(5));
    assert_eq!(context.transaction(|tx| Ok(tx.now() > 0)).await, Ok(true));
    assert_eq!(context.write(vec![]).await, Ok(()));
    let replies = context.store().engine().read_many(vec![]).await;
    assert_eq!(replies, Ok(vec![]));
}

/// However long a caller is ready to wait: the transaction is made at once.
pub async fn a_transaction_with_all_the_time_in_the_world(context: &Context) {
    let key = context.fresh();
    for deadline in
        [TRANSACTION_DEADLINE_MAX, std::time::Duration::from_secs(u64::MAX), std::time::Duration::MAX]
    {
        let key = key.clone();
        let transaction =
            move |tx: &mut emberkeep_hot::Tx<'_, _>| tx.raw_write(key.clone(), Write::IncrBy(1));
        context.scope().deadline(deadline).transact(transaction).await.expect("a transaction");
    }
    assert_eq!(context.read(&key, Read::Get).await, Reply::Blob("3".into()));
}

/// How both files of the published SHA-1 collision (shattered.io) begin.
const SHATTERED_PREFIX: &str = "\
    255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f48656967687420332030\
    20522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163\
    652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0aff\
    d8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01";
/// And how they go on, differently and with the same digest, whatever follows.
const SHATTERED_BLOCKS: [&str; 2] = [
    "\
    7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038\
    e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f\
    2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1",
    "\
    7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38\
    e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0d\
    ecc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
];
