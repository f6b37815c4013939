//! One commit in flight: sends the call, and after a lost reply asks the receipt what happened.

use super::cancel_guard::CancelGuard;
use super::lease::lease_key;
use super::receipt::CommitSequence;
use crate::backoff::Backoff;
use crate::clock::ServerClock;
use crate::cluster::{ReplicaWait, Server, WaitOutcome};
use crate::failure::Failure;
use crate::limits::*;
use crate::script::{Answer, Header, Request, Status};
use crate::shared::{Shared, add};
use emberkeep_hot::Error;
use emberkeep_hot::command::RawKey;
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A commit that is sent.
pub(super) struct InFlight {
    pub(super) request: Request,
    pub(super) groups: usize,
    /// `None` when nothing is written: then a lost call is simply made again.
    pub(super) sequence: Option<CommitSequence>,
    /// It only gives memory back, and must work on a full server.
    pub(super) frees: bool,
    pub(super) check_acl: bool,
    /// The estimate of the server's time that the commit compares.
    pub(super) estimate_ms: Option<i64>,
    /// Largest difference of the estimate from the server's time.
    pub(super) allowance: Duration,
    /// The time that bodies were shown.
    pub(super) shown_ms: Option<i64>,
    /// The latest deadline of its transactions.
    pub(super) deadline: Instant,
    /// Those of its transactions with effects.
    pub(super) guards: Vec<Arc<CancelGuard>>,
    /// Of the server that it is sent to, by the current map of slots.
    pub(super) clock: Arc<ServerClock>,
    pub(super) begun: Instant,
}

/// What became of a commit.
pub(super) enum Outcome {
    /// The script answered.
    Answered {
        answer: Answer,
        /// Why too few replicas have confirmed what was committed.
        unconfirmed: Option<String>,
        /// That of the server that answered.
        clock: Arc<ServerClock>,
    },
    /// The reply was lost, but the receipt exists: executed, with these groups committed.
    Executed { committed: Vec<bool>, unconfirmed: Option<String> },
    /// Certainly not executed; may be tried again. `lost` = its connection broke.
    NotExecuted { reason: String, lost: bool },
    /// A caller cancelled before it was sent; the other transactions go again.
    Cancelled,
    /// Certainly not executed, and trying again is useless.
    Refused(Error),
    /// Executed or not: no server can tell.
    Unknown { reason: String },
}

impl InFlight {
    /// Sends the call and finds out what became of it, at the latest when its last caller has stopped
    /// waiting.
    pub(super) async fn execute(&self, shared: &Shared, partition: &[u8]) -> Outcome {
        let end = self.deadline + DEADLINE_GRACE;
        match tokio::time::timeout_at(end.into(), self.run(shared, partition)).await {
            Ok(outcome) => outcome,
            Err(_) if self.guards.iter().any(|guard| guard.is_sent()) => {
                Outcome::Unknown { reason: "the deadline passed with the commit in flight".into() }
            }
            // Not sent. Its callers learn the reason from their guards: this call may have begun just now.
            Err(_) => Outcome::Cancelled,
        }
    }

    async fn run(&self, shared: &Shared, partition: &[u8]) -> Outcome {
        let slot = shared.router.slot(partition);
        let sent = Instant::now();
        let (answer, server) = self.send(shared, slot, partition).await;
        match (answer, &self.sequence) {
            (Ok(value), _) => match Answer::parse(value, self.groups) {
                Some(answer) => {
                    let clock = shared.clock_of(&server);
                    clock.measured(sent.elapsed());
                    answer.time_us.iter().for_each(|time| clock.observe(*time, sent));
                    // The server accepted the time that its bodies were shown, also if they lost a conflict. A refused
                    // one may be far off, and no caller has a result with it.
                    if !matches!(answer.status, Status::ClocksDiffer) {
                        self.shown_ms.iter().for_each(|shown| clock.accepted(*shown));
                    }
                    let unconfirmed = match answer.is_committed() {
                        true => self.wait_for_replicas(shared, partition, &server, sent).await,
                        false => None,
                    };
                    Outcome::Answered { answer, unconfirmed, clock }
                }
                None => Outcome::Unknown { reason: "the script's answer was not understood".into() },
            },
            (Err(Failure::Refused(error)), _) => Outcome::Refused(error),
            // A lost reply: without a sequence the call wrote nothing, so it may run again. With one, only the
            // receipt can tell whether it was executed.
            (Err(Failure::Lost { reason }), None) => Outcome::NotExecuted { reason, lost: true },
            (Err(Failure::Lost { reason }), Some(sequence)) => {
                self.close_sequence(shared, partition, sequence, reason).await
            }
            (Err(Failure::Cancelled), _) => Outcome::Cancelled,
            (Err(failure), _) => Outcome::NotExecuted { reason: failure.reason(), lost: false },
        }
    }

