//! One run of a transaction over raw keys: reads from a source, effects in a buffer.

use super::decode::with_family_named;
use super::log::{LAST, last_number, numbered};
use super::{ReadSource, overlay};
use crate::command::*;
use crate::error::{Error, Result, show};
use crate::limits::{
    COMMAND_ARGUMENTS_MAX, LOG_ENTRY_BYTES_MAX, READS_TOGETHER_BYTES_MAX, READS_TOGETHER_MAX,
    TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX,
};
use bytes::Bytes;

/// One run of a body over raw keys: reads go to the source, effects are buffered.
pub struct RawTx<'a> {
    source: &'a mut dyn ReadSource,
    effects: &'a mut Effects,
    random: u64,
    suspended: bool,
    /// Whether reads go on after one that was not available: see [`RawTx::begin_together`].
    together: bool,
    /// Bytes of the effects so far.
    bytes: usize,
    /// Keeps a string alive that the source cannot lend.
    scratch: Option<Bytes>,
}

impl<'a> RawTx<'a> {
    /// Starts a run. `effects` must be empty; `seed` is the transaction's own, the same in every run.
    pub fn new(source: &'a mut dyn ReadSource, effects: &'a mut Effects, seed: u64) -> Self {
        debug_assert!(effects.is_empty());
        let (suspended, together) = (false, false);
        RawTx { source, effects, random: mix(seed), suspended, together, bytes: 0, scratch: None }
    }

    /// The same run with a shorter lifetime. `&mut dyn` is invariant, so the compiler does not shorten it by
    /// itself.
    pub(super) fn shortened<'b>(self) -> RawTx<'b>
    where
        'a: 'b,
    {
        let RawTx { source, effects, random, suspended, together, bytes, scratch } = self;
        RawTx { source, effects, random, suspended, together, bytes, scratch }
    }

