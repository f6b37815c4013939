//! One commit on its way: sends the call, and after a lost reply asks the lane's receipt what happened.

use crate::failure::Failure;
use crate::limits::*;
use crate::shared::{Shared, add};
use crate::wire::{Answer, Call, Envelope};
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::command::RawKey;
use redis::Value;
use std::time::Instant;

/// A numbered line of commits of one partition. One commit is in flight on it at a time, so a receipt with the
/// last sequence tells whether it was executed.
pub(crate) struct Lane {
    pub(crate) receipt: Bytes,
    pub(crate) sequence: u64,
}

/// What is sent.
pub(crate) struct Flight {
    pub(crate) call: Call,
    pub(crate) groups: usize,
    /// `None` when nothing is written: then a lost call is simply made again.
    pub(crate) lane: Option<Lane>,
    pub(crate) estimate_ms: Option<i64>,
    /// The latest deadline of its steps.
    pub(crate) deadline: Instant,
}

/// What became of a call.
pub(crate) enum Outcome {
    /// The script answered.
    Answer(Answer),
    /// The reply was lost, the receipt tells: executed, with these groups committed.
    Executed { committed: Vec<bool> },
    /// Certainly not executed; may be tried again.
    NotExecuted { reason: String, lost: bool },
    /// Certainly not executed, and trying again is in vain.
    Refused(Error),
    /// Nobody can be asked what happened.
    Unknown { reason: String },
}

impl Flight {
    /// Sends the call and finds out what became of it.
    pub(crate) async fn fly(&self, shared: &Shared, partition: &[u8]) -> Outcome {
        let slot = shared.router.slot(partition);
        let turn_key = |key: &RawKey| turn_key(shared, partition, key);
        let envelope = Envelope {
            turn_key: &turn_key,
            receipt: self.lane.as_ref().map(|lane| (&lane.receipt[..], lane.sequence)),
            estimate_ms: self.estimate_ms,
            wants_time: shared.clock.is_due(),
            process: &shared.process,
            groups: self.groups,
        };
        let answer = shared
            .eval(slot, &shared.step_script, |verb, script| self.call.command(verb, script, &envelope))
            .await;
        match (answer, &self.lane) {
            (Ok(value), _) => match Answer::parse(value) {
                Some(answer) => self.observed(shared, answer),
                None => Outcome::Unknown { reason: "the script's answer was not understood".into() },
            },
            (Err(Failure::Refused(error)), _) => Outcome::Refused(error),
            (Err(Failure::Lost { reason }), None) => Outcome::NotExecuted { reason, lost: true },
            (Err(Failure::Lost { reason }), Some(lane)) => self.ask_receipt(shared, slot, lane, reason).await,
            (Err(failure), _) => Outcome::NotExecuted { reason: failure.reason(), lost: false },
        }
    }

    fn observed(&self, shared: &Shared, answer: Answer) -> Outcome {
        if let Some(time) = answer.time_ms {
            shared.clock.observe(time);
        }
        Outcome::Answer(answer)
    }

    /// Closes the lane: afterwards the commit has been executed, or never will be.
    async fn ask_receipt(&self, shared: &Shared, slot: u16, lane: &Lane, mut reason: String) -> Outcome {
        add(&shared.counters.receipts_asked, 1);
        let mut pause = RETRY_PAUSE;
        loop {
            let answer = shared.eval(slot, &shared.close_script, |verb, script| {
                let mut cmd = redis::cmd(verb);
                cmd.arg(script).arg(1).arg(&lane.receipt[..]);
                cmd.arg(lane.sequence).arg(RECEIPT.as_millis() as u64);
                cmd
            });
            match answer.await {
                Ok(Value::Nil) => return Outcome::NotExecuted { reason, lost: true },
                Ok(Value::BulkString(bits)) => {
                    return Outcome::Executed { committed: bits.iter().map(|bit| *bit == b'1').collect() };
                }
                Ok(other) => reason = format!("unexpected receipt: {other:?}"),
                Err(failure) => reason = failure.reason(),
            }
            if Instant::now() + pause >= self.deadline {
                return Outcome::Unknown { reason };
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }
}

/// `ember:turn:<key>`, in the key's slot.
fn turn_key(shared: &Shared, partition: &[u8], key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + partition.len() + 16);
    shared.naming.write_own(partition, b"turn:", &mut out);
    out.extend_from_slice(key);
    out
}
