//! The vocabulary in Redis' words: reads, writes and expectations as arguments of the commit script, and its
//! answers back as replies. The layout is written down at the top of `scripts/step.lua`.

use crate::limits::*;
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use redis::{Cmd, Value};
use std::fmt::Write as _;

/// Arguments of one call under construction.
#[derive(Default)]
pub(crate) struct Call {
    keys: Vec<RawKey>,
    index: HashMap<RawKey, usize, RandomState>,
    words: Vec<u8>,
    ends: Vec<usize>,
}

/// What stands around the groups of a call.
pub(crate) struct Envelope<'a> {
    /// Turn key for a data key.
    pub(crate) turn_key: &'a (dyn Fn(&RawKey) -> Vec<u8> + Sync),
    /// Receipt key and sequence; `None` when nothing is written.
    pub(crate) receipt: Option<(&'a [u8], u64)>,
    /// The client's estimate of the server's time, if a body used it.
    pub(crate) estimate_ms: Option<i64>,
    /// Ask for the time even if no body used it.
    pub(crate) wants_time: bool,
    pub(crate) process: &'a str,
    pub(crate) groups: usize,
}

/// One group as the script sees it.
pub(crate) struct GroupWords<'a> {
    pub(crate) ask_turn: bool,
    pub(crate) reads: &'a [(RawKey, Read, Reply)],
    pub(crate) effects: &'a Effects,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) log_keys: &'a (RawKey, RawKey),
}

impl Call {
    fn word(&mut self, word: &[u8]) {
        self.words.extend_from_slice(word);
        self.ends.push(self.words.len());
    }

    fn number(&mut self, number: impl Into<i128>) {
        let mut text = String::new();
        let _ = write!(text, "{}", number.into());
        self.word(text.as_bytes());
    }

    fn key(&mut self, key: &RawKey) {
        let index = match self.index.get(key) {
            Some(index) => *index,
            None => {
                self.keys.push(key.clone());
                self.index.insert(key.clone(), self.keys.len());
                self.keys.len()
            }
        };
        self.number(index as i64);
    }

    /// Adds a group.
    pub(crate) fn group(&mut self, group: &GroupWords<'_>) {
        let effects = group.effects;
        let mut written: Vec<&RawKey> = effects.writes.iter().map(|(key, _)| key).collect();
        written.sort_unstable();
        written.dedup();
        // The group's length stands before it: a word of fixed width, filled in at the end.
        let (first, length_at) = (self.ends.len(), self.words.len());
        self.word(b"00000000");
        self.word(if group.ask_turn { b"1" } else { b"0" });
        let counts = [group.reads.len(), written.len(), group.requirements.len()];
        let more = [effects.log.len(), effects.writes.len(), effects.messages.len()];
        counts.into_iter().chain(more).for_each(|count| self.number(count as i64));
        for (key, read, reply) in group.reads {
            self.read(key, read);
            self.expect(read, reply);
        }
        written.iter().for_each(|key| self.key(key));
        group.requirements.iter().for_each(|requirement| self.requirement(requirement));
        effects.log.iter().for_each(|entry| self.log_entry(group.log_keys, entry));
        effects.writes.iter().for_each(|(key, write)| self.write(key, write));
        for (channel, payload) in &effects.messages {
            self.word(channel);
            self.word(payload);
        }
        let length = format!("{:08}", self.ends.len() - first);
        self.words[length_at..length_at + 8].copy_from_slice(length.as_bytes());
    }

    /// Adds the fetches that end the call.
    pub(crate) fn fetches(&mut self, reads: &[(RawKey, Read)]) {
        self.number(reads.len() as i64);
        for (key, read) in reads {
            self.read(key, read);
        }
    }

