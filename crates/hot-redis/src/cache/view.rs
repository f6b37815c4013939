//! What a body reads while a batch is made: cached replies below the writes of the transactions before it.

use super::{ReadCache, WholeSet};
use crate::clock::{BodyTime, Clock};
use crate::limits::{COMPARED_PART_MAX, JOINED_SET_MAX, PARTS_BEFORE_SET};
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::tx::{ReadSource, read_through};
use emberkeep_hot::{Error, Result};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use indexmap::{Equivalent, IndexMap, IndexSet};
use std::time::Instant;

/// Reads of the state below a batch and their replies, in the order in which they were made.
pub(crate) type Reads = IndexMap<(RawKey, Read), Reply, RandomState>;
/// Reads that transactions miss, each once.
pub(crate) type Fetches = IndexSet<(RawKey, Read), RandomState>;
pub(crate) type Keys = IndexSet<RawKey, RandomState>;
pub(crate) type KeyMap<V> = HashMap<RawKey, V, RandomState>;
/// Whole sorted sets, as ranges with their replies.
pub(crate) type WholeSets = KeyMap<(Read, Reply)>;

/// Finds a read in [`Reads`] without a copy of its key.
#[derive(Hash)]
pub(crate) struct ReadRef<'a>(pub(crate) &'a RawKey, pub(crate) &'a Read);

impl Equivalent<(RawKey, Read)> for ReadRef<'_> {
    fn equivalent(&self, (key, read): &(RawKey, Read)) -> bool {
        self.0 == key && self.1 == read
    }
}

/// What one run of a body has read.
#[derive(Default)]
pub(crate) struct Trace {
    /// Reads of the state below the batch, which the commit will validate.
    pub(crate) reads: Reads,
    /// Reads that the cache could not answer: one, or several that were made together.
    pub(crate) missing: Vec<(RawKey, Read)>,
    /// Keys of which it read another transaction's writes: then both commit or neither does.
    pub(crate) layered: Keys,
    /// Whether it asked for the time: then the commit compares clocks.
    pub(crate) used_now: bool,
}

/// The state that one run of a body reads.
pub(crate) struct View<'a> {
    cache: &'a ReadCache,
    clock: &'a Clock,
    writes: &'a KeyMap<Vec<Write>>,
    /// Sorted sets as `writes` leave them.
    sets: &'a mut WholeSets,
    started: Instant,
    time: &'a mut Option<BodyTime>,
    trace: Trace,
}

impl<'a> View<'a> {
    /// `writes` are those of the transactions before this one in the batch and `sets` what they leave, `started` is when
    /// the batch was, and `time` is what its bodies have been shown.
    pub(crate) fn new(
        cache: &'a ReadCache,
        clock: &'a Clock,
        (writes, sets): (&'a KeyMap<Vec<Write>>, &'a mut WholeSets),
        started: Instant,
        time: &'a mut Option<BodyTime>,
    ) -> View<'a> {
        View { cache, clock, writes, sets, started, time, trace: Trace::default() }
    }

    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }

    /// A read of the state below every write of this batch.
    fn read_below(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        if let Some(reply) = self.trace.reads.get(&ReadRef(key, read)) {
            return Ok(reply.clone());
        }
        match self.cache.get_with_basis(key, read, self.started) {
            Some((reply, set)) => {
                match set {
                    Some(set) => self.add_set(key, set),
                    None => drop(self.trace.reads.insert((key.clone(), read.clone()), reply.clone())),
                }
                self.join_parts(key);
                Ok(reply)
            }
            None => {
                self.trace.missing.push((key.clone(), read.clone()));
                Err(Error::Suspended)
            }
        }
    }

    /// A read of a sorted set after many writes of earlier transactions. The set after them is carried along: to
    /// put each reply together from all of the writes would take longer with each transaction.
    fn read_set_after(&mut self, key: &RawKey, writes: &[Write], read: &Read) -> Option<Reply> {
        if read.kind() != Some(Kind::SortedSet) || members_written(writes) <= COMPARED_PART_MAX {
            return None;
        }
        let before = self.cache.whole_set(key, self.started)?;
        if !self.sets.contains_key(key) {
            let mut after = before.clone();
            WholeSet::apply(&mut after, writes).then(|| self.sets.insert(key.clone(), after));
        }
        let (range, members) = self.sets.get(key)?;
        let reply = WholeSet::of(range, members)?.reply(read)?;
        self.add_set(key, before);
        Some(reply)
    }

    /// After several reads of one small sorted set, the commit compares the set in place of them: one command instead
    /// of one for each.
    fn join_parts(&mut self, key: &RawKey) {
        let Some(cached) = self.cache.whole_set(key, self.started) else { return };
        let Some(set) = WholeSet::of(&cached.0, &cached.1).filter(|set| set.len() <= JOINED_SET_MAX) else {
            return;
        };
        // Only what the set determines: then nothing that was read goes without a comparison.
        let is_part = |of: &RawKey, read: &Read, reply: &Reply| {
            of == key && *read != cached.0 && set.reply(read).as_ref() == Some(reply)
        };
        let parts = self.trace.reads.iter().filter(|((of, read), reply)| is_part(of, read, reply)).count();
        if parts >= PARTS_BEFORE_SET || self.trace.reads.contains_key(&ReadRef(key, &cached.0)) {
            self.trace.reads.retain(|(of, read), reply| !is_part(of, read, reply));
            self.add_set(key, cached);
        }
    }

    /// The commit compares this set.
    fn add_set(&mut self, key: &RawKey, (range, members): &(Read, Reply)) {
        if !self.trace.reads.contains_key(&ReadRef(key, range)) {
            self.trace.reads.insert((key.clone(), range.clone()), members.clone());
        }
    }

    /// A read of this key depends on writes of earlier transactions.
    fn add_layered(&mut self, key: &RawKey) {
        if !self.trace.layered.contains(key) {
            self.trace.layered.insert(key.clone());
        }
    }
}

impl ReadSource for View<'_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        let writes = self.writes;
        match writes.get(key) {
            None => self.read_below(key, read),
            Some(writes) => {
                self.add_layered(key);
                if let Some(reply) = self.read_set_after(key, writes, read) {
                    return Ok(reply);
                }
                let writes: Vec<&Write> = writes.iter().collect();
                read_through(&mut CommittedView(self), key, &writes, read)
            }
        }
    }

    fn text<'s>(&'s mut self, key: &RawKey, scratch: &'s mut Option<Bytes>) -> Result<Option<&'s [u8]>> {
        let writes = self.writes;
        // The commonest read: the string that the transaction before has just set.
        let last = |writes: &'s Vec<Write>| writes.iter().rev().find(|write| !write.is_of_deadline());
        if let Some(Write::Set(value, _)) = writes.get(key).and_then(last) {
            self.add_layered(key);
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
        self.trace.used_now = true;
        self.time.get_or_insert_with(|| self.clock.body_time()).now_ms
    }

    fn is_remote(&self) -> bool {
        true
    }
}

/// Members of a sorted set that these writes name.
fn members_written(writes: &[Write]) -> usize {
    let members = |write: &Write| match write {
        Write::ZAdd(pairs) => pairs.len(),
        Write::ZRem(gone) => gone.len(),
        Write::ZIncrBy(..) => 1,
        _ => 0,
    };
    writes.iter().map(members).sum()
}

/// The view without the writes of earlier transactions.
struct CommittedView<'v, 'a>(&'v mut View<'a>);

impl ReadSource for CommittedView<'_, '_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        self.0.read_below(key, read)
    }

    fn now(&mut self) -> i64 {
        self.0.now()
    }
}
