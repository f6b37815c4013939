//! How a transaction comes into a commit: it runs over what is known, and waits for what it misses.

use crate::batch::Batch;
use crate::clock::Clock;
use crate::job::{Job, Time};
use crate::known::Known;
use crate::limits::*;
use crate::view::{Reads, View};
use emberkeep_hot::command::*;
use emberkeep_hot::limits::BODY_WARN;
use emberkeep_hot::tx::{RawTx, run_once};
use std::time::{Duration, Instant};

impl Batch {
    /// Runs a transaction on top of what is already in the batch, and sorts it in: it is in the batch, waits, was deferred
    /// or is already answered. The transaction comes back if the batch is full; then it belongs into the next one.
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
        self.solo = job.is_apart();
        self.keep_time(&job, clock);
        if job.attempts == 0 && self.prefetch(&job, known) {
            job.attempts += 1;
            self.waiting.push(job);
            return None;
        }
        let back = self.run(job, known, clock);
        if !self.is_begun() {
            // The transaction went elsewhere: nobody in this batch has seen a time, least of all one that it had kept.
            (self.now_ms, self.estimate_ms) = (None, None);
        }
        back
    }

    fn run(&mut self, mut job: Job, known: &Known, clock: &Clock) -> Option<Job> {
        job.attempts += 1;
        job.verdict = None;
        let mut effects = Effects::default();
        let mut view = View::new(self, known, clock);
        let commit = run_once(&mut *job.transaction, RawTx::new(&mut view, &mut effects, job.seed));
        let commit = commit.unwrap_or_else(|error| {
            job.verdict = Some(error);
            false
        });
        let (reads, missing, layered, timeless) = (view.reads, view.missing, view.layered, !view.used_now);
        self.watch();
        if !missing.is_empty() {
            job.missed(if timeless { None } else { self.time() });
            self.fetch(reads, missing);
            self.waiting.push(job);
            return None;
        }
        job.misses = 0;
        job.time = None;
        if !commit {
            effects.clear();
        }
        let unwritten = effects.is_empty() && layered.is_empty();
        let in_time = timeless
            || self.estimate_ms.is_some_and(|ms| job.is_fresh_at(ms, clock.allowance(Duration::ZERO)));
        if unwritten && in_time && job.has_fresh(&reads) {
            // Its reads, and the time if it used that, are of one moment.
            job.finish();
            return None;
        }
        self.sort_in(job, reads, layered, effects, known)
    }

    /// Gives a transaction the time of its last run again, while that is not too long ago. Transactions that follow one another still
    /// see time pass: this one began before.
    fn keep_time(&mut self, job: &Job, clock: &Clock) {
        let age_max = (KEPT_TIME_MAX + clock.round_trip()).as_millis() as i64;
        let fresh = |time: &Time| clock.estimate_ms() - time.estimate_ms <= age_max;
        if let Some(time) = job.time.filter(fresh) {
            self.now_ms = Some(time.now_ms);
            self.estimate_ms = Some(time.estimate_ms);
        }
    }

    /// What bodies were told of the time, if one asked.
    fn time(&self) -> Option<Time> {
        Some(Time { now_ms: self.now_ms?, estimate_ms: self.estimate_ms? })
    }

    /// Complains of a body that took long.
    fn watch(&mut self) {
        let now = Instant::now();
        let took = now - self.ran_until;
        self.ran_until = now;
        if took > BODY_WARN {
            tracing::warn!(
                ?took,
                "a transaction's body is slow and holds up the transactions of its partition"
            );
        }
    }

    fn is_full_for(&self, job: &Job) -> bool {
        self.transactions >= BATCH_TRANSACTIONS_MAX
            || self.fetches.len() >= BATCH_FETCHES_MAX
            || (self.is_begun() && (self.solo || job.is_apart()))
    }

    /// Whether a transaction is in it or waits for its call.
    fn is_begun(&self) -> bool {
        self.transactions + self.waiting.len() > 0
    }

    /// Fetches prefetched reads that are not known. `false` = all are.
    fn prefetch(&mut self, job: &Job, known: &Known) -> bool {
        if job.prefetched.iter().all(|(key, read)| known.knows(key, &least_of(read), self.started)) {
            return false;
        }
        for (key, read) in &job.prefetched {
            self.fetches.add((key.clone(), read.clone()));
        }
        true
    }

    /// All reads of the transaction so far, and those it misses: together they come from one moment.
    fn fetch(&mut self, reads: Reads, missing: Vec<(RawKey, Read)>) {
        self.fetches.extend(reads.into_vec().into_iter().map(|(key, read, _)| (key, read)));
        for (key, read) in missing {
            let takes = |write: &Write| matches!(write, Write::LPop(_) | Write::LTrim(1.., _));
            let taken_from = self.writes.get(&key).is_some_and(|writes| writes.iter().any(takes));
            self.fetches.add((key, if taken_from { from_head(read) } else { read }));
        }
    }
}

