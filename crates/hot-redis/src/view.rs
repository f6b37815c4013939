//! What a body sees while a commit is made: guesses below the writes of the transactions before it.

use crate::batch::{Batch, Keys, Map};
use crate::clock::Clock;
use crate::distinct::Distinct;
use crate::known::Known;
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::tx::{ReadSource, read_through};
use emberkeep_hot::{Error, Result};
use std::time::Instant;

/// Reads of the state below, and what they answered.
pub(crate) type Reads = Distinct<(RawKey, Read, Reply)>;

/// One run's view, and what the run looked at.
pub(crate) struct View<'a> {
    known: &'a Known,
    clock: &'a Clock,
    writes: &'a Map<Vec<Write>>,
    started: Instant,
    now_ms: &'a mut Option<i64>,
    estimate_ms: &'a mut Option<i64>,
    /// Reads of the state below, as the commit will validate them.
    pub(crate) reads: Reads,
    /// Reads that are not known: one, or several of those that are made together.
    pub(crate) missing: Vec<(RawKey, Read)>,
    /// Keys of which a read saw another transaction's writes: the transaction shares that one's fate.
    pub(crate) layered: Keys,
    /// Whether the body asked for the time: then the commit compares clocks.
    pub(crate) used_now: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(batch: &'a mut Batch, known: &'a Known, clock: &'a Clock) -> View<'a> {
        View {
            known,
            clock,
            writes: &batch.writes,
            started: batch.started,
            now_ms: &mut batch.now_ms,
            estimate_ms: &mut batch.estimate_ms,
            reads: Reads::default(),
            missing: vec![],
            layered: Keys::default(),
            used_now: false,
        }
    }

    /// A read of the state below every write of this commit.
    fn below(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        if let Some((_, _, reply)) = self.reads.find(&(key, read)) {
            return Ok(reply.clone());
        }
        match self.known.guess(key, read, self.started) {
            Some(reply) => {
                self.reads.push((key.clone(), read.clone(), reply.clone()));
                Ok(reply)
            }
            None => {
                self.missing.push((key.clone(), read.clone()));
                Err(Error::Suspended)
            }
        }
    }

    /// A read of this key sees what transactions before have written.
    fn layer(&mut self, key: &RawKey) {
        if self.layered.find(&key).is_none() {
            self.layered.push(key.clone());
        }
    }
}

impl ReadSource for View<'_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        let writes = self.writes;
        match writes.get(key) {
            None => self.below(key, read),
            Some(writes) => {
                self.layer(key);
                let writes: Vec<&Write> = writes.iter().collect();
                read_through(&mut Below(self), key, &writes, read)
            }
        }
    }

    fn text<'s>(&'s mut self, key: &RawKey, scratch: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        let writes = self.writes;
        // The commonest read of all: the string that the transaction before has just set.
        if let Some(Write::Set(value, _)) = writes.get(key).and_then(|writes| writes.last()) {
            self.layer(key);
            return Ok(Some(value));
        }
        let reply = self.read(key, &Read::Get)?;
        *scratch = match reply.checked(key, &Read::Get)? {
            Reply::Blob(blob) => Some(blob),
            _ => None,
        };
        Ok(scratch.as_deref())
    }

    fn now(&mut self) -> i64 {
        self.used_now = true;
        if self.estimate_ms.is_none() {
            *self.estimate_ms = Some(self.clock.estimate_ms());
        }
        *self.now_ms.get_or_insert_with(|| self.clock.now_ms())
    }

    fn is_remote(&self) -> bool {
        true
    }
}

/// The view without the other transactions' writes.
struct Below<'v, 'a>(&'v mut View<'a>);

impl ReadSource for Below<'_, '_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        self.0.below(key, read)
    }

    fn now(&mut self) -> i64 {
        self.0.now()
    }
}
