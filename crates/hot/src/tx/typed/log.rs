//! Event logs: entries that are appended in the same commit as the state that they describe.
//!
//! An entry exists exactly if its transaction committed. See [`LogPosition`] and [`LogPage`] for what readers
//! learn, and `Scope::follow` for a stream of entries.

use crate::limits::{LOG_BLOCK_ENTRIES_MAX, LOG_BLOCK_ENTRIES_MIN, REPLY_ELEMENTS_MAX};
use crate::tx::decode::with_family;
use crate::tx::log::{
    LAST, LogEntry, LogPage, LogPosition, marked, not_an_entry, numbered, only_entry, parse_entry,
};
use crate::tx::*;
use emberkeep_schema::{Automatic, Keep, Log, LogBound};

impl<P: Partition> ReadTx<'_, P> {
    /// The position of the newest entry, those of [`Tx::append_numbered`] included. Sequence 0 = there is no
    /// log.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn log_last<F, C, B>(&mut self, log: &Key<F>) -> Result<LogPosition>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let (raw, reply) = self.read(log, LAST)?;
        Ok(only_entry(&raw, reply)?.map_or(LogPosition::START, |entry| entry.position()))
    }

    /// Up to `limit` entries after a position (0 = from the start), fewer if they are large, or if the log drops
    /// old entries while it is read: more follow while the last one is before [`LogPage::last`]. An entry whose
    /// event cannot be read has an error in its place.
    ///
    /// Cost: three reads, of which two are made together. On a remote engine two round trips, more if entries
    /// are large.
    pub fn log_after<F, C, B>(
        &mut self,
        log: &Key<F>,
        after: impl Into<LogPosition>,
        limit: usize,
    ) -> Result<LogPage<C::Value>>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let raw = self.key(log);
        let LogPage { entries, last, missed, is_reset } = self.log_after_encoded(log, after, limit)?;
        let entries = entries.into_iter().map(|LogEntry { sequence, mark, event }| {
            let event = match mark {
                Some(_) => event.and_then(|bytes| decode::decoded::<F, C>(&raw, &bytes)),
                None => Err(with_family::<F>(not_an_entry(&raw))),
            };
            LogEntry { sequence, mark, event }
        });
        Ok(LogPage { entries: entries.collect(), last, missed, is_reset })
    }

    /// The same with the bytes of each event, as the log's codec encoded it: for a consumer that stores entries
    /// elsewhere, also those that it cannot decode. An entry without a mark was overwritten by an external client;
    /// its bytes are all that stands in its place.
    ///
    /// Cost: as [`log_after`](Self::log_after).
    pub fn log_after_encoded<F, C, B>(
        &mut self,
        log: &Key<F>,
        after: impl Into<LogPosition>,
        limit: usize,
    ) -> Result<LogPage<Bytes>>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let raw = self.key(log);
        read_page(&mut self.raw, &raw, after.into(), limit, B::KEEP).map_err(with_family::<F>)
    }
}

