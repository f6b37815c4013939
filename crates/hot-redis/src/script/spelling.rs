//! Reads, writes, scores and types in the spelling of Redis.

use bytes::Bytes;
use emberkeep_hot::command::*;

/// A read's command, the command that counts what it would give (where that is unbounded), and its arguments.
pub(super) fn read_words(read: &Read) -> (&'static str, &'static str, Vec<Bytes>) {
    // Ends on different sides of zero: how wide the range is depends on the length.
    let open =
        |start: i64, stop: i64, count: &'static str| if (start < 0) == (stop < 0) { "" } else { count };
    let name = read.name();
    match read {
        Read::Get | Read::Exists | Read::ExpireTime | Read::HLen | Read::SCard | Read::ZCard | Read::LLen => {
            (name, "", vec![])
        }
        Read::HGetAll => (name, "HLEN", vec![]),
        Read::SMembers => (name, "SCARD", vec![]),
        Read::HGet(word) | Read::SIsMember(word) | Read::ZScore(word) => (name, "", vec![word.clone()]),
        Read::ZRank(member, _) => (name, "", vec![member.clone()]),
        Read::ZCount(min, max) => (name, "", vec![score_bound(min), score_bound(max)]),
        Read::ZLexCount(min, max) => (name, "", vec![lex_bound(min), lex_bound(max)]),
        Read::LRange(start, stop) => (name, open(*start, *stop, "LLEN"), vec![number(*start), number(*stop)]),
        Read::ZRange(ZSlice::Rank(start, stop), reverse) => {
            let mut words = vec![number(*start), number(*stop)];
            words.extend(reverse.then(|| Bytes::from_static(b"REV")));
            words.push(Bytes::from_static(b"WITHSCORES"));
            (name, open(*start, *stop, "ZCARD"), words)
        }
        Read::ZRange(ZSlice::Score(min, max, limit), reverse) => {
            let (first, last) = if *reverse { (max, min) } else { (min, max) };
            let mut words = vec![score_bound(first), score_bound(last), Bytes::from_static(b"BYSCORE")];
            words.extend(reverse.then(|| Bytes::from_static(b"REV")));
            words.extend_from_slice(&limited([Bytes::new(), Bytes::new()], *limit)[2..]);
            words.push(Bytes::from_static(b"WITHSCORES"));
            (name, "", words)
        }
        // No command gives scores with a range by bytes; such a slice has none by contract.
        Read::ZRange(ZSlice::Lex(min, max, limit), false) => {
            ("ZRANGEBYLEX", "", limited([lex_bound(min), lex_bound(max)], *limit).to_vec())
        }
        Read::ZRange(ZSlice::Lex(min, max, limit), true) => {
            ("ZREVRANGEBYLEX", "", limited([lex_bound(max), lex_bound(min)], *limit).to_vec())
        }
    }
}

fn limited([first, last]: [Bytes; 2], limit: usize) -> [Bytes; 5] {
    [first, last, Bytes::from_static(b"LIMIT"), Bytes::from_static(b"0"), Bytes::from(limit.to_string())]
}

fn score_bound(bound: &ScoreBound) -> Bytes {
    Bytes::from(match bound {
        ScoreBound::Included(score) => score.to_string(),
        ScoreBound::Excluded(score) => format!("({score}"),
    })
}

fn lex_bound(bound: &LexBound) -> Bytes {
    match bound {
        LexBound::Min => Bytes::from_static(b"-"),
        LexBound::Max => Bytes::from_static(b"+"),
        LexBound::Included(member) => Bytes::from([b"[", &member[..]].concat()),
        LexBound::Excluded(member) => Bytes::from([b"(", &member[..]].concat()),
    }
}

/// The command of a write.
pub(crate) fn write_name(write: &Write) -> &'static str {
    match write {
        Write::Set(..) | Write::SetIfGreater(..) => "SET",
        Write::Del => "DEL",
        Write::IncrBy(_) => "INCRBY",
        Write::HSet(_) => "HSET",
        Write::HIncrBy(..) => "HINCRBY",
        Write::HDel(_) => "HDEL",
        Write::SAdd(_) => "SADD",
        Write::SRem(_) => "SREM",
        Write::ZAdd(_) => "ZADD",
        Write::ZIncrBy(..) => "ZINCRBY",
        Write::ZRem(_) => "ZREM",
        Write::LPush(_) => "LPUSH",
        Write::RPush(_) => "RPUSH",
        Write::LPop(_) => "LPOP",
        Write::RPop(_) => "RPOP",
        Write::LSet(..) => "LSET",
        Write::LTrim(..) => "LTRIM",
        Write::ExpireAt(_) | Write::ExpireAtIfNone(_) => "PEXPIREAT",
        Write::Persist => "PERSIST",
    }
}

