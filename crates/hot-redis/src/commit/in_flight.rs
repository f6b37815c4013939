//! One commit on its way: sends the call, and after a lost reply asks the sequence's receipt what happened.

use crate::clock::ServerClock;
use crate::cluster::replica_wait::{ReplicaCount, Wanted};
use crate::cluster::server::{ALWAYS, Server};
use crate::commit::queued::CancelGuard;
use crate::failure::Failure;
use crate::limits::*;
use crate::script::{Answer, Request, RequestHeader, Status};
use crate::shared::{Shared, add};
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::command::RawKey;
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A numbered line of commits of one partition. One commit is in in_flight on it at a time, so a receipt with the
/// last sequence tells whether it was executed.
pub(crate) struct CommitSequence {
    pub(crate) receipt: Bytes,
    pub(crate) sequence: u64,
    /// When the last commit that wrote the receipt was sent.
    pub(crate) written: Option<Instant>,
}

impl CommitSequence {
    /// Whether the receipt is there for certain: then its absence tells that a commit is a late copy.
    pub(crate) fn has_receipt(&self) -> bool {
        self.written.is_some_and(|at| at.elapsed() < RECEIPT_TTL / 2)
    }

    /// Whether this server has the receipt of the last commit.
    async fn is_on_record(&self, shared: &Shared, slot: u16, node: &Arc<Server>) -> bool {
        let mut get = redis::cmd("GET");
        get.arg(&self.receipt[..]);
        let (Ok(Value::BulkString(receipt)), teller) = shared.router.call(slot, &get, ALWAYS).await else {
            return false;
        };
        Arc::ptr_eq(&teller, node) && receipt.starts_with(format!("{}:", self.sequence).as_bytes())
    }
}

/// What is sent.
pub(crate) struct InFlight {
    pub(crate) call: Request,
    pub(crate) groups: usize,
    /// `None` when nothing is written: then a lost call is simply made again.
    pub(crate) sequence: Option<CommitSequence>,
    /// Nothing but deletions and the like: works without memory.
    pub(crate) frees: bool,
    pub(crate) check_acl: bool,
    /// The estimate of the server's time that the commit compares.
    pub(crate) estimate_ms: Option<i64>,
    /// Largest difference of that from the server's time.
    pub(crate) allowance: Duration,
    /// The time that bodies were shown.
    pub(crate) shown_ms: Option<i64>,
    /// The latest deadline of its transactions.
    pub(crate) deadline: Instant,
    /// Those of its transactions that have effects.
    pub(crate) guards: Vec<Arc<CancelGuard>>,
    /// Of the server that it is sent to, as far as we know.
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) begun: Instant,
}

/// What became of a call.
pub(crate) enum Outcome {
    /// The script answered. What it committed may lack confirmations of replicas: then this says so.
    /// Also the clock of the server that answered.
    Answer(Answer, Option<String>, Arc<ServerClock>),
    /// The reply was lost, the receipt tells: executed, with these groups committed.
    Executed { committed: Vec<bool>, unconfirmed: Option<String> },
    /// Certainly not executed; may be tried again.
    NotExecuted { reason: String, lost: bool },
    /// A caller gave up before it was sent: the others go again.
    Abandoned,
    /// Certainly not executed, and trying again is in vain.
    Refused(Error),
    /// Nobody can be asked what happened.
    Unknown { reason: String },
}

impl InFlight {
    /// Sends the call and finds out what became of it, at the latest when the last of its callers has gone.
    pub(crate) async fn execute(&self, shared: &Shared, partition: &[u8]) -> Outcome {
        let end = self.deadline + DEADLINE_GRACE;
        match tokio::time::timeout_at(end.into(), self.run(shared, partition)).await {
            Ok(outcome) => outcome,
            Err(_) if self.guards.iter().any(|guard| guard.is_sent()) => {
                Outcome::Unknown { reason: "the deadline passed with the commit in in_flight".into() }
            }
            // Its callers have gone. What stood in their way is known without it: this call may have begun just now.
            Err(_) => Outcome::Abandoned,
        }
    }

    async fn run(&self, shared: &Shared, partition: &[u8]) -> Outcome {
        let slot = shared.router.slot(partition);
        let sent = Instant::now();
        let (answer, node) = self.send(shared, slot, partition).await;
        match (answer, &self.sequence) {
            (Ok(value), _) => match Answer::parse(value, self.groups) {
                Some(answer) => {
                    let clock = shared.clock_of(&node);
                    clock.measured(sent.elapsed());
                    answer.time_ms.iter().for_each(|time| clock.observe(*time, sent));
                    if !matches!(answer.status, Status::ClocksDiffer) {
                        self.shown_ms.iter().for_each(|shown| clock.accepted(*shown));
                    }
                    let unconfirmed = match answer.is_committed() {
                        true => self.confirm(shared, partition, &node, sent).await,
                        false => None,
                    };
                    Outcome::Answer(answer, unconfirmed, clock)
                }
                None => Outcome::Unknown { reason: "the script's answer was not understood".into() },
            },
            (Err(Failure::Refused(error)), _) => Outcome::Refused(error),
            (Err(Failure::Lost { reason }), None) => Outcome::NotExecuted { reason, lost: true },
            (Err(Failure::Lost { reason }), Some(sequence)) => {
                self.ask_receipt(shared, partition, sequence, reason).await
            }
            (Err(Failure::Abandoned), _) => Outcome::Abandoned,
            (Err(failure), _) => Outcome::NotExecuted { reason: failure.reason(), lost: false },
        }
    }