    /// Answers a read, own writes included. Refusals are errors.
    pub fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        self.check_running()?;
        self.ask(key, &read)
    }

    /// Answers many reads in their order, own writes included. Each refusal is an error of its own. A remote
    /// engine fetches all missing ones together.
    pub fn read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>> {
        self.check_running()?;
        if reads.len() > READS_TOGETHER_MAX {
            let problem = format!("{} read together, at most {READS_TOGETHER_MAX}; split them", reads.len());
            return Err(Error::invalid("keys", problem));
        }
        // Do not stop at the first missing one: the engine fetches all that were asked for.
        let replies: Vec<_> = reads.iter().map(|(key, read)| self.ask(key, read)).collect();
        if replies.contains(&Err(Error::Suspended)) {
            return Err(Error::Suspended);
        }
        let bytes: usize = replies.iter().flatten().map(Reply::bytes).sum();
        match reads.first() {
            Some((key, read)) if bytes > READS_TOGETHER_BYTES_MAX => {
                let key = format!("{} and {} more keys", show(key), reads.len() - 1);
                let (what, max) = (read.name(), READS_TOGETHER_BYTES_MAX);
                Err(Error::TooLarge { key, what, found: bytes, unit: "bytes", max })
            }
            _ => Ok(replies),
        }
    }

    fn ask(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        read.check(key)?;
        let reply = if self.is_dirty(key) {
            let writes: Vec<&Write> =
                self.effects.writes.iter().filter(|(k, _)| k == key).map(|(_, w)| w).collect();
            overlay::read(self.source, key, &writes, read)
        } else {
            self.source.read(key, read)
        };
        self.note(reply)?.checked(key, read)
    }

    /// Refuses every read after one that was not available: a body that goes on would read keys that it made
    /// up.
    fn check_running(&self) -> Result<()> {
        if self.suspended && !self.together { Err(Error::Suspended) } else { Ok(()) }
    }

    /// The string at `key`, borrowed from the source if it can lend it.
    pub fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>> {
        self.check_running()?;
        if self.is_dirty(key) {
            self.scratch = match self.read(key, Read::Get)? {
                Reply::Blob(blob) => Some(blob),
                _ => None,
            };
            return Ok(self.scratch.as_deref());
        }
        let text = self.source.text(key, &mut self.scratch);
        self.suspended |= matches!(text, Err(Error::Suspended));
        text
    }

    /// Whether a missing read costs a round trip.
    pub(super) fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    /// Lets a suspended run on a remote engine read on: the engine fetches these reads too, and discards the
    /// effects of the run anyway. `false` = the run is not suspended, or a missing read costs no round trip.
    pub(super) fn begin_prefetch(&mut self) -> bool {
        let useful = self.suspended && self.is_remote();
        self.suspended &= !useful;
        useful
    }

    /// Ends what [`begin_prefetch`](RawTx::begin_prefetch) began.
    pub(super) fn end_prefetch(&mut self) {
        self.suspended = true;
    }

    /// Until [`end_together`](RawTx::end_together), a read that is not available does not stop the next ones:
    /// the engine fetches all of them. Returns what `end_together` needs.
    pub(super) fn begin_together(&mut self) -> Result<bool> {
        self.check_running()?;
        Ok(std::mem::replace(&mut self.together, true))
    }

    /// Ends what [`begin_together`](RawTx::begin_together) began. An error if a read was not available.
    pub(super) fn end_together(&mut self, outer: bool) -> Result<()> {
        self.together = outer;
        self.check_running()
    }

    /// What the body has written so far.
    pub(super) fn savepoint(&self) -> Savepoint {
        let Effects { writes, log, woken, messages } = &*self.effects;
        let (writes, woken, messages) = (writes.len(), woken.len(), messages.len());
        Savepoint { writes, log: log.clone(), woken, messages, bytes: self.bytes }
    }

    /// Undoes all effects since the savepoint. What was read stays read.
    pub(super) fn undo_to(&mut self, savepoint: Savepoint) {
        self.effects.writes.truncate(savepoint.writes);
        self.effects.log = savepoint.log;
        self.effects.woken.truncate(savepoint.woken);
        self.effects.messages.truncate(savepoint.messages);
        self.bytes = savepoint.bytes;
    }

    /// [`RawTx::read`] for a key of a family, which an error names.
    pub(super) fn read_of(&mut self, key: &RawKey, read: Read, family: &str) -> Result<Reply> {
        self.read(key, read).map_err(|error| with_family_named(error, family))
    }

    /// [`RawTx::text`] for a key of a family, which an error names.
    pub(super) fn text_of(&mut self, key: &RawKey, family: &str) -> Result<Option<&[u8]>> {
        self.text(key).map_err(|error| with_family_named(error, family))
    }

    /// [`RawTx::read_many`] of one read for keys of one family.
    pub(super) fn read_many_of(
        &mut self,
        keys: Vec<RawKey>,
        read: &Read,
        family: &str,
    ) -> Result<Vec<(RawKey, Result<Reply>)>> {
        let reads: Vec<_> = keys.into_iter().map(|key| (key, read.clone())).collect();
        let replies = self.read_many(&reads).map_err(|error| with_family_named(error, family))?;
        Ok(reads.into_iter().map(|(key, _)| key).zip(replies).collect())
    }

    /// Buffers a write until the commit. Refuses what the server would refuse, and what is beyond the limits of a transaction.
    pub fn write(&mut self, key: RawKey, write: Write) -> Result<()> {
        check_key(&key)?;
        write.check()?;
        if let Some(at) = write.deadline() {
            self.check_not_passed(at)?;
        }
        if let Write::LSet(at, _) = write
            && self.read(&key, Read::LRange(at, at))? == Reply::List(vec![])
        {
            // The server would refuse it after other writes of the transaction. The read is validated.
            return Err(Error::invalid("index", format!("{at}, the list {} is shorter", show(&key))));
        }
        if matches!(write, Write::Del) || write.is_of_deadline() {
            self.number_appended(&key)?;
        }
        self.check_count()?;
        self.add_bytes(key.len() + write.bytes())?;
        self.effects.writes.push((key, write));
        Ok(())
    }

    /// Refuses one more write or entry of a log beyond the limit of a transaction.
    fn check_count(&self) -> Result<()> {
        if self.effects.writes.len() + self.effects.log.len() < TRANSACTION_WRITES_MAX {
            return Ok(());
        }
        let problem = format!("more than {TRANSACTION_WRITES_MAX} writes; loop over bounded transactions");
        Err(Error::invalid("transaction", problem))
    }

    /// Counts bytes against the limit of a transaction.
    fn add_bytes(&mut self, bytes: usize) -> Result<()> {
        if self.bytes + bytes > TRANSACTION_BYTES_MAX {
            let problem = format!("more than {TRANSACTION_BYTES_MAX} bytes; loop over bounded transactions");
            return Err(Error::invalid("transaction", problem));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Buffers an entry of a log; the commit numbers it.
    pub fn append(&mut self, entry: LogAppend) -> Result<()> {
        check_key(&entry.log)?;
        check_log_entry(entry.entry.len(), entry.entries_max)?;
        if let LogExpiry::IfNone(at) | LogExpiry::At(at) = entry.expiry {
            Write::ExpireAt(at).check()?;
            self.check_not_passed(at)?;
        }
        self.check_count()?;
        self.add_bytes(entry.log.len() + entry.entry.len())?;
        self.effects.log.push(entry);
        Ok(())
    }

    /// Entries that this run appends to a log without numbers of their own.
    pub(super) fn appended_to(&self, log: &RawKey) -> usize {
        self.effects.log.iter().filter(|append| append.log == *log).count()
    }

    /// Turns the entries that this run appends to a log without numbers into plain writes. A write that removes
    /// entries or moves the deadline comes after them, so they must stand before it: a full log refuses them
    /// although the removal would make room.
    pub(super) fn number_appended(&mut self, log: &RawKey) -> Result<()> {
        if self.appended_to(log) == 0 {
            return Ok(());
        }
        let savepoint = self.savepoint();
        let numbered = self.write_appended(log);
        if numbered.is_err() {
            // A body that goes on after the error must not lose its entries.
            self.undo_to(savepoint);
        }
        numbered
    }

    fn write_appended(&mut self, log: &RawKey) -> Result<()> {
        // Both reads that follow, together.
        self.read_many(&[(log.clone(), LAST), (log.clone(), Read::LLen)])?;
        let mut last = self.last_number(log)?;
        let mut length =
            if let Reply::Int(length) = self.read(log, Read::LLen)? { length as usize } else { 0 };
        let own: Vec<LogAppend> = self.effects.log.extract_if(.., |append| append.log == *log).collect();
        self.bytes -= own.iter().map(|append| log.len() + append.entry.len()).sum::<usize>();
        let mut lines = Vec::with_capacity(own.len());
        for append in &own {
            if append.overflow == Overflow::Refuse && length >= append.entries_max {
                return Err(Error::LogFull { key: show(log), max: append.entries_max });
            }
            (length, last) = (length + 1, last + 1);
            lines.push(numbered(last, &append.entry));
        }
        for lines in lines.chunks(COMMAND_ARGUMENTS_MAX) {
            self.write(log.clone(), Write::RPush(lines.to_vec()))?;
        }
        // All of them are of one family: the last one speaks for all.
        if let Some(LogAppend { entries_max, overflow, expiry, .. }) = own.last() {
            if *overflow == Overflow::DropOldest && length > *entries_max {
                self.write(log.clone(), Write::LTrim(-(*entries_max as i64), -1))?;
            }
            match expiry {
                LogExpiry::At(at) => self.write(log.clone(), Write::ExpireAt(*at))?,
                LogExpiry::IfNone(at) => self.write(log.clone(), Write::ExpireAtIfNone(*at))?,
                LogExpiry::Keep => {}
            }
        }
        self.wake(log.clone());
        Ok(())
    }

    /// The number of a log's last element; 0 = there is no log.
    pub(super) fn last_number(&mut self, log: &RawKey) -> Result<u64> {
        let last = last_number(|read| self.read(log, read))?;
        Ok(last.or_by_time(|| self.now()))
    }

    /// Refuses a deadline that would remove the key at once.
    fn check_not_passed(&mut self, at: i64) -> Result<()> {
        let now = self.now();
        if at > now {
            return Ok(());
        }
        Err(Error::invalid("deadline", format!("{at} has passed, it is {now} now")))
    }

    /// Wakes the followers of a log that the buffered writes append to.
    pub(super) fn wake(&mut self, log: RawKey) {
        if !self.effects.woken.contains(&log) {
            self.effects.woken.push(log);
        }
    }

    /// Buffers a message, sent when the transaction commits.
    pub fn publish(&mut self, channel: Bytes, payload: Bytes) -> Result<()> {
        check_key(&channel)?;
        Write::Set(payload.clone(), Expiry::Keep).check()?;
        self.add_bytes(channel.len() + payload.len())?;
        self.effects.messages.push((channel, payload));
        Ok(())
    }

    /// The engine's milliseconds since 1970; one value for the whole run.
    pub fn now(&mut self) -> i64 {
        self.source.now()
    }

    /// The next number of the transaction's own random stream (SplitMix64); a rerun draws the same numbers.
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.random)
    }

    pub(super) fn is_dirty(&self, key: &RawKey) -> bool {
        self.effects.writes.iter().any(|(k, _)| k == key)
    }

    fn note(&mut self, reply: Result<Reply>) -> Result<Reply> {
        self.suspended |= matches!(reply, Err(Error::Suspended));
        reply
    }
}

