//! Sorted sets: ZSCORE, ZRANK, ZRANGE by rank, score and bytes, ZCARD, ZCOUNT, ZLEXCOUNT, ZADD, ZINCRBY, ZREM.

use crate::builders::*;
use crate::context::Context;
use crate::external::{Change, StoredValue};
use crate::families::{BOARD, World};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use bytes::Bytes;
use emberkeep_hot::command::{LexBound, Read, Reply, ScoreBound, Write, ZSlice};
use emberkeep_hot::{Error, Result, Tx};

const INF: f64 = f64::INFINITY;

fn range(slice: ZSlice, reverse: bool) -> Read {
    Read::ZRange(slice, reverse)
}

/// Members are added, moved, removed and added again; equal scores stand in the order of their bytes.
pub async fn members_and_scores(context: &Context) {
    let writes = [
        zadd(&[("c", 3.0), ("a", 3.0), ("x", 1.0)]),
        zadd(&[("x", 5.0), ("b", 3.0)]),
        zrem(&["c", "never"]),
        zadd(&[("c", -1.5), ("c", 2.0)]),
    ];
    let answers = [
        (Read::ZScore(b("x")), Reply::Score(score(5.0))),
        (Read::ZScore(b("c")), Reply::Score(score(2.0))),
        (Read::ZScore(b("never")), Reply::Nil),
        (Read::ZCard, int(4)),
        (range(all_ranks(), false), scored(&[("c", 2.0), ("a", 3.0), ("b", 3.0), ("x", 5.0)])),
        (range(all_ranks(), true), scored(&[("x", 5.0), ("b", 3.0), ("a", 3.0), ("c", 2.0)])),
        (Read::Exists, int(1)),
    ];
    replay(context, &writes, &answers).await;
    let found = [("c", 2.0), ("a", 3.0), ("b", 3.0), ("x", 5.0)].map(|(m, s)| (b(m), score(s)));
    replay_to_value(context, &writes, StoredValue::SortedSet(found.into_iter().collect()), None).await;
}

