//! A commit under construction: steps run over what is known and over each other, and are sorted into groups.
//!
//! Steps that share a key run one after the other on the same state and become one group: its reads are validated
//! once, its writes are merged, and all of them commit or none does. Groups share no key, so one stale group does
//! not hold up the others of the same call.

use crate::clock::Clock;
use crate::job::Job;
use crate::known::Known;
use crate::limits::*;
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::{BODY_WARN, INCREMENT_MAX};
use emberkeep_hot::tx::{Base, RawTx, read_through};
use emberkeep_hot::{Error, Result};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::time::Instant;

type Map<V> = HashMap<RawKey, V, RandomState>;

/// One commit.
pub(crate) struct Batch {
    pub(crate) groups: Vec<Group>,
    /// Reads that steps still miss; made after the writes of the same call.
    pub(crate) fetches: Vec<(RawKey, Read)>,
    /// The steps that miss them.
    pub(crate) waiting: Vec<Job>,
    /// Steps that must go into a later commit.
    pub(crate) deferred: Vec<Job>,
    /// The estimate of the server's time that bodies used.
    pub(crate) estimate_ms: Option<i64>,
    by_key: Map<usize>,
    writes: Map<Vec<Write>>,
    required: Requirements,
    now_ms: Option<i64>,
    started: Instant,
    steps: usize,
    bytes: usize,
    /// Its one step shares it with nobody.
    solo: bool,
}

/// Steps that share keys.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) jobs: Vec<Job>,
    pub(crate) keys: Vec<RawKey>,
    pub(crate) reads: Vec<(RawKey, Read, Reply)>,
    pub(crate) effects: Effects,
    /// What its steps ask of the state below, also by writes that later ones cover.
    required: Vec<Requirement>,
    /// A step that must be alone is in here.
    sealed: bool,
}

impl Group {
    /// The keys it writes, each once.
    pub(crate) fn written(&self) -> impl Iterator<Item = &RawKey> {
        let writes = &self.effects.writes;
        writes
            .iter()
            .enumerate()
            .filter(|(i, (key, _))| *i == 0 || writes[i - 1].0 != *key)
            .map(|(_, (key, _))| key)
    }

    /// Whether it does nothing but give memory back.
    pub(crate) fn frees(&self) -> bool {
        use Write::*;
        let frees = |write: &Write| {
            matches!(
                write,
                Del | HDel(_) | SRem(_) | ZRem(_) | LPop(_) | RPop(_) | LTrim(..) | ExpireAt(_) | Persist
            )
        };
        self.effects.log.is_empty() && self.effects.writes.iter().all(|(_, write)| frees(write))
    }

    /// What must be checked before the first write: the types that no read of the group has proved already.
    pub(crate) fn requirements(&self, log_keys: &(RawKey, RawKey)) -> Vec<Requirement> {
        let unproved = |r: &&Requirement| r.countable.is_some() || !self.proves(&r.key, r.kind);
        let mut required: Vec<Requirement> = self.required.iter().filter(unproved).cloned().collect();
        if !self.effects.log.is_empty() {
            let entries = self.effects.log.len() as i64;
            required.push(Requirement { key: log_keys.0.clone(), kind: Kind::List, countable: None });
            required.push(Requirement::counter(log_keys.1.clone(), entries));
        }
        required
    }

