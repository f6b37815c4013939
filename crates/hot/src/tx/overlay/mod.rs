//! Read your own writes: what a read answers after the writes of the same body.
//!
//! Exact without loading whole collections: the answer is put together from bounded reads of the source and
//! the writes, and the source reads are validated at the commit like any other. One code for every engine,
//! so a body cannot mean different things on different engines.

mod lifetime;
mod list;
mod members;
mod scores;

use super::source::{ReadSource, int, mismatch};
use crate::command::*;
use crate::error::Result;
use crate::limits::REPLY_ELEMENTS_MAX;
use bytes::Bytes;
use lifetime::lifetime;
pub(crate) use lifetime::replaces;
use list::read_list;
use members::{After, read_members};
use scores::{ScoreAfter, read_scores};
pub use scores::{in_lex, in_scores};
use std::collections::{BTreeMap, VecDeque};

/// Answers `read` of `key` as if `writes` (all of that key, in order, not empty) had been applied to
/// `source`.
pub(crate) fn read(
    source: &mut dyn ReadSource,
    key: &RawKey,
    writes: &[&Write],
    read: &Read,
) -> Result<Reply> {
    if matches!(read, Read::Exists | Read::ExpireTime) {
        return lifetime(source, key, writes, read);
    }
    let view = View::fold(key, writes)?;
    if let (Some(expected), Some(held)) = (read.kind(), view.kind())
        && expected != held
    {
        // A collection that the body emptied is gone, and what is gone has no type.
        let gone = lifetime(source, key, writes, &Read::Exists)? == Reply::Int(0);
        return Ok(if gone { absent(read) } else { Reply::WrongType(KindFound::Kind(held)) });
    }
    let mut below = KeySource { source, key, cut: view.cut };
    match (&view.body, read) {
        (WrittenValue::Untouched, _) => below.ask(read.clone()),
        (WrittenValue::Text(text), Read::Get) => Ok(Reply::Blob(text.clone())),
        (WrittenValue::Increment(by), Read::Get) => below.incremented(*by),
        (WrittenValue::Greatest { text, increment }, Read::Get) => below.greatest(text, *increment),
        (WrittenValue::Members(members), read) => read_members(&mut below, members, read),
        (WrittenValue::Scores(scores), read) => read_scores(&mut below, scores, read),
        (WrittenValue::List, read) => read_list(&mut below, writes, read),
        (_, other) => Err(mismatch(other, &Reply::Nil)),
    }
}

/// The source, unless a DEL or SET of the same body cut it off.
struct KeySource<'a> {
    source: &'a mut dyn ReadSource,
    key: &'a RawKey,
    cut: bool,
}

impl KeySource<'_> {
    fn ask(&mut self, read: Read) -> Result<Reply> {
        if self.cut {
            return Ok(absent(&read));
        }
        self.source.read(self.key, &read)
    }

    fn int(&mut self, read: Read) -> Result<i64> {
        match self.ask(read.clone())?.checked(self.key, &read)? {
            Reply::Int(n) => Ok(n),
            other => Err(mismatch(&read, &other)),
        }
    }

    /// The greater one of what is stored, incremented before, and a string.
    fn greatest(&mut self, text: &Bytes, increment: Option<i64>) -> Result<Reply> {
        let stored = match increment {
            None => self.ask(Read::Get)?,
            Some(by) => self.incremented(by)?,
        };
        Ok(match stored {
            Reply::Blob(stored) if !is_greater(text, Some(&stored)) => Reply::Blob(stored),
            refusal @ Reply::WrongType(_) if increment.is_some() => refusal,
            _ => Reply::Blob(text.clone()),
        })
    }

    fn incremented(&mut self, by: i64) -> Result<Reply> {
        let before = match self.ask(Read::Get)? {
            Reply::Nil => 0,
            Reply::Blob(text) => parse_integer(&text).ok_or_else(|| not_an_integer(self.key))?,
            refusal => return Ok(refusal),
        };
        let after = sum_of(self.key, before, by)?;
        Ok(Reply::Blob(Bytes::from(after.to_string())))
    }
}

/// What an absent key answers.
pub fn absent(read: &Read) -> Reply {
    use Read::*;
    match read {
        Get | HGet(_) | ZScore(_) | ZRank(..) => Reply::Nil,
        ExpireTime => Reply::Int(-2),
        HGetAll => Reply::Pairs(vec![]),
        SMembers | LRange(..) => Reply::List(vec![]),
        ZRange(..) => Reply::Scored(vec![]),
        Exists | HLen | SIsMember(_) | SCard | ZCard | ZCount(..) | ZLexCount(..) | LLen => Reply::Int(0),
    }
}

/// What the writes make of the key.
struct View {
    /// Nothing of the source shows any more.
    cut: bool,
    body: WrittenValue,
}

enum WrittenValue {
    Untouched,
    Text(Bytes),
    Increment(i64),
    /// This string, unless the number of what is stored is as great.
    Greatest {
        text: Bytes,
        /// What is stored was incremented before.
        increment: Option<i64>,
    },
    /// Fields of a hash, or members of a set with an empty value.
    Members(Members),
    Scores(BTreeMap<Bytes, ScoreAfter>),
    List,
}

struct Members {
    kind: Kind,
    after: BTreeMap<Bytes, After>,
}

impl View {
    fn fold(key: &RawKey, writes: &[&Write]) -> Result<View> {
        let mut view = View { cut: false, body: WrittenValue::Untouched };
        for write in writes {
            view.apply(key, write)?;
        }
        Ok(view)
    }