    async fn send(
        &self,
        shared: &Shared,
        slot: u16,
        partition: &[u8],
    ) -> (Result<Value, Failure>, Arc<Server>) {
        let lease_key = |key: &RawKey| lease_key(shared, partition, key);
        let envelope = RequestHeader {
            lease_key: &lease_key,
            receipt: self.sequence.as_ref().map(|sequence| (&sequence.receipt[..], sequence.sequence)),
            estimate_ms: self.estimate_ms,
            allowance: self.allowance,
            lease: self.clock.lease(),
            wants_time: self.clock.is_due(),
            check_acl: self.check_acl,
            process: &shared.process,
            groups: self.groups,
        };
        let script = match (self.call.is_of_swaps(), self.frees) {
            (true, _) => &shared.compare_and_set_script,
            (false, true) => &shared.freeing_script,
            (false, false) => &shared.commit_script,
        };
        let gate = || self.guards.iter().all(|guard| guard.send());
        shared.eval(slot, script, &gate, |verb, script| self.call.command(verb, script, &envelope)).await
    }

    /// Awaits the replicas that the URL asks for, of a commit that was on the server after `since`. `Some` = too few have
    /// confirmed, in words.
    async fn confirm(
        &self,
        shared: &Shared,
        partition: &[u8],
        node: &Arc<Server>,
        since: Instant,
    ) -> Option<String> {
        let wanted = shared.router.address().wait;
        let sequence = self.sequence.as_ref().filter(|_| wanted > 0)?;
        let found = match self.process_of(shared, partition, sequence, (node, since)).await {
            Ok(run) => self.replicas(shared, partition, node, &run).await,
            Err(failure) => Err(failure),
        };
        let problem = match found {
            Ok(ReplicaCount::By(found)) if found >= wanted => return None,
            Ok(ReplicaCount::By(found)) => format!("only {found} of {wanted} replicas confirmed"),
            Ok(ReplicaCount::Elsewhere) => {
                format!("0 of {wanted} replicas confirmed: the address leads to another server by now")
            }
            Err(failure) => format!("0 of {wanted} replicas confirmed: {}", failure.reason()),
        };
        Some(format!("committed on the primary, but {problem}"))
    }

    /// The process that has the commit.
    async fn process_of(
        &self,
        shared: &Shared,
        partition: &[u8],
        sequence: &CommitSequence,
        (node, since): (&Arc<Server>, Instant),
    ) -> Result<String, Failure> {
        let mut run = node.run_since(since).await?;
        if run.is_none() {
            let asked = Instant::now();
            // The new connection may lead to a server that restarted without the commit. Its receipt proves it.
            if !sequence.is_on_record(shared, shared.router.slot(partition), node).await {
                let reason = "the server went away before replicas were asked".into();
                return Err(Failure::Lost { reason });
            }
            run = node.run_since(asked).await?;
        }
        match run {
            Some(run) if !run.is_empty() => Ok(run),
            Some(_) => Err(Failure::NotYet { reason: "the user may not run INFO".into() }),
            None => Err(Failure::Lost { reason: "the connection broke".into() }),
        }
    }

    async fn replicas(
        &self,
        shared: &Shared,
        partition: &[u8],
        node: &Arc<Server>,
        run: &str,
    ) -> Result<ReplicaCount, Failure> {
        let name = format!("wait:{}", shared.process);
        let replicas = shared.router.address().wait;
        // The partition's own slot first: what our user may write there was proved by the commit.
        let keys = |n: usize| match n.checked_sub(1) {
            None => Some(shared.engine_key(partition, name.as_bytes())),
            Some(other @ 0..WAIT_SLOTS_MAX) if shared.router.address().cluster => {
                let tag = shared.router.tag_on(node, other)?;
                Some(shared.engine_key(tag.as_bytes(), name.as_bytes()))
            }
            Some(_) => None,
        };
        node.confirm(Wanted { replicas, run, deadline: self.deadline, keys: &keys }).await
    }

    /// Closes the sequence: afterwards the commit has been executed, or never will be.
    async fn ask_receipt(
        &self,
        shared: &Shared,
        partition: &[u8],
        sequence: &CommitSequence,
        mut reason: String,
    ) -> Outcome {
        let slot = shared.router.slot(partition);
        add(&shared.counters.receipts_asked, 1);
        // A receipt does not live for ever; before half of its life it cannot have ended.
        let until = self.deadline.min(Instant::now() + RECEIPT_TTL / 2);
        let mut pause = RETRY_PAUSE;
        loop {
            let asked = Instant::now();
            let answer = shared.eval(slot, &shared.close_script, ALWAYS, |verb, script| {
                let mut cmd = redis::cmd(verb);
                cmd.arg(script).arg(1).arg(&sequence.receipt[..]);
                cmd.arg(sequence.sequence).arg(RECEIPT_TTL.as_millis() as u64).arg(self.clock.estimate_ms());
                cmd
            });
            match answer.await {
                (Ok(Value::Nil), _) => return Outcome::NotExecuted { reason, lost: true },
                (Ok(Value::BulkString(bits)), node) => {
                    self.shown_ms.iter().for_each(|shown| self.clock.accepted(*shown));
                    let unconfirmed = self.confirm(shared, partition, &node, asked).await;
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
            if Instant::now() + pause >= until {
                return Outcome::Unknown { reason };
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }
}

/// `ember:turn:<key>`, in the key's slot.
pub(crate) fn lease_key(shared: &Shared, partition: &[u8], key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + partition.len() + 16);
    shared.layout.write_own(partition, b"turn:", &mut out);
    out.extend_from_slice(key);
    out
}
