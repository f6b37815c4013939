//! The atomic transaction as engines see it: raw keys, reads over a base, buffered effects.
//!
//! Responsible for: read-your-writes, the checks every write passes, one time and one random stream per transaction.
//! Not responsible for: locks, networks, retries (engines), types and TTL policies (`Tx`).

mod base;
pub(crate) mod overlay;

pub use base::Base;
pub use overlay::absent;

use crate::command::*;
use crate::error::{Error, Result, show};
use crate::limits::{
    READS_TOGETHER_BYTES_MAX, READS_TOGETHER_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX,
};
use bytes::Bytes;

/// A unit of work that an engine runs, possibly several times, and commits at most once.
pub trait Transaction: Send {
    /// Runs the body once. `true` asks for the commit of its effects; on `false` (an error of the body) they are
    /// discarded, but the reads are validated all the same.
    fn run(&mut self, tx: &mut RawTx<'_>) -> bool;

    /// An error of the commit in the words of the transaction's owner, who knows more of a raw key than an engine does.
    fn explain(&self, error: Error) -> Error {
        error
    }

    /// The transaction back, so that its owner finds the result inside.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// One run of a body: reads fall through to the base, effects are buffered.
pub struct RawTx<'a> {
    base: &'a mut dyn Base,
    effects: &'a mut Effects,
    random: u64,
    suspended: bool,
    /// What the effects weigh so far.
    bytes: usize,
    /// Keeps a string of the body's own writing alive while the body looks at it.
    scratch: Option<Bytes>,
}

impl<'a> RawTx<'a> {
    /// Starts a run. `effects` must be empty; `seed` is the transaction's own, the same in every run.
    pub fn new(base: &'a mut dyn Base, effects: &'a mut Effects, seed: u64) -> Self {
        debug_assert!(effects.is_empty());
        RawTx { base, effects, random: mix(seed), suspended: false, bytes: 0, scratch: None }
    }

    /// Whether a read was not known: whatever the body returned means nothing, it will run again.
    pub fn suspended(&self) -> bool {
        self.suspended
    }

    /// Answers a read, own writes included. Refusals are errors.
    pub fn read(&mut self, key: &RawKey, read: Read) -> Result<Reply> {
        self.settled()?;
        self.ask(key, &read)
    }

    /// Answers many reads, own writes included, in their order; each refusal is an error of its own. What is not
    /// known of them is asked for together, not one by one.
    pub fn read_many(&mut self, reads: &[(RawKey, Read)]) -> Result<Vec<Result<Reply>>> {
        self.settled()?;
        if reads.len() > READS_TOGETHER_MAX {
            let problem = format!("{} read together, at most {READS_TOGETHER_MAX}; split them", reads.len());
            return Err(Error::invalid("keys", problem));
        }
        // On to the end also after one that is not known: that is what makes the engine ask for all of them.
        let replies: Vec<_> = reads.iter().map(|(key, read)| self.ask(key, read)).collect();
        self.settled()?;
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
            overlay::read(self.base, key, &writes, read)
        } else {
            self.base.read(key, read)
        };
        self.note(reply)?.checked(key, read)
    }

    /// A body that goes on after a read that is not known asks for what it made up: nothing more is answered.
    fn settled(&self) -> Result<()> {
        if self.suspended { Err(Error::Suspended) } else { Ok(()) }
    }

    /// The string at `key`, borrowed from where it lives.
    pub fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>> {
        self.settled()?;
        if self.is_dirty(key) {
            self.scratch = match self.read(key, Read::Get)? {
                Reply::Blob(blob) => Some(blob),
                _ => None,
            };
            return Ok(self.scratch.as_deref());
        }
        let text = self.base.text(key);
        self.suspended |= matches!(text, Err(Error::Suspended));
        text
    }

    /// Begins to look at what transactions behind this one will read. Only in a run that has ended for want of a read, on an
    /// engine that is far away: reads that are not known are asked for beside that one, and the effects of such a run
    /// are discarded anyway. `false` = there is no use in it.
    pub fn look_ahead(&mut self) -> bool {
        let useful = self.suspended && self.base.is_far();
        self.suspended &= !useful;
        useful
    }

    /// Ends what [`look_ahead`](RawTx::look_ahead) began.
    pub fn look_back(&mut self) {
        self.suspended = true;
    }

    /// Buffers a write.
    pub fn write(&mut self, key: RawKey, write: Write) -> Result<()> {
        check_key(&key)?;
        write.check()?;
        if let Write::Set(_, Expiry::At(at)) | Write::ExpireAt(at) = write
            && at <= self.now()
        {
            return Err(Error::invalid("deadline", format!("{at} has passed, it is {} now", self.now())));
        }
        if self.effects.writes.len() >= TRANSACTION_WRITES_MAX {
            return Err(Error::invalid(
                "transaction",
                format!("more than {TRANSACTION_WRITES_MAX} writes; loop over bounded transactions"),
            ));
        }
        self.weigh(key.len() + write.bytes())?;
        self.effects.writes.push((key, write));
        Ok(())
    }

    /// Counts bytes that the commit will carry.
    fn weigh(&mut self, bytes: usize) -> Result<()> {
        if self.bytes + bytes > TRANSACTION_BYTES_MAX {
            let problem = format!("more than {TRANSACTION_BYTES_MAX} bytes; loop over bounded transactions");
            return Err(Error::invalid("transaction", problem));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Buffers an entry of the partition's log.
    pub fn record(&mut self, entry: LogAppend) -> Result<()> {
        Write::Set(entry.entry.clone(), Expiry::Keep).check()?;
        check_log_bound(entry.entries_max)?;
        self.weigh(entry.entry.len())?;
        self.effects.log.push(entry);
        Ok(())
    }

    /// Buffers a message, sent when the transaction commits.
    pub fn publish(&mut self, channel: Bytes, payload: Bytes) -> Result<()> {
        check_key(&channel)?;
        Write::Set(payload.clone(), Expiry::Keep).check()?;
        self.weigh(channel.len() + payload.len())?;
        self.effects.messages.push((channel, payload));
        Ok(())
    }

    /// The engine's milliseconds since 1970; one value for the whole run.
    pub fn now(&mut self) -> i64 {
        self.base.now()
    }

    /// The next number of the transaction's own random stream (SplitMix64); a rerun draws the same numbers.
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.random)
    }

    fn is_dirty(&self, key: &RawKey) -> bool {
        self.effects.writes.iter().any(|(k, _)| k == key)
    }

    fn note(&mut self, reply: Result<Reply>) -> Result<Reply> {
        self.suspended |= matches!(reply, Err(Error::Suspended));
        reply
    }
}

/// SplitMix64's mix. Engines give transactions seeds that are a constant apart, which may be the generator's own
/// increment: mixed, their streams begin at unrelated places.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A log that keeps nothing is refused: engines could not agree on what it means.
pub(crate) fn check_log_bound(entries_max: usize) -> Result<()> {
    match entries_max {
        0 => Err(Error::invalid("log bound", "0 entries, expected at least 1")),
        _ => Ok(()),
    }
}

/// Lays `writes` over a base: what a transaction sees that runs after others in the same commit.
pub fn read_through(base: &mut dyn Base, key: &RawKey, writes: &[&Write], read: &Read) -> Result<Reply> {
    if writes.is_empty() { base.read(key, read) } else { overlay::read(base, key, writes, read) }
}
