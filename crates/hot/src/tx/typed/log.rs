//! Event logs: entries that are appended in the same commit as the state that they describe.
//!
//! An entry exists exactly if its transaction committed. See [`LogPosition`] and [`LogPage`] for what readers
//! learn, and `Scope::follow` for a stream of entries.

use crate::limits::{LOG_BLOCK_ENTRIES_MAX, LOG_BLOCK_ENTRIES_MIN, REPLY_ELEMENTS_MAX};
use crate::tx::decode::with_family;
use crate::tx::log::{
    LAST, LastNumber, LogEntry, LogPage, LogPosition, Place, last_number, marked, not_an_entry, numbered,
    parse_entry,
};
use crate::tx::*;
use emberkeep_schema::{Automatic, Keep, Log, LogBound};

impl<P: Partition> ReadTx<'_, P> {
    /// The position of the newest entry, those of [`Tx::append_numbered`] included. Sequence 0 = there is no
    /// log, or no element of it is an entry. Without a mark, an external client overwrote it.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn log_last<F, C, B>(&mut self, log: &Key<F>) -> Result<LogPosition>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let raw = self.key(log);
        match Place::of(self.raw.read(&raw, LAST)).map_err(with_family::<F>)? {
            Place::Empty => Ok(LogPosition::START),
            Place::Entry(entry) => Ok(entry.position()),
            Place::Other => match last_number(|read| self.raw.read(&raw, read)).map_err(with_family::<F>)? {
                LastNumber::Known(number) => Ok(number.into()),
                LastNumber::NoLog | LastNumber::Lost => Ok(LogPosition::START),
            },
        }
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
        let sequence = self.raw.last_number(&raw).map_err(with_family::<F>)? + 1;
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
        match trimmed_to(&mut self.raw, &raw, through).map_err(with_family::<F>)? {
            Some(kept) => self.raw.write(raw, Write::LTrim(kept, -1)),
            None => Ok(()),
        }
    }
}

/// The index of the entry at which a trim ends; `None` = it removes nothing. By the number of the first element; by that of
/// the last one only where an external client left something else than entries in order.
fn trimmed_to(raw: &mut RawTx<'_>, key: &RawKey, through: LogPosition) -> Result<Option<i64>> {
    let first = match Place::of(raw.read(key, Read::LRange(0, 0)))? {
        Place::Empty => return Ok(None),
        Place::Entry(entry) => Some(entry.sequence as i64),
        Place::Other => None,
    };
    if let Some(first) = first
        && let Some(kept) = entry_through(raw, key, through, first)?
    {
        return Ok((kept != 0).then_some(kept));
    }
    let Some((first, _)) = numbers_by_tail(raw, key)? else { return Ok(None) };
    Ok(entry_through(raw, key, through, first)?.filter(|kept| *kept != 0))
}

/// The index of a position in a list whose first element has this number; 0 if nothing is before it, or it is not in the
/// list. `None` = an element that is not the entry of its place is there.
fn entry_through(raw: &mut RawTx<'_>, key: &RawKey, through: LogPosition, first: i64) -> Result<Option<i64>> {
    let surplus = i64::try_from(through.sequence).unwrap_or(i64::MAX).saturating_sub(first);
    if surplus <= 0 {
        return Ok(Some(0));
    }
    Ok(match (Place::of(raw.read(key, Read::LRange(surplus, surplus)))?, through.mark) {
        // Beyond the end: the last one stays.
        (Place::Empty, None) => Some(-1),
        (Place::Empty, Some(_)) => Some(0),
        (Place::Entry(entry), _) if entry.sequence != through.sequence => None,
        (Place::Entry(entry), Some(mark)) if entry.mark != mark => Some(0),
        (Place::Entry(_), _) | (Place::Other, None) => Some(surplus),
        (Place::Other, Some(_)) => None,
    })
}

/// The numbers of the first and the last element, counted from the entry nearest to the end. `None` = no element is an
/// entry.
fn numbers_by_tail(raw: &mut RawTx<'_>, key: &RawKey) -> Result<Option<(i64, u64)>> {
    let LastNumber::Known(last) = last_number(|read| raw.read(key, read))? else { return Ok(None) };
    let length = decode::count(raw.read(key, Read::LLen)?)?;
    Ok(Some((last as i64 + 1 - length as i64, last)))
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
    let mut ends = ends.into_iter().map(Place::of);
    let mut end = || ends.next().unwrap_or(Ok(Place::Empty));
    let no_log = LogPage { is_reset: after.sequence > 0, ..LogPage::default() };
    match (end()?, end()?) {
        (Place::Empty, Place::Empty) => return Ok(no_log),
        (Place::Entry(head), Place::Entry(tail)) if head.sequence <= tail.sequence => {
            let numbers = (head.sequence as i64, tail.sequence);
            let (page, is_in_order) = page_of(raw, key, after, limit, keep, numbers)?;
            if is_in_order {
                return Ok(page);
            }
        }
        _ => {}
    }
    // An external client changed the list. The numbers of entries to come continue that of the last one.
    let Some(numbers) = numbers_by_tail(raw, key)? else { return Ok(no_log) };
    Ok(page_of(raw, key, after, limit, keep, numbers)?.0)
}

