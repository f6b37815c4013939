//! Commit receipts: whether a commit whose reply was lost has been executed.
//!
//! A commit sequence is a receipt key and a number that grows with every commit on it. One commit of a
//! sequence is in flight at a time, and the script writes the number into the receipt. So a receipt with the
//! last number proves that the commit was executed; closing the sequence ensures that it never will be.

use crate::clock::ServerClock;
use crate::cluster::{ALWAYS, Server};
use crate::failure::Failure;
use crate::limits::RECEIPT_TTL;
use crate::shared::Shared;
use bytes::Bytes;
use redis::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a receipt says of each group: `None` = not committed, otherwise how many of its conditional writes were not made.
pub(super) fn groups_of_receipt(receipt: &[u8]) -> Vec<Option<usize>> {
    let mut parts = receipt.splitn(2, |byte| *byte == b':');
    let bits = parts.next().unwrap_or_default();
    let counts = parts.next().and_then(|counts| std::str::from_utf8(counts).ok()).unwrap_or_default();
    let counts = counts.split(',').map(|count| count.parse().unwrap_or(0)).chain(std::iter::repeat(0));
    bits.iter().zip(counts).map(|(bit, count)| (*bit == b'1').then_some(count)).collect()
}

/// A numbered sequence of commits of one partition.
pub(crate) struct CommitSequence {
    receipt: Bytes,
    number: u64,
    /// When the last commit that wrote the receipt was sent.
    written: Option<Instant>,
}

impl CommitSequence {
    /// A new sequence with a receipt key of its own.
    pub(crate) fn open(shared: &Shared, partition: &[u8]) -> CommitSequence {
        let sequence = shared.sequences_opened.fetch_add(1, Ordering::Relaxed);
        let name = format!("r:{}:{}:{sequence}", String::from_utf8_lossy(partition), shared.process);
        CommitSequence { receipt: shared.engine_key(partition, name.as_bytes()), number: 0, written: None }
    }

    /// The same for the next commit.
    pub(crate) fn next(mut self) -> CommitSequence {
        self.number += 1;
        self
    }

    /// The receipt key and the number of the last commit.
    pub(crate) fn receipt(&self) -> (&[u8], u64) {
        (&self.receipt, self.number)
    }

    /// A commit that was sent then wrote the receipt.
    pub(crate) fn record_written(&mut self, sent: Instant) {
        self.written = Some(sent);
    }

    /// Whether the receipt certainly exists: then its absence proves that a commit is a late copy.
    pub(crate) fn has_receipt(&self) -> bool {
        self.written.is_some_and(|at| at.elapsed() < RECEIPT_TTL / 2)
    }

    /// Whether this server has the receipt of the last commit.
    pub(crate) async fn is_on_record(&self, shared: &Shared, slot: u16, server: &Arc<Server>) -> bool {
        let mut get = redis::cmd("GET");
        get.arg(&self.receipt[..]);
        let (Ok(Value::BulkString(receipt)), answered_by) = shared.router.call(slot, &get, ALWAYS).await
        else {
            return false;
        };
        Arc::ptr_eq(&answered_by, server) && receipt.starts_with(format!("{}:", self.number).as_bytes())
    }

    /// Closes the sequence; `close_sequence.lua` says what the answers mean.
    pub(crate) async fn close(
        &self,
        shared: &Shared,
        slot: u16,
        clock: &ServerClock,
    ) -> (Result<Value, Failure>, Arc<Server>) {
        let command = |verb, script: &str| {
            let mut cmd = redis::cmd(verb);
            cmd.arg(script).arg(1).arg(&self.receipt[..]);
            cmd.arg(self.number).arg(RECEIPT_TTL.as_millis() as u64).arg(clock.estimate_ms());
            cmd
        };
        shared.eval(slot, &shared.scripts.close_sequence, ALWAYS, command).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_tells_of_each_group() {
        assert_eq!(groups_of_receipt(b"101"), [Some(0), None, Some(0)]);
        assert_eq!(groups_of_receipt(b"101:4,0,12"), [Some(4), None, Some(12)]);
        assert_eq!(groups_of_receipt(b""), []);
    }
}