/// What must be known of an prefetched read. The head of a list is prefetched for the transactions behind this one, too: as long as
/// its first element is known, asking is not worth a round trip.
fn least_of(read: &Read) -> Read {
    match read {
        Read::LRange(0, 1..) => Read::LRange(0, 0),
        read => read.clone(),
    }
}

/// What is missed of a list of which transactions of this batch take: fetches are made after their writes, and what stood behind
/// the elements that they take stands at the head then.
fn from_head(read: Read) -> Read {
    match read {
        Read::LRange(0.., last @ 0..) if last < KNOWN_HEAD_MAX as i64 => Read::LRange(0, last),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ServerClock;
    use crate::job::Claim;
    use bytes::Bytes;
    use emberkeep_hot::tx::Transaction;
    use std::any::Any;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    /// Writes the time it is shown to a key.
    struct Stamp(&'static str);

    impl Transaction for Stamp {
        fn run(&mut self, mut tx: RawTx<'_>) -> bool {
            let now = Bytes::from(tx.now().to_string());
            tx.write(RawKey::from_static(self.0.as_bytes()), Write::Set(now, Expiry::Never)).is_ok()
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self
        }
    }

    fn job(key: &'static str, time: Option<Time>) -> Job {
        let started = Instant::now();
        Job {
            transaction: Box::new(Stamp(key)),
            seed: 0,
            prefetched: vec![],
            started,
            deadline: started + Duration::from_secs(2),
            attempts: 0,
            stale: 0,
            alone: false,
            solo: false,
            misses: 0,
            time,
            not_before: None,
            held_up_by: vec![],
            fresh: None,
            leases: Default::default(),
            waits: 0,
            verdict: None,
            claim: Arc::new(Claim::default()),
            reply: oneshot::channel().0,
        }
    }

    #[test]
    fn a_time_that_a_transaction_has_kept_is_shown_to_no_other() {
        let (mut known, now) = (Known::default(), Instant::now());
        let clock = Clock::new(Arc::new(ServerClock::new(0, Arc::default())));
        clock.observe(1_000_000, now);
        let kept = Time { now_ms: 999_970, estimate_ms: 999_970 };
        let mut batch = Batch::new(now, Default::default(), 1);
        assert!(batch.admit(job("a", Some(kept)), &known, &clock).is_none());
        assert_eq!((batch.now_ms, batch.transactions), (Some(999_970), 1), "it sees its own time");

        known.wait(&RawKey::from_static(b"a"), now + Duration::from_secs(1));
        let mut batch = Batch::new(now, Default::default(), 1);
        assert!(batch.admit(job("a", Some(kept)), &known, &clock).is_none());
        assert_eq!((batch.deferred.len(), batch.transactions), (1, 0), "another has the turn");
        assert!(batch.admit(job("b", None), &known, &clock).is_none());
        assert_eq!(batch.transactions, 1);
        assert!(batch.now_ms >= Some(1_000_000), "{:?}", batch.now_ms);
        assert!(batch.estimate_ms >= Some(1_000_000), "{:?}", batch.estimate_ms);
    }
}