/// Positions, from the end and out of range, in both directions.
pub async fn ranges_by_rank(context: &Context) {
    let writes = [zadd(&[("a", 1.0), ("b", 2.0), ("x", 9.0)]), zadd(&[("c", 3.0), ("d", 4.0)]), zrem(&["x"])];
    let rank = |from, to, reverse, members: &[(&str, f64)]| {
        (range(ZSlice::Rank(from, to), reverse), scored(members))
    };
    let (a, bb, c, d) = (("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0));
    let answers = [
        rank(0, 0, false, &[a]),
        rank(0, 0, true, &[d]),
        rank(1, 2, false, &[bb, c]),
        rank(1, 2, true, &[c, bb]),
        rank(-2, -1, false, &[c, d]),
        rank(-2, -1, true, &[bb, a]),
        rank(-100, 1, false, &[a, bb]),
        rank(2, 100, false, &[c, d]),
        rank(3, 2, false, &[]),
        rank(4, 10, false, &[]),
        rank(-1, -2, false, &[]),
        rank(-100, -50, false, &[]),
        rank(0, -5, true, &[]),
        rank(1, -2, false, &[bb, c]),
    ];
    replay(context, &writes, &answers).await;
}

/// Scores with open and closed ends, limits and infinities, in both directions.
pub async fn ranges_by_score(context: &Context) {
    let writes =
        [zadd(&[("a", 1.0), ("b", 2.0), ("b2", 2.0)]), zadd(&[("c", 3.5), ("lo", -INF), ("hi", INF)])];
    let by = |min, max, limit, reverse, members: &[(&str, f64)]| {
        (range(ZSlice::Score(min, max, limit), reverse), scored(members))
    };
    let (min, max) = (ScoreBound::MIN, ScoreBound::MAX);
    let (lo, a, bb, b2, c, hi) = (("lo", -INF), ("a", 1.0), ("b", 2.0), ("b2", 2.0), ("c", 3.5), ("hi", INF));
    let answers = [
        by(min, max, 100, false, &[lo, a, bb, b2, c, hi]),
        by(min, max, 100, true, &[hi, c, b2, bb, a, lo]),
        by(excl(-INF), excl(INF), 100, false, &[a, bb, b2, c]),
        by(incl(1.0), incl(2.0), 100, false, &[a, bb, b2]),
        by(excl(1.0), incl(2.0), 100, false, &[bb, b2]),
        by(incl(1.0), excl(2.0), 100, true, &[a]),
        by(excl(1.0), excl(2.0), 100, false, &[]),
        by(incl(1.0), max, 2, false, &[a, bb]),
        by(min, incl(3.5), 2, true, &[c, b2]),
        by(min, max, 0, false, &[]),
        by(incl(3.0), incl(1.0), 100, false, &[]),
        by(incl(2.0), incl(2.0), 1, true, &[b2]),
    ];
    replay(context, &writes, &answers).await;
    let count = |min, max, n| (Read::ZCount(min, max), int(n));
    let counts = [
        count(min, max, 6),
        count(excl(-INF), excl(INF), 4),
        count(incl(2.0), incl(2.0), 2),
        count(excl(2.0), incl(3.5), 1),
        count(incl(9.0), incl(1.0), 0),
    ];
    replay(context, &writes, &counts).await;
}

/// Bytes among members of equal score, with open and closed ends, in both directions; scores are given as 0.
pub async fn ranges_by_bytes(context: &Context) {
    let writes =
        [zadd(&[("a", 7.0), ("b", 7.0), ("zz", 7.0)]), zadd(&[("B", 7.0), ("c", 7.0)]), zrem(&["zz"])];
    let by = |min, max, limit, reverse, members: &[&str]| {
        let members: Vec<_> = members.iter().map(|member| (*member, 0.0)).collect();
        (range(ZSlice::Lex(min, max, limit), reverse), scored(&members))
    };
    use LexBound::{Max, Min};
    let answers = [
        by(Min, Max, 100, false, &["B", "a", "b", "c"]),
        by(Min, Max, 100, true, &["c", "b", "a", "B"]),
        by(lex_incl("a"), lex_incl("c"), 100, false, &["a", "b", "c"]),
        by(lex_excl("a"), lex_excl("c"), 100, false, &["b"]),
        by(lex_excl("a"), Max, 1, false, &["b"]),
        by(Min, lex_excl("c"), 2, true, &["b", "a"]),
        by(lex_incl("aa"), lex_incl("bb"), 100, false, &["b"]),
        by(lex_incl("c"), lex_incl("a"), 100, false, &[]),
        by(Max, Min, 100, false, &[]),
        by(Min, Max, 0, false, &[]),
        (Read::ZLexCount(Min, Max), int(4)),
        (Read::ZLexCount(lex_excl("a"), lex_incl("c")), int(2)),
        (Read::ZLexCount(Max, Min), int(0)),
    ];
    replay(context, &writes, &answers).await;
}

/// Members of any bytes, as a board that is ordered by its members has them: zeros, the highest byte and members
/// that begin like others stand in the order of their bytes, in ranges, counts and ranks.
pub async fn ranges_of_any_bytes(context: &Context) {
    let m = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let ordered =
        [m(b"\0"), m(b"\0\0"), m(b"\0\xff"), m(b"\n"), m(b"["), m(b"a\0"), m(b"\xff"), m(b"\xff\xff")];
    let add = |members: &[Bytes]| Write::ZAdd(members.iter().map(|m| (m.clone(), score(0.0))).collect());
    let gone = m(b"\xff\xff\xff");
    let writes = [add(&[ordered[6].clone(), ordered[1].clone(), gone.clone()]), add(&ordered), {
        Write::ZRem(vec![gone.clone()])
    }];
    let some = |members: &[Bytes]| Reply::Scored(members.iter().map(|m| (m.clone(), score(0.0))).collect());
    let (after, to) = (LexBound::Excluded(ordered[2].clone()), LexBound::Included(ordered[6].clone()));
    let mut answers = vec![
        (range(ZSlice::Lex(LexBound::Min, LexBound::Max, 100), false), some(&ordered)),
        (range(ZSlice::Lex(after.clone(), to.clone(), 100), false), some(&ordered[3..7])),
        (range(ZSlice::Lex(after.clone(), LexBound::Max, 2), false), some(&ordered[3..5])),
        (range(ZSlice::Lex(LexBound::Min, LexBound::Excluded(ordered[6].clone()), 2), true), {
            some(&[ordered[5].clone(), ordered[4].clone()])
        }),
        (range(ZSlice::Lex(LexBound::Included(m(b"")), LexBound::Max, 1), false), some(&ordered[..1])),
        (Read::ZLexCount(after, to), int(4)),
        (Read::ZLexCount(LexBound::Min, LexBound::Included(m(b"\0\x01"))), int(2)),
        (Read::ZRank(gone, false), Reply::Nil),
    ];
    let ranks = ordered.iter().enumerate().map(|(n, m)| (Read::ZRank(m.clone(), false), int(n as i64)));
    answers.extend(ranks);
    replay(context, &writes, &answers).await;
}

/// The window around a member among thousands of one score, before and after own writes.
pub async fn windows_among_equals(context: &Context) {
    let key = context.fresh();
    for part in numbered(3_000).chunks(500) {
        context.put(&key, Write::ZAdd(part.iter().map(|m| (m.clone(), score(0.0))).collect())).await;
    }
    let above = range(ZSlice::Lex(LexBound::Min, lex_excl("001500"), 2), true);
    let below = range(ZSlice::Lex(lex_excl("001500"), LexBound::Max, 2), false);
    let count = Read::ZLexCount(LexBound::Min, lex_excl("001500"));
    let reads = move |tx: &mut Tx<'_, World>, key: &Bytes| {
        let rank = Read::ZRank(b("001500"), false);
        [above.clone(), below.clone(), count.clone(), rank].map(|read| tx.raw_read(key, read))
    };
    let window = |above: [&str; 2], below: [&str; 2], rank| {
        let two = |members: [&str; 2]| scored(&members.map(|member| (member, 0.0)));
        Ok::<_, Error>(vec![two(above), two(below), int(rank), int(rank)])
    };
    let (before, place) = (reads.clone(), key.clone());
    let seen = context.transaction(move |tx| before(tx, &place).into_iter().collect::<Result<Vec<_>>>());
    assert_eq!(seen.await, window(["001499", "001498"], ["001501", "001502"], 1_500));
    let seen = context.transaction(move |tx| {
        tx.raw_write(key.clone(), zadd(&[("001499x", 0.0), ("000000x", 0.0), ("001501x", 0.0)]))?;
        tx.raw_write(key.clone(), zrem(&["001499", "001501", "002000"]))?;
        reads(tx, &key).into_iter().collect::<Result<Vec<_>>>()
    });
    assert_eq!(seen.await, window(["001499x", "001498"], ["001501x", "001502"], 1_501));
}

/// Scores come back as the same doubles: fractions, the edge of exact integers, the largest, the smallest.
pub async fn scores_are_exact(context: &Context) {
    let values = [
        0.1,
        0.1 + 0.2,
        -1.0 / 3.0,
        9007199254740992.0,
        9007199254740993.0,
        1e17,
        123456789012345680.0,
        1e308,
    ]
    .into_iter()
    .chain([f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::MIN, INF, -INF, -0.0, 1784000000123.0, 1e-7]);
    for value in values {
        let answers = [
            (Read::ZScore(b("m")), Reply::Score(score(value))),
            (range(all_ranks(), false), scored(&[("m", value)])),
            (Read::ZCount(incl(value), incl(value)), int(1)),
            (range(ZSlice::Score(incl(value), incl(value), 10), true), scored(&[("m", value)])),
        ];
        replay(context, &[zadd(&[("m", 5.0)]), zadd(&[("m", value)])], &answers).await;
    }
}

/// An external client's -0 is 0: no read returns a difference.
pub async fn minus_zero_is_zero(context: &Context) {
    let key = context.fresh();
    let external = &mut context.external();
    assert!(external.change(&key, Change::Write(zadd(&[("m", -0.0)]))).await);
    assert_eq!(context.read(&key, Read::ZScore(b("m"))).await, Reply::Score(score(0.0)));
    let moved = {
        let key = key.clone();
        context.transaction(move |tx| {
            let before = tx.raw_read(&key, Read::ZScore(b("m")))?;
            tx.raw_write(key.clone(), zadd(&[("m", 1.0)]))?;
            Ok(before)
        })
    };
    assert_eq!(moved.await, Ok(Reply::Score(score(0.0))));
    assert_eq!(context.read(&key, Read::ZScore(b("m"))).await, Reply::Score(score(1.0)));
}

/// An external client leaves -0 in a small and in a large sorted set, which servers store differently:
/// transactions that read ranges with it and write are committed.
pub async fn minus_zero_in_ranges(context: &Context) {
    for size in [1, 400] {
        let (key, elsewhere) = (context.fresh(), context.fresh());
        let members: Vec<_> = numbered(size).into_iter().zip((1..).map(|n| score(f64::from(n)))).collect();
        context.put(&key, Write::ZAdd(members)).await;
        assert!(context.external().change(&key, Change::ZAddMinusZero(b("m"))).await);
        let at_zero = ZSlice::Score(incl(0.0), incl(0.0), 9);
        for slice in [ZSlice::Rank(0, 0), at_zero] {
            let (key, elsewhere, read) = (key.clone(), elsewhere.clone(), range(slice, false));
            let found = context.transaction(move |tx| {
                tx.raw_write(elsewhere.clone(), Write::IncrBy(1))?;
                tx.raw_read(&key, read.clone())
            });
            assert_eq!(found.await, Ok(scored(&[("m", 0.0)])), "among {size}");
        }
        assert_eq!(context.read(&elsewhere, Read::Get).await, blob("2"));
    }
}

/// Positions from both ends, among equal scores too.
pub async fn ranks(context: &Context) {
    let rank = |member: &str| Read::ZRank(b(member), false);
    let reverse = |member: &str| Read::ZRank(b(member), true);
    let writes = [
        zadd(&[("c", 1.0), ("a", 1.0), ("low", -5.0)]),
        zadd(&[("b", 1.0), ("high", f64::INFINITY), ("a", 1.0)]),
        zrem(&["c", "never"]),
        zadd(&[("low", 2.0), ("d", 1.0)]),
    ];
    let answers = [
        (rank("a"), int(0)),
        (rank("b"), int(1)),
        (rank("d"), int(2)),
        (rank("low"), int(3)),
        (rank("high"), int(4)),
        (rank("c"), Reply::Nil),
        (rank("never"), Reply::Nil),
        (reverse("high"), int(0)),
        (reverse("a"), int(4)),
        (reverse("d"), int(2)),
        (reverse("c"), Reply::Nil),
    ];
    replay(context, &writes, &answers).await;
    let answers = [(rank("m"), Reply::Nil), (reverse("m"), Reply::Nil)];
    replay(context, &[], &answers).await;
    replay(context, &[zadd(&[("m", 1.0)]), Write::Del], &answers).await;
}

/// A position among thousands of equal scores, after own writes.
pub async fn ranks_among_equals(context: &Context) {
    let key = context.fresh();
    for part in numbered(3_000).chunks(500) {
        context.put(&key, Write::ZAdd(part.iter().map(|m| (m.clone(), score(7.0))).collect())).await;
    }
    let body = move |tx: &mut Tx<'_, World>| {
        tx.raw_write(key.clone(), zadd(&[("001000x", 7.0), ("first", 6.0)]))?;
        tx.raw_write(key.clone(), zrem(&["000003", "002000"]))?;
        let ranks = ["first", "000000", "000004", "001000x", "001001", "002999", "002000"];
        let ranks = ranks.map(|member| tx.raw_read(&key, Read::ZRank(b(member), false)));
        let top = tx.raw_read(&key, Read::ZRank(b("002999"), true))?;
        Ok::<_, Error>((ranks.into_iter().collect::<Result<Vec<_>>>()?, top))
    };
    let expected = [Some(0), Some(1), Some(4), Some(1_001), Some(1_002), Some(2_999), None];
    let expected: Vec<Reply> = expected.into_iter().map(|rank| rank.map_or(Reply::Nil, int)).collect();
    assert_eq!(context.transaction(body).await, Ok((expected, int(0))));
}

