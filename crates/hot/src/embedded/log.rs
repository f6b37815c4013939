//! Appended log entries as plain writes of their lists.
//!
//! They are expanded under the locks of the lists, so that the sequence has no gap and the first entry has
//! number 1. The journal then stores only plain writes.

use super::Inner;
use super::locks::Locked;
use super::shard::KeyHash;
use super::slab::{Entry, NEVER};
use crate::command::*;
use crate::error::{Error, Result, show};
use crate::limits::COMMAND_ARGUMENTS_MAX;
use crate::tx::log::{LastNumber, last_number, number_of_last, numbered};
use crate::tx::{ReadSource, read_through};
use bytes::Bytes;
use smallvec::SmallVec;

/// Turns the log entries of a transaction into writes at the end of its writes, and notes which logs grew.
pub(super) fn expand(locked: &mut Locked<'_>, effects: &mut Effects) -> Result<()> {
    let mut appends = std::mem::take(&mut effects.log);
    let mut logs: SmallVec<[(KeyHash, RawKey, bool); 2]> = SmallVec::new();
    for append in &appends {
        if !logs.iter().any(|(_, log, _)| *log == append.log) {
            logs.push((locked.engine.hash(&append.log), append.log.clone(), false));
        }
    }
    // In the order of their shards, so that each of them may be waited for.
    logs.sort_by_key(|(hashed, ..)| hashed.shard());
    for (hashed, _, was_waited_for) in &mut logs {
        *was_waited_for = locked.lock_for_append(*hashed)?;
    }
    for (hashed, log, was_waited_for) in logs {
        let state = LogState::read(locked, hashed, &log, was_waited_for, &effects.writes)?;
        let own = appends.iter().filter(|append| append.log == log);
        state.append(&log, own, &mut effects.writes)?;
        effects.woken.push(log);
    }
    // Given back empty: the thread keeps the allocation.
    appends.clear();
    effects.log = appends;
    Ok(())
}

/// Turns the logs that grew into messages to their followers, each log once.
pub(super) fn wake(engine: &Inner, effects: &mut Effects) {
    let Effects { woken, messages, .. } = effects;
    // A follower subscribes before it reads, so one that is not there yet will find the entry.
    if !engine.pubsub.is_idle() {
        for (place, log) in woken.iter().enumerate() {
            if !woken[..place].contains(log) {
                messages.push((log.clone(), Bytes::new()));
            }
        }
    }
    woken.clear();
}

/// What the commit must know of a log.
#[derive(Default)]
struct LogState {
    last: u64,
    len: usize,
    has_deadline: bool,
    /// It has expired and is still stored.
    is_expired: bool,
}

impl LogState {
    /// Reads a log with the transaction's own writes: a transaction may trim a log and append to it.
    fn read(
        locked: &mut Locked<'_>,
        hashed: KeyHash,
        log: &RawKey,
        was_waited_for: bool,
        writes: &[(RawKey, Write)],
    ) -> Result<LogState> {
        let own: SmallVec<[&Write; 4]> =
            writes.iter().filter(|(key, _)| key == log).map(|(_, write)| write).collect();
        if own.is_empty() {
            let (entry, is_expired) = locked.log(hashed, log, was_waited_for)?;
            let (last, state) = LogState::of(log, entry)?;
            return Ok(LogState { last: last.or_by_time(|| ReadSource::now(locked)), is_expired, ..state });
        }
        let mut read = |read: Read| {
            let reply = read_through(locked as &mut dyn ReadSource, log, &own, &read)?;
            reply.checked(log, &read)
        };
        let last = last_number(&mut read)?;
        let int = |reply: Reply| if let Reply::Int(n) = reply { n } else { 0 };
        let len = int(read(Read::LLen)?) as usize;
        let has_deadline = int(read(Read::ExpireTime)?) >= 0;
        let last = last.or_by_time(|| ReadSource::now(locked));
        Ok(LogState { last, len, has_deadline, is_expired: false })
    }

    /// The state but for its last number, and what is known of that.
    fn of(log: &RawKey, entry: Option<&Entry>) -> Result<(LastNumber, LogState)> {
        let Some(entry) = entry else {
            return Ok((LastNumber::NoLog, LogState::default()));
        };
        let Some(list) = entry.value.list() else {
            return Err(wrong_type(log, Kind::List, KindFound::Kind(entry.value.kind())));
        };
        let last = match number_of_last(list.iter().rev().map(|element| &element[..])) {
            Some(number) => LastNumber::Known(number),
            None if list.is_empty() => LastNumber::NoLog,
            None => LastNumber::Lost,
        };
        let has_deadline = entry.deadline != NEVER;
        Ok((last, LogState { len: list.len(), has_deadline, ..LogState::default() }))
    }

    /// Adds the writes that append these entries.
    fn append<'a>(
        mut self,
        log: &RawKey,
        appends: impl Iterator<Item = &'a LogAppend>,
        writes: &mut Vec<(RawKey, Write)>,
    ) -> Result<()> {
        let (mut lines, mut trims, mut expiry) = (Vec::new(), false, LogExpiry::Keep);
        for append in appends {
            self.last += 1;
            lines.push(numbered(self.last, &append.entry));
            expiry = append.expiry;
            let max = append.entries_max;
            match append.overflow {
                Overflow::Refuse if self.len >= max => return Err(Error::LogFull { key: show(log), max }),
                Overflow::DropOldest if self.len >= max => (trims, self.len) = (true, max),
                _ => self.len += 1,
            }
        }
        if self.is_expired {
            writes.push((log.clone(), Write::Del));
        }
        while lines.len() > COMMAND_ARGUMENTS_MAX {
            let rest = lines.split_off(COMMAND_ARGUMENTS_MAX);
            writes.push((log.clone(), Write::RPush(std::mem::replace(&mut lines, rest))));
        }
        writes.push((log.clone(), Write::RPush(lines)));
        if trims {
            writes.push((log.clone(), Write::LTrim(-(self.len as i64), -1)));
        }
        match expiry {
            LogExpiry::At(at) => writes.push((log.clone(), Write::ExpireAt(at))),
            LogExpiry::IfNone(at) if !self.has_deadline => writes.push((log.clone(), Write::ExpireAt(at))),
            _ => {}
        }
        Ok(())
    }
}