    /// The finished command: `EVALSHA sha …` or `EVAL body …`.
    pub(crate) fn command(&self, verb: &str, script: &str, envelope: &Envelope<'_>) -> Cmd {
        let turns = envelope.receipt.is_some();
        let n = self.keys.len();
        let mut cmd = redis::cmd(verb);
        cmd.arg(script).arg(if turns { 2 * n + 1 } else { n });
        self.keys.iter().for_each(|key| {
            cmd.arg(&key[..]);
        });
        if let Some((receipt, _)) = envelope.receipt {
            self.keys.iter().for_each(|key| {
                cmd.arg((envelope.turn_key)(key));
            });
            cmd.arg(receipt);
        }
        cmd.arg(n).arg(if turns { "1" } else { "0" });
        match envelope.receipt {
            Some((_, sequence)) => cmd.arg(sequence),
            None => cmd.arg(""),
        };
        match (envelope.estimate_ms, envelope.wants_time) {
            (Some(ms), _) => cmd.arg(ms),
            (None, true) => cmd.arg("t"),
            (None, false) => cmd.arg(""),
        };
        cmd.arg(envelope.process).arg(TURN.as_millis() as u64).arg(RECEIPT.as_millis() as u64);
        cmd.arg(REPLY_ELEMENTS_MAX).arg(CLOCK_DIFFERENCE_MAX.as_millis() as u64).arg(envelope.groups);
        let mut from = 0;
        for end in &self.ends {
            cmd.arg(&self.words[from..*end]);
            from = *end;
        }
        cmd
    }

    /// The key that the script calls by this number.
    pub(crate) fn key_at(&self, index: i64) -> Option<&RawKey> {
        usize::try_from(index).ok().and_then(|index| self.keys.get(index.checked_sub(1)?))
    }

    fn read(&mut self, key: &RawKey, read: &Read) {
        let (name, count, arguments) = read_words(read);
        self.key(key);
        self.word(name.as_bytes());
        self.word(count.as_bytes());
        self.number(arguments.len() as i64);
        arguments.iter().for_each(|argument| self.word(argument));
    }

    fn expect(&mut self, read: &Read, reply: &Reply) {
        match reply {
            Reply::Nil => self.word(b"n"),
            Reply::Int(n) => self.tagged(b"i", n.to_string().as_bytes()),
            Reply::Score(score) => self.tagged(b"z", score_g17(*score).as_bytes()),
            Reply::Blob(blob) if blob.len() > DIGEST_ABOVE_BYTES => self.digest(blob),
            Reply::Blob(blob) => self.tagged(b"s", blob),
            Reply::WrongType(found) => self.tagged(b"w", found_name(*found).as_bytes()),
            Reply::TooMany(n) => self.tagged(b"t", n.to_string().as_bytes()),
            Reply::Pairs(pairs) => {
                self.word(b"u");
                self.number(pairs.len() as i64 * 2);
                pairs.iter().for_each(|(field, value)| {
                    self.word(field);
                    self.word(value);
                });
            }
            Reply::List(list) if *read == Read::SMembers => {
                self.word(b"u");
                self.number(list.len() as i64);
                list.iter().for_each(|member| self.word(member));
            }
            Reply::List(list) => self.array(list.iter().cloned()),
            Reply::Scored(list) if matches!(read, Read::ZRange(ZSlice::Lex(..), _)) => {
                self.array(list.iter().map(|(member, _)| member.clone()));
            }
            Reply::Scored(list) => {
                self.array(list.iter().flat_map(|(m, s)| [m.clone(), Bytes::from(score_g17(*s))]))
            }
        }
    }

    fn array(&mut self, elements: impl Iterator<Item = Bytes>) {
        let mut text = Vec::new();
        for element in elements {
            text.extend_from_slice(element.len().to_string().as_bytes());
            text.push(b':');
            text.extend_from_slice(&element);
        }
        if text.len() > DIGEST_ABOVE_BYTES { self.digest(&text) } else { self.tagged(b"a", &text) }
    }

    fn tagged(&mut self, tag: &[u8], text: &[u8]) {
        self.word(tag);
        self.word(text);
    }

    fn digest(&mut self, text: &[u8]) {
        self.tagged(b"d", sha1_smol::Sha1::from(text).digest().to_string().as_bytes());
    }

    fn requirement(&mut self, requirement: &Requirement) {
        self.key(&requirement.key);
        self.word(requirement.kind.name().as_bytes());
        match requirement.increment {
            Some(by) => self.number(by),
            None => self.word(b""),
        }
    }

    fn log_entry(&mut self, (list, counter): &(RawKey, RawKey), append: &LogAppend) {
        self.key(list);
        self.key(counter);
        self.number(append.entries_max as i64);
        self.word(if append.overflow == Overflow::Refuse { b"1" } else { b"0" });
        self.word(&append.entry);
    }