    async fn send(
        &self,
        shared: &Shared,
        slot: u16,
        partition: &[u8],
    ) -> (Result<Value, Failure>, Arc<Server>) {
        let lease_key = |key: &RawKey| lease_key(&shared.layout, partition, key);
        let header = Header {
            lease_key: &lease_key,
            receipt: self.sequence.as_ref().map(CommitSequence::receipt),
            estimate_ms: self.estimate_ms,
            allowance: self.allowance,
            lease: self.clock.lease(),
            wants_time: self.clock.is_due(),
            check_acl: self.check_acl,
            declares_reads: shared.router.url().cluster,
            probe: &shared.probe,
            process: &shared.process,
            groups: self.groups,
        };
        let script = self.request.script(&shared.scripts, self.frees);
        // The last moment at which a dropped caller can still take its transaction back: once every guard has
        // agreed, the bytes go out and only the server knows the outcome.
        let gate = || self.guards.iter().all(|guard| guard.try_send());
        shared.eval(slot, script, &gate, |verb, script| self.request.command(verb, script, &header)).await
    }

    /// Closes the sequence: afterwards the commit has been executed, or never will be.
    async fn close_sequence(
        &self,
        shared: &Shared,
        partition: &[u8],
        sequence: &CommitSequence,
        mut reason: String,
    ) -> Outcome {
        let slot = shared.router.slot(partition);
        add(&shared.counters.receipts_asked, 1);
        // Before half of its time to live a receipt cannot have expired, whatever the clocks show.
        let mut retries = Backoff::RETRY.until(self.deadline.min(Instant::now() + RECEIPT_TTL / 2));
        loop {
            let asked = Instant::now();
            match sequence.close(shared, slot, &self.clock).await {
                (Ok(Value::Nil), _) => return Outcome::NotExecuted { reason, lost: true },
                (Ok(Value::BulkString(bits)), server) => {
                    self.shown_ms.iter().for_each(|shown| self.clock.accepted(*shown));
                    let unconfirmed = self.wait_for_replicas(shared, partition, &server, asked).await;
                    let committed = bits.iter().map(|bit| *bit == b'1').collect();
                    return Outcome::Executed { committed, unconfirmed };
                }
                (Ok(Value::Int(_)), _) => {
                    return Outcome::Unknown {
                        reason: "the server's clock jumped, its receipts ended".into(),
                    };
                }
                (Ok(other), _) => reason = format!("unexpected receipt: {other:?}"),
                (Err(failure), _) => reason = failure.reason(),
            }
            if !retries.pause().await {
                return Outcome::Unknown { reason };
            }
        }
    }

    /// Waits for the replicas that the URL asks for, after a commit that reached the server after `since`.
    /// `Some` = why too few have confirmed.
    async fn wait_for_replicas(
        &self,
        shared: &Shared,
        partition: &[u8],
        server: &Arc<Server>,
        since: Instant,
    ) -> Option<String> {
        let wanted = shared.router.url().wait;
        let sequence = self.sequence.as_ref().filter(|_| wanted > 0)?;
        let found = match self.run_id_of(shared, partition, sequence, (server, since)).await {
            Ok(run_id) => self.replicas(shared, partition, server, &run_id).await,
            Err(failure) => Err(failure),
        };
        let problem = match found {
            Ok(WaitOutcome::Replicas(found)) if found >= wanted => return None,
            Ok(WaitOutcome::Replicas(found)) => format!("only {found} of {wanted} replicas confirmed"),
            Ok(WaitOutcome::OtherServer) => {
                format!("0 of {wanted} replicas confirmed: the address leads to another server by now")
            }
            Err(failure) => format!("0 of {wanted} replicas confirmed: {}", failure.reason()),
        };
        Some(format!("committed on the primary, but {problem}"))
    }

    /// The server process that has the commit.
    async fn run_id_of(
        &self,
        shared: &Shared,
        partition: &[u8],
        sequence: &CommitSequence,
        (server, since): (&Arc<Server>, Instant),
    ) -> Result<String, Failure> {
        let mut run_id = server.run_id_since(since).await?;
        if run_id.is_none() {
            let asked = Instant::now();
            // The new connection may lead to a server that restarted without the commit. The receipt proves
            // that not.
            if !sequence.is_on_record(shared, shared.router.slot(partition), server).await {
                let reason = "the server went away before replicas were asked".into();
                return Err(Failure::Lost { reason });
            }
            run_id = server.run_id_since(asked).await?;
        }
        match run_id {
            Some(run_id) if !run_id.is_empty() => Ok(run_id),
            Some(_) => Err(Failure::NotYet { reason: "the user may not run INFO".into() }),
            None => Err(Failure::Lost { reason: "the connection broke".into() }),
        }
    }

    async fn replicas(
        &self,
        shared: &Shared,
        partition: &[u8],
        server: &Arc<Server>,
        run_id: &str,
    ) -> Result<WaitOutcome, Failure> {
        let name = format!("wait:{}", shared.process);
        let replicas = shared.router.url().wait;
        // The partition's own slot first: the commit has proved that our user may write there.
        let keys = |n: usize| match n.checked_sub(1) {
            None => Some(shared.engine_key(partition, name.as_bytes())),
            Some(other @ 0..WAIT_SLOTS_MAX) if shared.router.url().cluster => {
                let tag = shared.router.tag_on(server, other)?;
                Some(shared.engine_key(tag.as_bytes(), name.as_bytes()))
            }
            Some(_) => None,
        };
        server.wait_for_replicas(ReplicaWait { replicas, run_id, deadline: self.deadline, keys: &keys }).await
    }
}
