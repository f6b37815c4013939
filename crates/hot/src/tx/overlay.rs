//! Read your own writes: what a read answers after the writes of the same body.
//!
//! Exact without loading whole collections: the answer is put together from bounded reads of the base and the
//! writes, and the base reads are validated at the commit like any other. One code for every engine, so a body
//! cannot mean different things on different engines.

use super::base::{Base, int, mismatch};
use crate::command::*;
use crate::error::{Error, Result};
use crate::limits::REPLY_ELEMENTS_MAX;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Answers `read` of `key` as if `writes` (all of that key, in order, not empty) had been applied to `base`.
pub(crate) fn read(base: &mut dyn Base, key: &RawKey, writes: &[&Write], read: &Read) -> Result<Reply> {
    if matches!(read, Read::Exists | Read::ExpireTime) {
        return lifetime(base, key, writes, read);
    }
    let view = View::fold(key, writes)?;
    if let (Some(expected), Some(held)) = (read.kind(), view.kind())
        && expected != held
    {
        return Ok(Reply::WrongType(KindFound::Kind(held)));
    }
    let mut below = Below { base, key, cut: view.cut };
    match (&view.body, read) {
        (Body::Untouched, _) => below.ask(read.clone()),
        (Body::Text(text), Read::Get) => Ok(Reply::Blob(text.clone())),
        (Body::Increment(by), Read::Get) => below.incremented(*by),
        (Body::Members(members), read) => read_members(&mut below, members, read),
        (Body::Scores(scores), read) => read_scores(&mut below, scores, read),
        (Body::List, read) => read_list(&mut below, writes, read),
        (_, other) => Err(mismatch(other, &Reply::Nil)),
    }
}

/// The base, unless a DEL or SET of the same body cut it off.
struct Below<'a> {
    base: &'a mut dyn Base,
    key: &'a RawKey,
    cut: bool,
}

impl Below<'_> {
    fn ask(&mut self, read: Read) -> Result<Reply> {
        if self.cut {
            return Ok(absent(&read));
        }
        self.base.read(self.key, &read)
    }

    fn int(&mut self, read: Read) -> Result<i64> {
        match self.ask(read.clone())?.checked(self.key, &read)? {
            Reply::Int(n) => Ok(n),
            other => Err(mismatch(&read, &other)),
        }
    }

    fn incremented(&mut self, by: i64) -> Result<Reply> {
        let before = match self.ask(Read::Get)? {
            Reply::Nil => 0,
            Reply::Blob(text) => parse_integer(&text).ok_or_else(|| not_an_integer(self.key))?,
            refusal => return Ok(refusal),
        };
        let after = before.checked_add(by).ok_or_else(|| not_an_integer(self.key))?;
        Ok(Reply::Blob(Bytes::from(after.to_string())))
    }
}

/// What an absent key answers.
fn absent(read: &Read) -> Reply {
    use Read::*;
    match read {
        Get | HGet(_) | ZScore(_) => Reply::Nil,
        ExpireTime => Reply::Int(-2),
        HGetAll => Reply::Pairs(vec![]),
        SMembers | LRange(..) => Reply::List(vec![]),
        ZRange(..) => Reply::Scored(vec![]),
        Exists | HLen | SIsMember(_) | SCard | ZCard | ZCount(..) | ZLexCount(..) | LLen => Reply::Int(0),
    }
}

/// What the writes make of the key.
struct View {
    /// Nothing of the base shows any more.
    cut: bool,
    body: Body,
}

enum Body {
    Untouched,
    Text(Bytes),
    Increment(i64),
    /// Fields of a hash, or members of a set with an empty value. `None` = removed.
    Members(Members),
    Scores(BTreeMap<Bytes, Option<Score>>),
    List,
}

struct Members {
    kind: Kind,
    after: BTreeMap<Bytes, Option<Bytes>>,
}

impl View {
    fn fold(key: &RawKey, writes: &[&Write]) -> Result<View> {
        let mut view = View { cut: false, body: Body::Untouched };
        for write in writes {
            view.apply(key, write)?;
        }
        Ok(view)
    }