    fn proves(&self, key: &RawKey, kind: Kind) -> bool {
        self.reads.iter().any(|(k, read, reply)| {
            k == key && read.kind() == Some(kind) && !matches!(reply, Reply::WrongType(_))
        })
    }
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch {
            groups: vec![],
            fetches: vec![],
            waiting: vec![],
            deferred: vec![],
            estimate_ms: None,
            by_key: Map::default(),
            writes: Map::default(),
            required: Requirements::default(),
            now_ms: None,
            started: Instant::now(),
            steps: 0,
            bytes: 0,
            solo: false,
        }
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.fetches.is_empty()
    }

    /// Runs a step on top of what is already in the batch, and sorts it in: it is in the batch, waits, was deferred
    /// or is already answered. The step comes back if the batch is full; then it belongs into the next one.
    pub(crate) fn admit(&mut self, mut job: Job, known: &Known, clock: &Clock) -> Option<Job> {
        if self.is_full_for(&job) {
            return Some(job);
        }
        job.not_before = None;
        if job.held_up_by.iter().any(|key| known.is_busy(key, self.started)) {
            self.deferred.push(job);
            return None;
        }
        job.held_up_by.clear();
        self.solo = job.solo;
        if job.attempts == 0 && self.announce(&job, known) {
            job.attempts += 1;
            self.waiting.push(job);
            return None;
        }
        job.attempts += 1;
        job.verdict = None;
        let mut effects = Effects::default();
        let mut view = View::new(self, known, clock);
        let commit = run(&mut job, &mut view, &mut effects);
        let (reads, missing, layered, timeless) = (view.reads, view.missing, view.layered, !view.used_now);
        if !missing.is_empty() {
            self.fetch(reads, missing);
            self.waiting.push(job);
            return None;
        }
        if !commit {
            effects.clear();
        }
        let unwritten = effects.is_empty() && layered.is_empty();
        if unwritten && timeless && reads.iter().all(|read| job.fresh.contains(read)) {
            job.finish();
            return None;
        }
        self.sort_in(job, reads, layered, effects, known)
    }

    fn is_full_for(&self, job: &Job) -> bool {
        let begun = self.steps + self.waiting.len() > 0;
        self.steps >= BATCH_STEPS_MAX
            || self.fetches.len() >= BATCH_FETCHES_MAX
            || (begun && (self.solo || job.solo))
    }

    /// Fetches announced reads that are not known. `false` = all are.
    fn announce(&mut self, job: &Job, known: &Known) -> bool {
        let unknown = |(key, read): &&(RawKey, Read)| known.guess(key, read, self.started).is_none();
        if !job.announced.iter().any(|announced| unknown(&announced)) {
            return false;
        }
        for (key, read) in &job.announced {
            self.want(key, read);
        }
        true
    }

    /// All reads of the step so far, and those it misses: together they come from one moment.
    fn fetch(&mut self, reads: Vec<(RawKey, Read, Reply)>, missing: Vec<(RawKey, Read)>) {
        for (key, read, _) in &reads {
            self.want(key, read);
        }
        missing.iter().for_each(|(key, read)| self.want(key, read));
    }

    fn want(&mut self, key: &RawKey, read: &Read) {
        if !self.fetches.iter().any(|(k, r)| k == key && r == read) {
            self.fetches.push((key.clone(), read.clone()));
        }
    }

    fn sort_in(
        &mut self,
        mut job: Job,
        reads: Vec<(RawKey, Read, Reply)>,
        layered: Vec<RawKey>,
        mut effects: Effects,
        known: &Known,
    ) -> Option<Job> {
        let keys = keys_of(&reads, layered, &effects);
        let touched = self.groups_of(&keys);
        job.not_before = keys.iter().filter_map(|key| known.waits(key, self.started)).max();
        if job.not_before.is_some() || self.must_wait(&job, &keys, &touched, known) {
            job.held_up_by = keys;
            self.deferred.push(job);
            return None;
        }
        let bytes = reads.iter().map(|(_, _, reply)| reply.bytes()).sum::<usize>() + bytes_of(&effects);
        let new_keys = keys.iter().filter(|key| !self.by_key.contains_key(*key)).count();
        let full = self.bytes + bytes > BATCH_BYTES_MAX || self.by_key.len() + new_keys > BATCH_KEYS_MAX;
        if full && self.steps > 0 {
            return Some(job);
        }
        if let Err(error) = Requirements::default().add(&effects.writes) {
            job.verdict = Some(error);
            effects.clear();
        } else if self.required.add(&effects.writes).is_err() {
            // It only contradicts the steps before it, and what those leave behind is not known for certain.
            self.deferred.push(job);
            return None;
        }
        self.steps += 1;
        self.bytes += bytes;
        self.join(job, keys, touched, reads, effects);
        None
    }

    fn groups_of(&self, keys: &[RawKey]) -> Vec<usize> {
        let mut touched: Vec<usize> = keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Whether the step cannot go along: it or its neighbours must be alone, or guessing would be in vain.
    fn must_wait(&self, job: &Job, keys: &[RawKey], touched: &[usize], known: &Known) -> bool {
        let shares = !touched.is_empty() && (job.alone || touched.iter().any(|g| self.groups[*g].sealed));
        shares || keys.iter().any(|key| known.is_busy(key, self.started))
    }

    fn join(
        &mut self,
        job: Job,
        keys: Vec<RawKey>,
        touched: Vec<usize>,
        reads: Vec<(RawKey, Read, Reply)>,
        effects: Effects,
    ) {
        let home = match touched.first() {
            Some(home) => *home,
            None => {
                self.groups.push(Group::default());
                self.groups.len() - 1
            }
        };
        for other in touched.iter().skip(1) {
            let absorbed = std::mem::take(&mut self.groups[*other]);
            self.groups[home].absorb(absorbed);
        }
        for (key, write) in effects.writes {
            push_merged(self.writes.entry_ref(&key).or_default(), write);
        }
        let group = &mut self.groups[home];
        for key in keys {
            if !group.keys.contains(&key) {
                group.keys.push(key);
            }
        }
        for read in reads {
            if !group.reads.contains(&read) {
                group.reads.push(read);
            }
        }
        group.sealed |= job.alone;
        group.effects.log.extend(effects.log);
        group.effects.messages.extend(effects.messages);
        group.jobs.push(job);
        for key in &group.keys {
            self.by_key.insert(key.clone(), home);
        }
    }

    /// Closes the batch: every group gets its merged writes.
    pub(crate) fn close(&mut self) {
        self.groups.retain(|group| !group.jobs.is_empty());
        for group in &mut self.groups {
            group.required = group.keys.iter().filter_map(|key| self.required.of(key)).collect();
            for key in &group.keys {
                if let Some(writes) = self.writes.remove(key) {
                    group.effects.writes.extend(writes.into_iter().map(|write| (key.clone(), write)));
                }
            }
        }
    }
}