    fn write(&mut self, key: &RawKey, write: &Write) {
        let (name, arguments) = write_words(write);
        self.key(key);
        self.word(name.as_bytes());
        self.number(arguments.len() as i64);
        arguments.iter().for_each(|argument| self.word(argument));
    }
}

/// A read's command, the command that counts what it would give (where that is unbounded), and its arguments.
fn read_words(read: &Read) -> (&'static str, &'static str, Vec<Bytes>) {
    let number = |n: i64| Bytes::from(n.to_string());
    // Ends on different sides of zero: how wide the range is depends on the length.
    let open = |start: i64, stop: i64, count: &'static str| if (start < 0) == (stop < 0) { "" } else { count };
    let name = read.name();
    match read {
        Read::Get | Read::Exists | Read::ExpireTime | Read::HLen | Read::SCard | Read::ZCard | Read::LLen => {
            (name, "", vec![])
        }
        Read::HGetAll => (name, "HLEN", vec![]),
        Read::SMembers => (name, "SCARD", vec![]),
        Read::HGet(word) | Read::SIsMember(word) | Read::ZScore(word) => (name, "", vec![word.clone()]),
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

fn write_words(write: &Write) -> (&'static str, Vec<Bytes>) {
    let number = |n: i64| Bytes::from(n.to_string());
    match write {
        Write::Set(value, Expiry::Never) => ("SET", vec![value.clone()]),
        Write::Set(value, Expiry::Keep) => ("SET", vec![value.clone(), Bytes::from_static(b"KEEPTTL")]),
        Write::Set(value, Expiry::At(at)) => {
            ("SET", vec![value.clone(), Bytes::from_static(b"PXAT"), number(*at)])
        }
        Write::Del => ("DEL", vec![]),
        Write::IncrBy(by) => ("INCRBY", vec![number(*by)]),
        Write::HSet(pairs) => ("HSET", pairs.iter().flat_map(|(f, v)| [f.clone(), v.clone()]).collect()),
        Write::HDel(fields) => ("HDEL", fields.clone()),
        Write::SAdd(members) => ("SADD", members.clone()),
        Write::SRem(members) => ("SREM", members.clone()),
        Write::ZAdd(pairs) => {
            ("ZADD", pairs.iter().flat_map(|(m, s)| [Bytes::from(score_g17(*s)), m.clone()]).collect())
        }
        Write::ZRem(members) => ("ZREM", members.clone()),
        Write::LPush(values) => ("LPUSH", values.clone()),
        Write::RPush(values) => ("RPUSH", values.clone()),
        Write::LPop(count) => ("LPOP", vec![number(*count as i64)]),
        Write::RPop(count) => ("RPOP", vec![number(*count as i64)]),
        Write::LTrim(start, stop) => ("LTRIM", vec![number(*start), number(*stop)]),
        Write::ExpireAt(at) => ("PEXPIREAT", vec![number(*at)]),
        Write::Persist => ("PERSIST", vec![]),
    }
}

/// A score as C's `%.17g` prints it, because that is the only exact form Lua can print.
pub(crate) fn score_g17(score: Score) -> String {
    let x = score.get();
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if x == 0.0 {
        return "0".into();
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

fn found_name(found: KindFound) -> &'static str {
    match found {
        KindFound::Kind(kind) => kind.name(),
        KindFound::NotAnInteger => "integer",
        KindFound::Foreign => "stream",
    }
}

/// What the script or `TYPE` calls a type.
pub(crate) fn kind_found(name: &[u8]) -> KindFound {
    match std::str::from_utf8(name).ok() {
        Some("integer") => KindFound::NotAnInteger,
        Some(name) => Kind::from_name(name).map_or(KindFound::Foreign, KindFound::Kind),
        None => KindFound::Foreign,
    }
}

/// The script's answer to one call.
pub(crate) struct Answer {
    /// The server's time, if it was asked for.
    pub(crate) time_ms: Option<i64>,
    pub(crate) status: Status,
    pub(crate) groups: Vec<GroupAnswer>,
    pub(crate) fetched: Vec<Value>,
}

pub(crate) enum Status {
    Done,
    ClocksDiffer,
    LaneClosed,
    Partial { group: usize, message: String },
}

pub(crate) enum GroupAnswer {
    Committed,
    Stale(Vec<Value>),
    Wait,
    WrongType { key: i64, found: KindFound },
    LogFull,
}

impl Answer {
    /// Reads the script's answer; `None` when it is not one.
    pub(crate) fn parse(value: Value) -> Option<Answer> {
        let Value::Array(parts) = value else { return None };
        let [time, status, groups, fetched]: [Value; 4] = parts.try_into().ok()?;
        let Value::Int(time) = time else { return None };
        let status = match status {
            Value::Int(0) => Status::Done,
            Value::Int(1) => Status::ClocksDiffer,
            Value::Int(2) => Status::LaneClosed,
            Value::Array(detail) => match &detail[..] {
                [Value::Int(3), Value::Int(group), message] => {
                    Status::Partial { group: *group as usize, message: text(message) }
                }
                _ => return None,
            },
            _ => return None,
        };
        let groups = array(groups)?.into_iter().map(group_answer).collect::<Option<_>>()?;
        Some(Answer { time_ms: (time > 0).then_some(time), status, groups, fetched: array(fetched)? })
    }
}

fn group_answer(value: Value) -> Option<GroupAnswer> {
    Some(match value {
        Value::Int(0) => GroupAnswer::Committed,
        Value::Int(2) => GroupAnswer::Wait,
        Value::Int(4) => GroupAnswer::LogFull,
        Value::Array(detail) => match &detail[..] {
            [Value::Int(1), Value::Array(replies)] => GroupAnswer::Stale(replies.clone()),
            [Value::Int(3), Value::Int(key), found] => {
                GroupAnswer::WrongType { key: *key, found: kind_found(text(found).as_bytes()) }
            }
            _ => return None,
        },
        _ => return None,
    })
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) | Value::Set(values) => Some(values),
        Value::Nil => Some(vec![]),
        _ => None,
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

/// A reply of the script (or of a plain command) to `read`; `None` when the shape does not fit.
pub(crate) fn reply(read: &Read, value: Value) -> Option<Reply> {
    if let Value::Array(special) = &value {
        match &special[..] {
            [Value::Int(1), found] => return Some(Reply::WrongType(kind_found(text(found).as_bytes()))),
            [Value::Int(2), Value::Int(n)] => return Some(Reply::TooMany(*n as usize)),
            [Value::Int(3), ..] => return None,
            _ => {}
        }
    }
    Some(match (read, value) {
        (Read::Get | Read::HGet(_), Value::Nil) | (Read::ZScore(_), Value::Nil) => Reply::Nil,
        (Read::Get | Read::HGet(_), Value::BulkString(bytes)) => Reply::Blob(Bytes::from(bytes)),
        (Read::ZScore(_), Value::BulkString(bytes)) => Reply::Score(score(&bytes)?),
        (Read::HGetAll, value) => {
            let mut pairs = pairs(array(value)?)?;
            pairs.sort();
            Reply::Pairs(pairs)
        }
        (Read::SMembers, value) => {
            let mut list = blobs(array(value)?)?;
            list.sort();
            Reply::List(list)
        }
        (Read::LRange(..), value) => Reply::List(blobs(array(value)?)?),
        (Read::ZRange(ZSlice::Lex(..), _), value) => {
            Reply::Scored(blobs(array(value)?)?.into_iter().map(|m| (m, Score::from_i64(0))).collect())
        }
        (Read::ZRange(..), value) => {
            let scored = |(member, text): (Bytes, Bytes)| Some((member, score(&text)?));
            Reply::Scored(pairs(array(value)?)?.into_iter().map(scored).collect::<Option<_>>()?)
        }
        (_, Value::Int(n)) => Reply::Int(n),
        _ => return None,
    })
}

fn score(text: &[u8]) -> Option<Score> {
    Score::new(std::str::from_utf8(text).ok()?.parse().ok()?).ok()
}

fn blobs(values: Vec<Value>) -> Option<Vec<Bytes>> {
    let blob = |value| match value {
        Value::BulkString(bytes) => Some(Bytes::from(bytes)),
        _ => None,
    };
    values.into_iter().map(blob).collect()
}

fn pairs(values: Vec<Value>) -> Option<Vec<(Bytes, Bytes)>> {
    let mut words = blobs(values)?.into_iter();
    let mut pairs = Vec::with_capacity(words.len() / 2);
    while let (Some(first), Some(second)) = (words.next(), words.next()) {
        pairs.push((first, second));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_print_as_c_does() {
        for (score, text) in [
            (0.0, "0"),
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