    fn kind(&self) -> Option<Kind> {
        match &self.body {
            Body::Untouched => None,
            Body::Text(_) | Body::Increment(_) => Some(Kind::Text),
            Body::Members(members) => Some(members.kind),
            Body::Scores(_) => Some(Kind::SortedSet),
            Body::List => Some(Kind::List),
        }
    }

    fn apply(&mut self, key: &RawKey, write: &Write) -> Result<()> {
        if let (Some(kind), Some(held)) = (write.kind(), self.kind())
            && kind != held
        {
            return Err(wrong_type(key, kind, KindFound::Kind(held)));
        }
        match write {
            Write::Set(value, _) => *self = View { cut: true, body: Body::Text(value.clone()) },
            Write::Del => *self = View { cut: true, body: Body::Untouched },
            Write::IncrBy(by) => self.increment(key, *by)?,
            Write::HSet(pairs) => {
                self.members(Kind::Hash).extend(pairs.iter().map(|(f, v)| (f.clone(), Some(v.clone()))));
            }
            Write::SAdd(members) => {
                self.members(Kind::Set).extend(members.iter().map(|m| (m.clone(), Some(Bytes::new()))));
            }
            Write::HDel(gone) => self.members(Kind::Hash).extend(gone.iter().map(|m| (m.clone(), None))),
            Write::SRem(gone) => self.members(Kind::Set).extend(gone.iter().map(|m| (m.clone(), None))),
            Write::ZAdd(pairs) => self.scores().extend(pairs.iter().map(|(m, s)| (m.clone(), Some(*s)))),
            Write::ZRem(gone) => self.scores().extend(gone.iter().map(|m| (m.clone(), None))),
            Write::LPush(_) | Write::RPush(_) | Write::LPop(_) | Write::RPop(_) | Write::LTrim(..) => {
                self.body = Body::List;
            }
            Write::ExpireAt(_) | Write::Persist => {}
        }
        Ok(())
    }

    fn increment(&mut self, key: &RawKey, by: i64) -> Result<()> {
        let before = match &self.body {
            Body::Text(text) => parse_integer(text).ok_or_else(|| not_an_integer(key))?,
            Body::Increment(sum) => *sum,
            _ => 0,
        };
        let sum = before.checked_add(by).ok_or_else(|| not_an_integer(key))?;
        self.body = match (&self.body, self.cut) {
            (Body::Text(_), _) | (_, true) => Body::Text(Bytes::from(sum.to_string())),
            _ => Body::Increment(sum),
        };
        Ok(())
    }

    fn members(&mut self, kind: Kind) -> &mut BTreeMap<Bytes, Option<Bytes>> {
        if !matches!(self.body, Body::Members(_)) {
            self.body = Body::Members(Members { kind, after: BTreeMap::new() });
        }
        match &mut self.body {
            Body::Members(members) => &mut members.after,
            _ => unreachable!("set to Members two lines above"),
        }
    }

    fn scores(&mut self) -> &mut BTreeMap<Bytes, Option<Score>> {
        if !matches!(self.body, Body::Scores(_)) {
            self.body = Body::Scores(BTreeMap::new());
        }
        match &mut self.body {
            Body::Scores(scores) => scores,
            _ => unreachable!("set to Scores two lines above"),
        }
    }
}

fn read_members(below: &mut Below<'_>, members: &Members, read: &Read) -> Result<Reply> {
    match read {
        Read::HGet(field) => match members.after.get(field) {
            Some(value) => Ok(value.clone().map_or(Reply::Nil, Reply::Blob)),
            None => below.ask(read.clone()),
        },
        Read::SIsMember(member) => match members.after.get(member) {
            Some(value) => Ok(Reply::Int(value.is_some() as i64)),
            None => below.ask(read.clone()),
        },
        Read::HGetAll => merge_pairs(below, &members.after),
        Read::SMembers => merge_list(below, &members.after),
        Read::HLen | Read::SCard => {
            let mut count = below.int(read.clone())?;
            for (member, after) in &members.after {
                count += after.is_some() as i64 - below.holds(members.kind, member)? as i64;
            }
            Ok(Reply::Int(count))
        }
        other => Err(mismatch(other, &Reply::Nil)),
    }
}