impl Group {
    fn absorb(&mut self, other: Group) {
        self.jobs.extend(other.jobs);
        self.keys.extend(other.keys);
        self.reads.extend(other.reads);
        self.effects.log.extend(other.effects.log);
        self.effects.messages.extend(other.effects.messages);
        self.sealed |= other.sealed;
    }
}

fn bytes_of(effects: &Effects) -> usize {
    let writes = effects.writes.iter().map(|(_, write)| write.bytes()).sum::<usize>();
    let log = effects.log.iter().map(|append| append.entry.len()).sum::<usize>();
    writes
        + log
        + effects.messages.iter().map(|(channel, payload)| channel.len() + payload.len()).sum::<usize>()
}

fn keys_of(reads: &[(RawKey, Read, Reply)], layered: Vec<RawKey>, effects: &Effects) -> Vec<RawKey> {
    let mut keys = layered;
    for key in reads.iter().map(|(key, _, _)| key).chain(effects.writes.iter().map(|(key, _)| key)) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Runs the body once.
fn run(job: &mut Job, view: &mut View<'_>, effects: &mut Effects) -> bool {
    let started = Instant::now();
    let mut tx = RawTx::new(view, effects, job.seed);
    let commit = job.step.run(&mut tx);
    let took = started.elapsed();
    if took > BODY_WARN {
        tracing::warn!(?took, "a step's body is slow and holds up the steps of its partition");
    }
    commit
}

/// Appends a write of one key, dropping what it makes void.
fn push_merged(writes: &mut Vec<Write>, write: Write) {
    match (&write, writes.last_mut()) {
        (Write::Del | Write::Set(_, Expiry::Never | Expiry::At(_)), _) => {
            writes.clear();
            writes.push(write);
        }
        // A SET that keeps the deadline inherits that of the SET before it.
        (Write::Set(value, Expiry::Keep), Some(Write::Set(before, _))) => *before = value.clone(),
        (Write::IncrBy(by), Some(Write::IncrBy(sum))) if sum.saturating_add(*by).abs() <= INCREMENT_MAX => {
            *sum += by
        }
        _ => writes.push(write),
    }
}

/// What a body sees: guesses below the writes of the steps before it in the same commit.
struct View<'a> {
    known: &'a Known,
    clock: &'a Clock,
    writes: &'a Map<Vec<Write>>,
    started: Instant,
    now_ms: &'a mut Option<i64>,
    estimate_ms: &'a mut Option<i64>,
    /// Reads of the state below, as the commit will validate them.
    reads: Vec<(RawKey, Read, Reply)>,
    /// Reads that are not known: one, or several of those that are made together.
    missing: Vec<(RawKey, Read)>,
    /// Keys of which a read saw another step's writes: the step shares that one's fate.
    layered: Vec<RawKey>,
    /// Whether the body asked for the time: then the commit compares clocks.
    used_now: bool,
    scratch: Option<Bytes>,
}