impl<P: Partition> Tx<'_, P> {
    /// Appends an event to a log. Costs nothing until the commit, which gives it the next sequence.
    ///
    /// It reads nothing, so transactions that only append to the same log do not conflict. The transaction
    /// itself cannot read the entry; see [`Tx::append_numbered`], whose entries come first. Otherwise events of one
    /// transaction keep their order.
    /// After a trim or a removal of the log by the same transaction it is an [`Tx::append_numbered`], and so it
    /// becomes if one follows: what the body does to a log counts in its order, and a full log refuses an entry
    /// although a later removal would make room.
    ///
    /// Cost: local; sent with the commit.
    pub fn append<F, C, B>(&mut self, log: &Key<F>, event: &C::Value) -> Result<()>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        F::Ttl: Automatic,
        C: Codec,
        B: LogBound,
    {
        let expiry = match F::DECLARATION.ttl {
            Ttl::Fixed { ms } => LogExpiry::IfNone(self.now() + ms),
            Ttl::Refresh { ms } => LogExpiry::At(self.now() + ms),
            Ttl::Persistent | Ttl::Given => LogExpiry::Keep,
        };
        self.append_blind::<F, C, B>(log, event, expiry)
    }

    /// The same for a log of a `given` family: the whole log expires at `until_ms`, in milliseconds since
    /// 1970.
    ///
    /// Cost: local; sent with the commit.
    pub fn append_until<F, C, B>(&mut self, log: &Key<F>, event: &C::Value, until_ms: i64) -> Result<()>
    where
        F: Family<Partition = P, Kind = Log<C, B>, Ttl = Given>,
        C: Codec,
        B: LogBound,
    {
        self.append_blind::<F, C, B>(log, event, LogExpiry::At(until_ms))
    }

    fn append_blind<F, C, B>(&mut self, log: &Key<F>, event: &C::Value, expiry: LogExpiry) -> Result<()>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        self.check_family::<F>()?;
        let raw = self.key(log);
        if self.raw.is_dirty(&raw) {
            // What it will find there depends on the body's own writes.
            let expire = |tx: &mut Self, raw| match expiry {
                LogExpiry::At(at) => tx.raw.write(raw, Write::ExpireAt(at)),
                LogExpiry::IfNone(at) => tx.raw.write(raw, Write::ExpireAtIfNone(at)),
                LogExpiry::Keep => Ok(()),
            };
            return self.append_read::<F, C, B>(log, event, expire).map(|_| ());
        }
        let entry = self.marked_entry::<F, C>(event)?;
        let (entries_max, overflow) = match B::KEEP {
            Keep::Newest(max) => (max, Overflow::DropOldest),
            Keep::RefuseAbove(max) => (max, Overflow::Refuse),
        };
        self.families.note(WrittenFamily::of::<F>());
        self.raw.append(LogAppend { log: raw, entry, entries_max, overflow, expiry })
    }

    /// Appends an event and returns its sequence. Reads the end of the log (prefetch: `Scope::prefetch_log`),
    /// so transactions that append to the same log this way depend on each other. Later reads of the same
    /// transaction see the entry.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn append_numbered<F, C, B>(&mut self, log: &Key<F>, event: &C::Value) -> Result<u64>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        F::Ttl: Automatic,
        C: Codec,
        B: LogBound,
    {
        self.append_read::<F, C, B>(log, event, |tx, raw| refresh(&mut tx.raw, raw, F::DECLARATION.ttl))
    }

    /// The same for a log of a `given` family: the whole log expires at `until_ms`, in milliseconds since
    /// 1970.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn append_numbered_until<F, C, B>(
        &mut self,
        log: &Key<F>,
        event: &C::Value,
        until_ms: i64,
    ) -> Result<u64>
    where
        F: Family<Partition = P, Kind = Log<C, B>, Ttl = Given>,
        C: Codec,
        B: LogBound,
    {
        self.append_read::<F, C, B>(log, event, |tx, raw| tx.raw.write(raw, Write::ExpireAt(until_ms)))
    }

    fn append_read<F, C, B>(
        &mut self,
        log: &Key<F>,
        event: &C::Value,
        expire: impl FnOnce(&mut Self, RawKey) -> Result<()>,
    ) -> Result<u64>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        self.check_family::<F>()?;
        let entry = self.marked_entry::<F, C>(event)?;
        raw::check_log_entry(entry.len(), B::KEEP.entries_max())?;
        let raw = self.key(log);
        if let Keep::RefuseAbove(_) = B::KEEP {
            // Both reads that follow, together: on a remote engine they cost one round trip.
            let ends = [(raw.clone(), LAST), (raw.clone(), Read::LLen)];
            self.raw.read_many(&ends).map_err(with_family::<F>)?;
        }
        let sequence = self.log_last(log)?.sequence + 1;
        if let Keep::RefuseAbove(max) = B::KEEP
            && decode::count(self.read(log, Read::LLen)?.1)? + self.raw.appended_to(&raw) >= max
        {
            let key = decode::named(&crate::error::show(&raw), F::DECLARATION.name);
            return Err(crate::error::Error::LogFull { key, max });
        }
        self.families.note(WrittenFamily::of::<F>());
        self.raw.write(raw.clone(), Write::RPush(vec![numbered(sequence, &entry)]))?;
        match B::KEEP {
            // A log of so many entries that was never trimmed: until then there is nothing to drop.
            Keep::Newest(max) if sequence > max as u64 => {
                self.raw.write(raw.clone(), Write::LTrim(-(max as i64), -1))?
            }
            _ => {}
        }
        // The deadline last: engines treat one that other writes follow as a special case.
        expire(self, raw.clone())?;
        self.raw.wake(raw);
        Ok(sequence)
    }

    /// The event with a mark of its own. Every run of the body draws the same one.
    fn marked_entry<F: Family, C: Codec>(&mut self, event: &C::Value) -> Result<Bytes> {
        let event = encoded::<F, C>(event)?;
        Ok(marked((self.random() >> 32) as u32, &event))
    }

    /// Removes the entries before `through`, after a consumer has stored them and `through` elsewhere. The
    /// entry of `through`, or the last one, stays: it carries the sequence, and tells the consumer when it
    /// comes back whether the log was set back. Only the head of the log is read, so appending does not
    /// conflict with it.
    ///
    /// A position with a mark removes nothing unless that very entry is in the log: a consumer that was paused
    /// while the log was set back does not remove entries that it has never read.
    ///
    /// Cost: two reads. On a remote engine at most two round trips.
    pub fn log_trim<F, C, B>(&mut self, log: &Key<F>, through: impl Into<LogPosition>) -> Result<()>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        self.check_family::<F>()?;
        let (raw, through) = (self.key(log), through.into());
        self.raw.number_appended(&raw).map_err(with_family::<F>)?;
        let entry_at = |tx: &mut Self, place: Read| only_entry(&raw, tx.read(log, place)?.1);
        let Some(first) = entry_at(self, Read::LRange(0, 0))?.map(|entry| entry.sequence) else {
            return Ok(());
        };
        let surplus = through.sequence.checked_sub(first).filter(|surplus| *surplus > 0);
        let Some(surplus) = surplus.map(|surplus| i64::try_from(surplus).unwrap_or(i64::MAX)) else {
            return Ok(());
        };
        let found = entry_at(self, Read::LRange(surplus, surplus))?;
        let kept = match (found, through.mark) {
            (Some(entry), Some(mark)) if entry.mark != mark => return Ok(()),
            (Some(_), _) => surplus,
            (None, Some(_)) => return Ok(()),
            // Beyond the end: the last one stays.
            (None, None) => -1,
        };
        self.raw.write(raw.clone(), Write::LTrim(kept, -1))
    }
}