/// A page of a list whose first and last element have these numbers, and whether its entries have the numbers of their
/// places.
fn page_of(
    raw: &mut RawTx<'_>,
    key: &RawKey,
    after: LogPosition,
    limit: usize,
    keep: Keep,
    (first, last): (i64, u64),
) -> Result<(LogPage<Bytes>, bool)> {
    let page = LogPage { last, ..LogPage::default() };
    if after.sequence > last {
        return Ok((LogPage { is_reset: true, ..page }, true));
    }
    // Elements before the first number are those of external clients.
    let begin = first.max(1) as u64;
    let start = (after.sequence + 1).max(begin);
    let page = LogPage { missed: start - after.sequence - 1, ..page };
    // The entry that the reader stands at is read with the others, to compare its mark.
    let compared = after.mark.filter(|_| after.sequence >= begin);
    let from = start - u64::from(compared.is_some());
    let fewest = 1 + compared.is_some() as u64;
    let limit = (limit as u64).saturating_add(fewest - 1).clamp(fewest, REPLY_ELEMENTS_MAX as u64);
    if from > last {
        return Ok((page, true));
    }
    let drops = matches!(keep, Keep::Newest(max) if last as i64 - first + 1 >= max as i64);
    let moving =
        if drops && raw.is_remote() { read_moving(raw, key, (first, last), from, limit)? } else { None };
    let stored = match moving {
        Some(stored) => stored.into_iter().take(limit as usize).collect(),
        // The range does not depend on the last sequence: a log that grows meanwhile would ask for another one
        // in every run.
        None => read_entries(raw, key, from as i64 - first, limit, fewest)?,
    };
    let has_place = |(place, stored)| parse_entry(stored).is_none_or(|entry| entry.sequence == place);
    let is_in_order = !stored.is_empty() && (from..=last).zip(&stored).all(has_place);
    let mut entries = (from..=last).zip(&stored).map(|(place, stored)| entry_of(place, stored));
    if let Some(mark) = compared {
        let stands = entries.next();
        if stands.is_some_and(|entry| entry.mark.is_some_and(|found| found != mark)) {
            return Ok((LogPage { is_reset: true, missed: 0, ..page }, is_in_order));
        }
    }
    Ok((LogPage { entries: entries.collect(), ..page }, is_in_order))
}

/// Elements from a sequence on of a log that drops its oldest entry with each new one. Every index in it moves
/// while entries are appended, and on a remote engine a range by index would be another read in every run of
/// the body. So the range is wider than needed, and the same one after some more entries. `None` = it is too
/// large for one reply.
fn read_moving(
    raw: &mut RawTx<'_>,
    key: &RawKey,
    (first, last): (i64, u64),
    from: u64,
    limit: u64,
) -> Result<Option<Vec<Bytes>>> {
    let (index, needed) = (from as i64 - first, last - from + 1);
    let block = limit.next_power_of_two().clamp(LOG_BLOCK_ENTRIES_MIN, LOG_BLOCK_ENTRIES_MAX);
    let (range, skipped) = if needed <= 2 * block && needed <= REPLY_ELEMENTS_MAX as u64 {
        // From the end: twice as many once it has grown by as many again.
        let count = (needed + 1).next_power_of_two().min(REPLY_ELEMENTS_MAX as u64);
        (Read::LRange(-(count as i64), -1), count.min((last as i64 - first + 1) as u64) - needed)
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
fn read_entries(raw: &mut RawTx<'_>, key: &RawKey, from: i64, count: u64, fewest: u64) -> Result<Vec<Bytes>> {
    let (mut count, fewest) = (count as i64, fewest as i64);
    loop {
        match raw.read(key, Read::LRange(from, from + count - 1)) {
            Ok(Reply::List(stored)) => return Ok(stored),
            Ok(_) => return Ok(vec![]),
            Err(crate::error::Error::TooLarge { .. }) if count > fewest => count = (count / 2).max(fewest),
            Err(crate::error::Error::TooLarge { .. }) => {
                let each: Result<Vec<_>> =
                    (from..from + fewest).map(|index| read_element(raw, key, index)).collect();
                return Ok(each?.into_iter().flatten().collect());
            }
            Err(error) => return Err(error),
        }
    }
}

/// One element. Of one that no reply holds, which is not an entry, a text that says so.
fn read_element(raw: &mut RawTx<'_>, key: &RawKey, index: i64) -> Result<Option<Bytes>> {
    match raw.read(key, Read::LRange(index, index)) {
        Ok(Reply::List(stored)) => Ok(stored.into_iter().next()),
        Ok(_) => Ok(None),
        Err(crate::error::Error::TooLarge { found, unit, .. }) => {
            Ok(Some(Bytes::from(format!("an element of {found} {unit}"))))
        }
        Err(error) => Err(error),
    }
}

/// The entry at a place. Without a mark if it does not have that sequence.
fn entry_of(place: u64, stored: &Bytes) -> LogEntry<Bytes> {
    match parse_entry(stored).filter(|entry| entry.sequence == place) {
        Some(entry) => LogEntry { sequence: place, mark: Some(entry.mark), event: Ok(entry.event) },
        None => LogEntry { sequence: place, mark: None, event: Ok(stored.clone()) },
    }
}