impl<'a> View<'a> {
    fn new(batch: &'a mut Batch, known: &'a Known, clock: &'a Clock) -> View<'a> {
        View {
            known,
            clock,
            writes: &batch.writes,
            started: batch.started,
            now_ms: &mut batch.now_ms,
            estimate_ms: &mut batch.estimate_ms,
            reads: vec![],
            missing: vec![],
            layered: vec![],
            used_now: false,
            scratch: None,
        }
    }

    /// A read of the state below every write of this commit.
    fn below(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        if let Some((_, _, reply)) = self.reads.iter().find(|(k, r, _)| k == key && r == read) {
            return Ok(reply.clone());
        }
        match self.known.guess(key, read, self.started) {
            Some(reply) => {
                self.reads.push((key.clone(), read.clone(), reply.clone()));
                Ok(reply.clone())
            }
            None => {
                self.missing.push((key.clone(), read.clone()));
                Err(Error::Suspended)
            }
        }
    }
}

impl Base for View<'_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        let writes = self.writes;
        match writes.get(key) {
            None => self.below(key, read),
            Some(writes) => {
                if !self.layered.contains(key) {
                    self.layered.push(key.clone());
                }
                let writes: Vec<&Write> = writes.iter().collect();
                read_through(&mut Below(self), key, &writes, read)
            }
        }
    }

    fn text(&mut self, key: &RawKey) -> Result<Option<&[u8]>> {
        let reply = self.read(key, &Read::Get)?;
        self.scratch = match reply.checked(key, &Read::Get)? {
            Reply::Blob(blob) => Some(blob),
            _ => None,
        };
        Ok(self.scratch.as_deref())
    }

    fn now(&mut self) -> i64 {
        self.used_now = true;
        if self.estimate_ms.is_none() {
            *self.estimate_ms = Some(self.clock.estimate_ms());
        }
        *self.now_ms.get_or_insert_with(|| self.clock.now_ms())
    }
}

/// The view without the other steps' writes.
struct Below<'v, 'a>(&'v mut View<'a>);

impl Base for Below<'_, '_> {
    fn read(&mut self, key: &RawKey, read: &Read) -> Result<Reply> {
        self.0.below(key, read)
    }

    fn text(&mut self, _key: &RawKey) -> Result<Option<&[u8]>> {
        Err(Error::Suspended)
    }

    fn now(&mut self) -> i64 {
        self.0.now()
    }
}