/// A page of the list, with the bytes of each event.
fn read_page(
    raw: &mut RawTx<'_>,
    key: &RawKey,
    after: LogPosition,
    limit: usize,
    keep: Keep,
) -> Result<LogPage<Bytes>> {
    let ends = raw.read_many(&[(key.clone(), Read::LRange(0, 0)), (key.clone(), LAST)])?;
    let mut ends = ends.into_iter().map(|reply| only_entry(key, reply?));
    let (head, tail) = (ends.next().transpose()?.flatten(), ends.next().transpose()?.flatten());
    let (first, last) = match (head, tail) {
        (Some(head), Some(tail)) if head.sequence <= tail.sequence => (head.sequence, tail.sequence),
        (None, None) => return Ok(LogPage { is_reset: after.sequence > 0, ..LogPage::default() }),
        _ => return Err(not_an_entry(key)),
    };
    let page = LogPage { last, ..LogPage::default() };
    if after.sequence > last {
        return Ok(LogPage { is_reset: true, ..page });
    }
    let start = (after.sequence + 1).max(first);
    let page = LogPage { missed: start - after.sequence - 1, ..page };
    // The entry that the reader stands at is read with the others, to compare its mark.
    let compared = after.mark.filter(|_| after.sequence >= first);
    let from = start - u64::from(compared.is_some());
    let fewest = 1 + compared.is_some() as u64;
    let limit = (limit as u64).saturating_add(fewest - 1).clamp(fewest, REPLY_ELEMENTS_MAX as u64);
    if from > last {
        return Ok(page);
    }
    let drops = matches!(keep, Keep::Newest(max) if last - first + 1 >= max as u64);
    let moving =
        if drops && raw.is_remote() { read_moving(raw, key, (first, last), from, limit)? } else { None };
    let stored = match moving {
        Some(stored) => stored.into_iter().take(limit as usize).collect(),
        // The range does not depend on the last sequence: a log that grows meanwhile would ask for another one
        // in every run.
        None => read_entries(raw, key, from - first, limit, fewest)?,
    };
    let mut entries = (from..=last).zip(&stored).map(|(place, stored)| entry_of(place, stored));
    if let Some(mark) = compared {
        let stands = entries.next();
        if stands.is_some_and(|entry| entry.mark.is_some_and(|found| found != mark)) {
            return Ok(LogPage { is_reset: true, missed: 0, ..page });
        }
    }
    Ok(LogPage { entries: entries.collect(), ..page })
}