/// Scores are increased without being read, in the order of the increments.
pub async fn increments_of_scores(context: &Context) {
    let incr = |member: &str, by: f64| Write::ZIncrBy(b(member), score(by));
    let writes = [
        zadd(&[("a", 1.0), ("b", 2.0), ("top", f64::INFINITY)]),
        incr("a", 0.1),
        incr("a", 0.2),
        incr("new", -2.5),
        incr("top", -1e300),
        zrem(&["b"]),
        incr("b", 4.0),
    ];
    let sum = 1.0 + 0.1 + 0.2;
    let answers = [
        (Read::ZScore(b("a")), Reply::Score(score(sum))),
        (Read::ZScore(b("new")), Reply::Score(score(-2.5))),
        (Read::ZScore(b("b")), Reply::Score(score(4.0))),
        (Read::ZRank(b("b"), false), int(2)),
        (Read::ZCard, int(4)),
        (Read::ZCount(incl(-2.5), incl(4.0)), int(3)),
        (range(all_ranks(), false), scored(&[("new", -2.5), ("a", sum), ("b", 4.0), ("top", f64::INFINITY)])),
    ];
    replay(context, &writes, &answers).await;
    let refused = context.write(vec![(context.fresh(), incr("m", f64::INFINITY))]).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "increment", .. })), "{refused:?}");
}