fn number(n: i64) -> Bytes {
    Bytes::from(n.to_string())
}

/// A write's command and its arguments. A SET with four of them has a condition: value, number, option, deadline.
pub(super) fn write_words(write: &Write) -> (&'static str, Vec<Bytes>) {
    let arguments = match write {
        Write::Set(value, Expiry::Never) => vec![value.clone()],
        Write::Set(value, Expiry::Keep) => vec![value.clone(), Bytes::from_static(b"KEEPTTL")],
        Write::Set(value, Expiry::At(at)) => vec![value.clone(), Bytes::from_static(b"PXAT"), number(*at)],
        Write::SetIfGreater(value, expiry) => {
            let least = number_after_comma(value).unwrap_or_default();
            let (option, at) = match expiry {
                Expiry::Never => (Bytes::new(), Bytes::new()),
                Expiry::Keep => (Bytes::from_static(b"KEEPTTL"), Bytes::new()),
                Expiry::At(at) => (Bytes::from_static(b"PXAT"), number(*at)),
            };
            vec![value.clone(), number(least), option, at]
        }
        Write::Del | Write::Persist => vec![],
        Write::IncrBy(n) | Write::ExpireAt(n) => vec![number(*n)],
        Write::ExpireAtIfNone(at) => vec![number(*at), Bytes::from_static(b"NX")],
        Write::HSet(pairs) => pairs.iter().flat_map(|(f, v)| [f.clone(), v.clone()]).collect(),
        Write::ZAdd(pairs) => {
            pairs.iter().flat_map(|(m, s)| [Bytes::from(score_g17(*s)), m.clone()]).collect()
        }
        Write::HDel(words)
        | Write::SAdd(words)
        | Write::SRem(words)
        | Write::ZRem(words)
        | Write::LPush(words)
        | Write::RPush(words) => words.clone(),
        Write::HIncrBy(field, by) => vec![field.clone(), number(*by)],
        Write::ZIncrBy(member, by) => vec![Bytes::from(score_g17(*by)), member.clone()],
        Write::LSet(at, value) => vec![number(*at), value.clone()],
        Write::LPop(count) | Write::RPop(count) => vec![number(*count as i64)],
        Write::LTrim(start, stop) => vec![number(*start), number(*stop)],
    };
    (write_name(write), arguments)
}

/// A score as C's `%.17g` prints it, because that is the only exact form Lua can print.
pub(super) fn score_g17(score: Score) -> String {
    let x = score.get();
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    // Times and points: by far the most. -0 is 0, too.
    if x.fract() == 0.0 && x.abs() < 1e15 {
        return (x as i64).to_string();
    }
    let scientific = format!("{x:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let fixed = format!("{x:.*}", (16 - exponent).max(0) as usize);
        return if fixed.contains('.') { trimmed(&fixed).into() } else { fixed };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

pub(super) fn found_name(found: KindFound) -> &'static str {
    match found {
        KindFound::Kind(kind) => kind.name(),
        KindFound::NotAnInteger => "integer",
        KindFound::External => "stream",
    }
}

/// What the script or `TYPE` calls a type.
pub(super) fn kind_found(name: &[u8]) -> KindFound {
    match std::str::from_utf8(name).ok() {
        Some("integer") => KindFound::NotAnInteger,
        Some(name) => Kind::from_name(name).map_or(KindFound::External, KindFound::Kind),
        None => KindFound::External,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_print_as_c_does() {
        for (score, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-999_999_999_999_999.0, "-999999999999999"),
            (1e15, "1000000000000000"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.10000000000000001"),
            (1_704_067_260_000.0, "1704067260000"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (1e-5, "1.0000000000000001e-05"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(score_g17(Score::new(score).expect("a number")), text);
        }
    }
}