    fn kind(&self) -> Option<Kind> {
        match &self.body {
            WrittenValue::Untouched => None,
            WrittenValue::Text(_) | WrittenValue::Increment(_) | WrittenValue::Greatest { .. } => {
                Some(Kind::Text)
            }
            WrittenValue::Members(members) => Some(members.kind),
            WrittenValue::Scores(_) => Some(Kind::SortedSet),
            WrittenValue::List => Some(Kind::List),
        }
    }

    fn apply(&mut self, key: &RawKey, write: &Write) -> Result<()> {
        if let (Some(kind), Some(held)) = (write.kind(), self.kind())
            && kind != held
        {
            return Err(wrong_type(key, kind, KindFound::Kind(held)));
        }
        match write {
            Write::Set(value, _) => *self = View { cut: true, body: WrittenValue::Text(value.clone()) },
            Write::SetIfGreater(value, _) => self.set_if_greater(value),
            Write::Del => *self = View { cut: true, body: WrittenValue::Untouched },
            Write::IncrBy(by) => self.increment(key, *by)?,
            Write::HSet(pairs) => {
                self.members(Kind::Hash).extend(pairs.iter().map(|(f, v)| (f.clone(), After::Is(v.clone()))));
            }
            Write::SAdd(members) => {
                self.members(Kind::Set).extend(members.iter().map(|m| (m.clone(), After::Is(Bytes::new()))));
            }
            Write::HDel(gone) => {
                self.members(Kind::Hash).extend(gone.iter().map(|m| (m.clone(), After::Gone)))
            }
            Write::SRem(gone) => {
                self.members(Kind::Set).extend(gone.iter().map(|m| (m.clone(), After::Gone)))
            }
            Write::HIncrBy(field, by) => {
                let cut = self.cut;
                let after = self.members(Kind::Hash).entry(field.clone());
                after.or_insert(if cut { After::Gone } else { After::Plus(0) }).increment(key, field, *by)?;
            }
            Write::ZAdd(pairs) => {
                self.scores().extend(pairs.iter().map(|(m, s)| (m.clone(), ScoreAfter::Is(*s))));
            }
            Write::ZRem(gone) => {
                self.scores().extend(gone.iter().map(|m| (m.clone(), ScoreAfter::Gone)));
            }
            Write::ZIncrBy(member, by) => {
                let cut = self.cut;
                let after = self.scores().entry(member.clone());
                after.or_insert(if cut { ScoreAfter::Gone } else { ScoreAfter::Plus(vec![]) }).increase(*by);
            }
            Write::LPush(_)
            | Write::RPush(_)
            | Write::LPop(_)
            | Write::RPop(_)
            | Write::LSet(..)
            | Write::LTrim(..) => {
                self.body = WrittenValue::List;
            }
            Write::ExpireAt(_) | Write::ExpireAtIfNone(_) | Write::Persist => {}
        }
        Ok(())
    }

    fn set_if_greater(&mut self, value: &Bytes) {
        match &mut self.body {
            WrittenValue::Text(text) | WrittenValue::Greatest { text, .. } => {
                if is_greater(value, Some(text)) {
                    *text = value.clone();
                }
            }
            WrittenValue::Untouched if !self.cut => {
                self.body = WrittenValue::Greatest { text: value.clone(), increment: None };
            }
            WrittenValue::Increment(by) => {
                self.body = WrittenValue::Greatest { text: value.clone(), increment: Some(*by) };
            }
            // Neither what is absent nor a collection has a number.
            WrittenValue::Untouched
            | WrittenValue::Members(_)
            | WrittenValue::Scores(_)
            | WrittenValue::List => {
                *self = View { cut: true, body: WrittenValue::Text(value.clone()) };
            }
        }
    }

    fn increment(&mut self, key: &RawKey, by: i64) -> Result<()> {
        let before = match &self.body {
            WrittenValue::Text(text) => parse_integer(text).ok_or_else(|| not_an_integer(key))?,
            WrittenValue::Increment(sum) => *sum,
            WrittenValue::Greatest { .. } => return Err(not_an_integer(key)),
            _ => 0,
        };
        let sum = sum_of(key, before, by)?;
        self.body = match (&self.body, self.cut) {
            (WrittenValue::Text(_), _) | (_, true) => WrittenValue::Text(Bytes::from(sum.to_string())),
            _ => WrittenValue::Increment(sum),
        };
        Ok(())
    }

    fn members(&mut self, kind: Kind) -> &mut BTreeMap<Bytes, After> {
        if !matches!(self.body, WrittenValue::Members(_)) {
            self.body = WrittenValue::Members(Members { kind, after: BTreeMap::new() });
        }
        match &mut self.body {
            WrittenValue::Members(members) => &mut members.after,
            _ => unreachable!("set to Members two lines above"),
        }
    }

    fn scores(&mut self) -> &mut BTreeMap<Bytes, ScoreAfter> {
        if !matches!(self.body, WrittenValue::Scores(_)) {
            self.body = WrittenValue::Scores(BTreeMap::new());
        }
        match &mut self.body {
            WrittenValue::Scores(scores) => scores,
            _ => unreachable!("set to Scores two lines above"),
        }
    }
}

/// Redis' positions, negative from the end, as a range of `0..len`. `None` = empty. For engines.
pub fn resolve(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let len = len as i64;
    let from = if start < 0 { (start.saturating_add(len)).max(0) } else { start };
    let to = if stop < 0 { stop.saturating_add(len) } else { stop }.min(len - 1);
    (from <= to && from < len && to >= 0).then_some((from as usize, to as usize))
}