/// Ranks, increments and counts by the typed face, in a transaction and outside of one.
pub async fn typed_ranks(context: &Context) {
    let t = |text: &str| text.to_owned();
    let body = move |tx: &mut Tx<'_, World>| -> Result<_> {
        let key = BOARD.key(1);
        tx.zadd_many(&key, [(&t("ann"), 10.0), (&t("bob"), 20.0)])?;
        tx.zincr_by(&key, &t("ann"), 15.0)?;
        tx.zincr_by(&key, &t("cat"), 1.0)?;
        let ranks = (tx.zrank(&key, &t("ann"))?, tx.zrevrank(&key, &t("ann"))?, tx.zrank(&key, &t("dan"))?);
        Ok((ranks, tx.zscore(&key, &t("ann"))?))
    };
    let found = context.transaction(body).await;
    assert_eq!(found, Ok(((Some(2), Some(0), None), Some(25.0))));
    let (scope, key) = (context.scope(), BOARD.key(1));
    assert_eq!(scope.zrank(&key, &t("bob")).await, Ok(Some(1)));
    assert_eq!(scope.zrevrank(&key, &t("cat")).await, Ok(Some(2)));
    assert_eq!(scope.zrank(&key, &t("dan")).await, Ok(None));
    assert_eq!(scope.zcount(&key, incl(1.0), excl(25.0)).await, Ok(2));
    context.plant(&BOARD.key(2), zadd(&[("a", 0.0), ("b", 0.0), ("c", 0.0)])).await;
    assert_eq!(scope.zlexcount(&BOARD.key(2), lex_incl("a"), lex_excl("c")).await, Ok(2));
    let names = scope.zrange(&BOARD.key(2), ZSlice::Lex(lex_excl("a"), LexBound::Max, 9), true).await;
    assert_eq!(names, Ok(vec![(t("c"), 0.0), (t("b"), 0.0)]));
}