impl Below<'_> {
    /// Whether the base has that field or member.
    fn holds(&mut self, kind: Kind, member: &Bytes) -> Result<bool> {
        let read = match kind {
            Kind::Hash => Read::HGet(member.clone()),
            Kind::Set => Read::SIsMember(member.clone()),
            _ => Read::ZScore(member.clone()),
        };
        Ok(!matches!(self.ask(read.clone())?.checked(self.key, &read)?, Reply::Nil | Reply::Int(0)))
    }
}

fn merge_pairs(below: &mut Below<'_>, after: &BTreeMap<Bytes, Option<Bytes>>) -> Result<Reply> {
    let Reply::Pairs(pairs) = below.ask(Read::HGetAll)?.checked(below.key, &Read::HGetAll)? else {
        return Err(mismatch(&Read::HGetAll, &Reply::Nil));
    };
    let mut merged: BTreeMap<Bytes, Bytes> = pairs.into_iter().collect();
    for (field, value) in after {
        match value {
            Some(value) => merged.insert(field.clone(), value.clone()),
            None => merged.remove(field),
        };
    }
    Ok(bounded(merged.len(), || Reply::Pairs(merged.into_iter().collect())))
}

fn merge_list(below: &mut Below<'_>, after: &BTreeMap<Bytes, Option<Bytes>>) -> Result<Reply> {
    let Reply::List(list) = below.ask(Read::SMembers)?.checked(below.key, &Read::SMembers)? else {
        return Err(mismatch(&Read::SMembers, &Reply::Nil));
    };
    let mut merged: std::collections::BTreeSet<Bytes> = list.into_iter().collect();
    for (member, value) in after {
        match value {
            Some(_) => merged.insert(member.clone()),
            None => merged.remove(member),
        };
    }
    Ok(bounded(merged.len(), || Reply::List(merged.into_iter().collect())))
}

fn bounded(len: usize, reply: impl FnOnce() -> Reply) -> Reply {
    if len > REPLY_ELEMENTS_MAX { Reply::TooMany(len) } else { reply() }
}

type Scores = BTreeMap<Bytes, Option<Score>>;

fn read_scores(below: &mut Below<'_>, scores: &Scores, read: &Read) -> Result<Reply> {
    match read {
        Read::ZScore(member) => match scores.get(member) {
            Some(score) => Ok(score.map_or(Reply::Nil, Reply::Score)),
            None => below.ask(read.clone()),
        },
        Read::ZCard => count_scores(below, scores, read, |_, _| true),
        Read::ZCount(min, max) => count_scores(below, scores, read, |_, s| in_scores(s, min, max)),
        Read::ZLexCount(min, max) => count_scores(below, scores, read, |m, _| in_lex(m, min, max)),
        Read::ZRange(slice, reverse) => range_scores(below, scores, slice, *reverse),
        other => Err(mismatch(other, &Reply::Nil)),
    }
}

fn count_scores(
    below: &mut Below<'_>,
    scores: &Scores,
    read: &Read,
    counts: impl Fn(&Bytes, Score) -> bool,
) -> Result<Reply> {
    let mut count = below.int(read.clone())?;
    for (member, after) in scores {
        let ask = Read::ZScore(member.clone());
        if let Reply::Score(before) = below.ask(ask.clone())?.checked(below.key, &ask)? {
            count -= counts(member, before) as i64;
        }
        count += after.is_some_and(|score| counts(member, score)) as i64;
    }
    Ok(Reply::Int(count))
}