/// Elements from a sequence on of a log that drops its oldest entry with each new one. Every index in it moves
/// while entries are appended, and on a remote engine a range by index would be another read in every run of
/// the body. So the range is wider than needed, and the same one after some more entries. `None` = it is too
/// large for one reply.
fn read_moving(
    raw: &mut RawTx<'_>,
    key: &RawKey,
    (first, last): (u64, u64),
    from: u64,
    limit: u64,
) -> Result<Option<Vec<Bytes>>> {
    let (index, needed) = ((from - first) as i64, last - from + 1);
    let block = limit.next_power_of_two().clamp(LOG_BLOCK_ENTRIES_MIN, LOG_BLOCK_ENTRIES_MAX);
    let (range, skipped) = if needed <= 2 * block && needed <= REPLY_ELEMENTS_MAX as u64 {
        // From the end: twice as many once it has grown by as many again.
        let count = (needed + 1).next_power_of_two().min(REPLY_ELEMENTS_MAX as u64);
        (Read::LRange(-(count as i64), -1), count.min(last - first + 1) - needed)
    } else {
        let (begin, count) = (index - index % block as i64, (2 * block).min(REPLY_ELEMENTS_MAX as u64));
        (Read::LRange(begin, begin + count as i64 - 1), (index - begin) as u64)
    };
    match raw.read(key, range) {
        Ok(Reply::List(stored)) => Ok(Some(stored.into_iter().skip(skipped as usize).collect())),
        Ok(_) => Ok(Some(vec![])),
        Err(crate::error::Error::TooLarge { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// So many elements from an index on, or as many of them as one reply holds, but not fewer than that.
fn read_entries(raw: &mut RawTx<'_>, key: &RawKey, from: u64, count: u64, fewest: u64) -> Result<Vec<Bytes>> {
    let (from, mut count) = (i64::try_from(from).unwrap_or(i64::MAX / 2), count as i64);
    let fewest = fewest as i64;
    loop {
        match raw.read(key, Read::LRange(from, from + count - 1)) {
            Ok(Reply::List(stored)) => return Ok(stored),
            Ok(_) => return Ok(vec![]),
            Err(crate::error::Error::TooLarge { .. }) if count > fewest => count = (count / 2).max(fewest),
            Err(error) => return Err(error),
        }
    }
}

/// The entry at a place. Without a mark if it does not have that sequence.
fn entry_of(place: u64, stored: &Bytes) -> LogEntry<Bytes> {
    match parse_entry(stored).filter(|entry| entry.sequence == place) {
        Some(entry) => LogEntry { sequence: place, mark: Some(entry.mark), event: Ok(entry.event) },
        None => LogEntry { sequence: place, mark: None, event: Ok(stored.clone()) },
    }
}