/// Every read of a sorted set that does not exist is empty.
pub async fn absent_sorted_set(context: &Context) {
    let answers = [
        (Read::ZScore(b("m")), Reply::Nil),
        (Read::ZCard, int(0)),
        (Read::ZCount(ScoreBound::MIN, ScoreBound::MAX), int(0)),
        (Read::ZLexCount(LexBound::Min, LexBound::Max), int(0)),
        (range(all_ranks(), false), scored(&[])),
        (range(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 10), true), scored(&[])),
        (range(ZSlice::Lex(LexBound::Min, LexBound::Max, 10), false), scored(&[])),
        (Read::Exists, int(0)),
    ];
    replay(context, &[], &answers).await;
    replay(context, &[zrem(&["m"])], &answers).await;
    replay(context, &[zadd(&[("m", 1.0)]), Write::Del], &answers).await;
}

/// The last member takes the sorted set with it, and its deadline.
pub async fn an_empty_sorted_set_vanishes(context: &Context) {
    let at = context.far(0).await;
    replay_to_absent(context, &[zadd(&[("a", 1.0), ("b", 1.0)]), Write::ExpireAt(at), zrem(&["a", "b"])])
        .await;
    let writes = [zadd(&[("a", 1.0)]), Write::ExpireAt(at), zrem(&["a"]), zadd(&[("a", 2.0)])];
    replay(context, &writes, &[(Read::ExpireTime, int(-1)), (Read::ZCard, int(1))]).await;
}