/// A range after writes: a base range longer by the number of touched members holds enough untouched ones.
fn range_scores(below: &mut Below<'_>, scores: &Scores, slice: &ZSlice, reverse: bool) -> Result<Reply> {
    let touched = scores.len();
    let (wider, skip, take) = match slice {
        ZSlice::Rank(start, stop) => {
            let Reply::Int(card) = read_scores(below, scores, &Read::ZCard)? else { return Ok(Reply::Nil) };
            let Some((start, stop)) = resolve(*start, *stop, card as usize) else {
                return Ok(Reply::Scored(vec![]));
            };
            (ZSlice::Rank(0, (stop + touched) as i64), start, stop - start + 1)
        }
        ZSlice::Score(min, max, limit) => (ZSlice::Score(*min, *max, limit + touched), 0, *limit),
        ZSlice::Lex(min, max, limit) => (ZSlice::Lex(min.clone(), max.clone(), limit + touched), 0, *limit),
    };
    let wider = Read::ZRange(wider, reverse);
    wider.check(below.key)?;
    let Reply::Scored(base) = below.ask(wider.clone())?.checked(below.key, &wider)? else {
        return Err(mismatch(&wider, &Reply::Nil));
    };
    let mut merged: Vec<(Bytes, Score)> = base.into_iter().filter(|(m, _)| !scores.contains_key(m)).collect();
    let belongs = |member: &Bytes, score: Score| match slice {
        ZSlice::Rank(..) => true,
        ZSlice::Score(min, max, _) => in_scores(score, min, max),
        ZSlice::Lex(min, max, _) => in_lex(member, min, max),
    };
    merged.extend(scores.iter().filter_map(|(m, s)| s.filter(|s| belongs(m, *s)).map(|s| (m.clone(), s))));
    merged.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    if reverse {
        merged.reverse();
    }
    Ok(Reply::Scored(merged.into_iter().skip(skip).take(take).collect()))
}

/// Whether a score lies in the range.
pub(crate) fn in_scores(score: Score, min: &ScoreBound, max: &ScoreBound) -> bool {
    let above = match min {
        ScoreBound::Included(bound) => score >= *bound,
        ScoreBound::Excluded(bound) => score > *bound,
    };
    above
        && match max {
            ScoreBound::Included(bound) => score <= *bound,
            ScoreBound::Excluded(bound) => score < *bound,
        }
}

/// Whether a member lies in the byte range.
pub(crate) fn in_lex(member: &[u8], min: &LexBound, max: &LexBound) -> bool {
    let above = match min {
        LexBound::Min => true,
        LexBound::Max => false,
        LexBound::Included(bound) => member >= &bound[..],
        LexBound::Excluded(bound) => member > &bound[..],
    };
    above
        && match max {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Included(bound) => member <= &bound[..],
            LexBound::Excluded(bound) => member < &bound[..],
        }
}

/// Redis' positions, negative from the end, as a range of `0..len`. `None` = empty.
pub(crate) fn resolve(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let len = len as i64;
    let from = if start < 0 { (start.saturating_add(len)).max(0) } else { start };
    let to = if stop < 0 { stop.saturating_add(len) } else { stop }.min(len - 1);
    (from <= to && from < len && to >= 0).then_some((from as usize, to as usize))
}

/// A list as the part of the base that is left, and what was pushed around it.
struct ListView {
    front: VecDeque<Bytes>,
    base: std::ops::Range<usize>,
    back: VecDeque<Bytes>,
}

impl ListView {
    fn len(&self) -> usize {
        self.front.len() + self.base.len() + self.back.len()
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::LPush(values) => values.iter().for_each(|v| self.front.push_front(v.clone())),
            Write::RPush(values) => self.back.extend(values.iter().cloned()),
            Write::LPop(count) => (0..*count).for_each(|_| self.pop_front()),
            Write::RPop(count) => (0..*count).for_each(|_| self.pop_back()),
            Write::LTrim(start, stop) => match resolve(*start, *stop, self.len()) {
                Some((from, to)) => {
                    let surplus = self.len() - 1 - to;
                    (0..from).for_each(|_| self.pop_front());
                    (0..surplus).for_each(|_| self.pop_back());
                }
                None => self.clear(),
            },
            Write::Del | Write::Set(..) => self.clear(),
            _ => {}
        }
    }

    fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.base = 0..0;
    }

    fn pop_front(&mut self) {
        if self.front.pop_front().is_none() && self.base.next().is_none() {
            self.back.pop_front();
        }
    }

    fn pop_back(&mut self) {
        if self.back.pop_back().is_none() && self.base.next_back().is_none() {
            self.front.pop_back();
        }
    }
}