/// How much a body had written at some point of its run.
#[derive(Debug, Clone)]
pub(super) struct Savepoint {
    writes: usize,
    /// The entries themselves: a removal of their log turns them into writes.
    log: Vec<LogAppend>,
    woken: usize,
    messages: usize,
    bytes: usize,
}

/// SplitMix64's mix. Engines give transactions seeds that are a constant apart, possibly the generator's own
/// increment. After the mix their streams start at unrelated places.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Refuses an entry that no page could hold, and a log of 0 entries, which engines would treat differently.
pub(super) fn check_log_entry(bytes: usize, entries_max: usize) -> Result<()> {
    if bytes > LOG_ENTRY_BYTES_MAX {
        let problem = format!("{bytes} bytes, a log takes entries of up to {LOG_ENTRY_BYTES_MAX}");
        return Err(Error::invalid("log entry", problem));
    }
    match entries_max {
        0 => Err(Error::invalid("log bound", "0 entries, expected at least 1")),
        _ => Ok(()),
    }
}

/// Answers a read as if `writes` had been applied to the source: what a transaction reads that runs after
/// others in the same commit.
pub fn read_through(
    source: &mut dyn ReadSource,
    key: &RawKey,
    writes: &[&Write],
    read: &Read,
) -> Result<Reply> {
    if writes.is_empty() { source.read(key, read) } else { overlay::read(source, key, writes, read) }
}