/// The end of a long sorted set is read in a body that wrote to it: what a transaction may read does not
/// shrink because it wrote.
pub async fn a_long_sorted_set_after_own_writes(context: &Context) {
    let key = context.fresh();
    for part in numbered(3_000).chunks(500) {
        let pairs =
            part.iter().map(|m| (m.clone(), score(String::from_utf8_lossy(m).parse().expect("digits"))));
        context.put(&key, Write::ZAdd(pairs.collect())).await;
    }
    let body = move |tx: &mut Tx<'_, World>| {
        tx.raw_write(key.clone(), zadd(&[("new", 1_500.5), ("last", 9_999.0)]))?;
        tx.raw_write(key.clone(), zrem(&["000003", "002999"]))?;
        let reads = [
            range(ZSlice::Rank(-2, -1), false),
            range(ZSlice::Rank(1_499, 1_501), false),
            range(ZSlice::Rank(0, 1), true),
            range(ZSlice::Rank(2_990, 2_990), true),
            Read::ZCard,
        ];
        reads.into_iter().map(|read| tx.raw_read(&key, read)).collect::<Result<Vec<_>>>()
    };
    let found = context.transaction(body).await;
    let expected = vec![
        scored(&[("002998", 2_998.0), ("last", 9_999.0)]),
        scored(&[("001500", 1_500.0), ("new", 1_500.5), ("001501", 1_501.0)]),
        scored(&[("last", 9_999.0), ("002998", 2_998.0)]),
        scored(&[("000010", 10.0)]),
        int(3_000),
    ];
    assert_eq!(found, Ok(expected));
}

/// The typed face of sorted sets.
pub async fn typed_sorted_set(context: &Context) {
    let key = BOARD.key(1);
    let body = move |tx: &mut Tx<'_, World>| -> Result<_> {
        let f = |text: &str| text.to_owned();
        tx.zadd(&key, &f("ann"), 10.0)?;
        tx.zadd(&key, &f("bob"), 20.0)?;
        tx.zadd(&key, &f("ann"), 30.0)?;
        tx.zadd(&key, &f("cat"), 1.0)?;
        tx.zrem(&key, &f("cat"))?;
        assert!(tx.zadd(&key, &f("nan"), f64::NAN).is_err(), "NaN is not a score");
        let counts = (tx.zcard(&key)?, tx.zcount(&key, incl(20.0), excl(30.0))?);
        let lex = tx.zlexcount(&key, LexBound::Min, LexBound::Min)?;
        Ok((
            tx.zscore(&key, &f("ann"))?,
            tx.zscore(&key, &f("cat"))?,
            counts,
            lex,
            tx.zrange(&key, all_ranks(), true)?,
        ))
    };
    let found = context.transaction(body).await.expect("a plain transaction");
    let top = vec![("ann".to_owned(), 30.0), ("bob".to_owned(), 20.0)];
    assert_eq!(found, (Some(30.0), None, (2, 1), 0, top));
}