fn read_list(below: &mut Below<'_>, writes: &[&Write], read: &Read) -> Result<Reply> {
    // The writes before a DEL or SET do not matter, and neither does the base then.
    let len = below.int(Read::LLen)? as usize;
    let mut view = ListView { front: VecDeque::new(), base: 0..len, back: VecDeque::new() };
    writes.iter().for_each(|write| view.apply(write));
    let (start, stop) = match read {
        Read::LRange(start, stop) => (*start, *stop),
        _ => return Ok(Reply::Int(view.len() as i64)),
    };
    let Some((from, to)) = resolve(start, stop, view.len()) else { return Ok(Reply::List(vec![])) };
    if to - from >= REPLY_ELEMENTS_MAX {
        return Ok(Reply::TooMany(to - from + 1));
    }
    let (front, base) = (view.front.len(), view.base.len());
    let mut list: Vec<Bytes> = view.front.iter().skip(from).take(to + 1 - from).cloned().collect();
    if from < front + base && to >= front && base > 0 {
        let first = view.base.start + from.saturating_sub(front);
        let last = view.base.start + (to - front).min(base - 1);
        let ask = Read::LRange(first as i64, last as i64);
        match below.ask(ask.clone())?.checked(below.key, &ask)? {
            Reply::List(part) => list.extend(part),
            other => return Err(mismatch(&ask, &other)),
        }
    }
    let skip = from.saturating_sub(front + base);
    list.extend(view.back.iter().skip(skip).take(to + 1 - from - list.len()).cloned());
    Ok(Reply::List(list))
}

/// Exists and deadline, by walking the writes one by one: a collection that lost its last member is gone with
/// its deadline, also if a later write of the same body makes it anew.
fn lifetime(base: &mut dyn Base, key: &RawKey, writes: &[&Write], read: &Read) -> Result<Reply> {
    let mut life = Life::of_base(base, key)?;
    for (done, write) in writes.iter().enumerate() {
        life.apply(base, key, &writes[..=done], write)?;
    }
    Ok(Reply::Int(match (read, life.exists) {
        (Read::Exists, exists) => exists as i64,
        (_, false) => -2,
        (_, true) => life.deadline.unwrap_or(-1),
    }))
}

struct Life {
    exists: bool,
    deadline: Option<i64>,
}

impl Life {
    fn of_base(base: &mut dyn Base, key: &RawKey) -> Result<Life> {
        let at = int(base, key, Read::ExpireTime)?;
        Ok(Life { exists: at != -2, deadline: (at >= 0).then_some(at) })
    }

    fn apply(&mut self, base: &mut dyn Base, key: &RawKey, so_far: &[&Write], write: &Write) -> Result<()> {
        match write {
            Write::Set(_, expiry) => {
                self.deadline = match expiry {
                    Expiry::Keep => self.deadline.filter(|_| self.exists),
                    Expiry::Never => None,
                    Expiry::At(at) => Some(*at),
                };
                self.exists = true;
            }
            Write::Del => *self = Life { exists: false, deadline: None },
            Write::ExpireAt(at) => self.deadline = self.exists.then_some(*at),
            Write::Persist => self.deadline = None,
            Write::IncrBy(_)
            | Write::HSet(_)
            | Write::SAdd(_)
            | Write::ZAdd(_)
            | Write::LPush(_)
            | Write::RPush(_) => {
                self.deadline = self.deadline.filter(|_| self.exists);
                self.exists = true;
            }
            Write::HDel(_) | Write::SRem(_) | Write::ZRem(_) => self.end_if_empty(base, key, so_far, write)?,
            Write::LPop(_) | Write::RPop(_) | Write::LTrim(..) => self.end_if_empty(base, key, so_far, write)?,
        }
        Ok(())
    }

    fn end_if_empty(
        &mut self,
        base: &mut dyn Base,
        key: &RawKey,
        so_far: &[&Write],
        write: &Write,
    ) -> Result<()> {
        let count = match write {
            Write::HDel(_) => Read::HLen,
            Write::SRem(_) => Read::SCard,
            Write::ZRem(_) => Read::ZCard,
            _ => Read::LLen,
        };
        if self.exists && read(base, key, so_far, &count)?.checked(key, &count)? == Reply::Int(0) {
            *self = Life { exists: false, deadline: None };
        }
        Ok(())
    }
}

/// The integer that Redis would accept: canonical decimal of 64 bits.
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    let canonical = !text.starts_with('+') && (text == "0" || !text.trim_start_matches('-').starts_with('0'));
    canonical.then_some(number)
}

/// The error for INCRBY on something else.
pub(crate) fn not_an_integer(key: &[u8]) -> Error {
    wrong_type(key, Kind::Text, KindFound::NotAnInteger)
}
