//! How the embedded store is opened.

use crate::limits::{FREE_BYTES_MIN, QUEUE_BYTES_MAX, QUEUE_ROWS_MAX, QUEUE_WAIT_DEFAULT};
use emberkeep_hot::embedded::Clock;
use std::time::Duration;

/// When a write is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A write is synced to disk before it is acknowledged: it survives a power failure.
    Always,
    /// A write is passed to the operating system before it is acknowledged, and synced every second: it survives
    /// the end of the process; a power failure may lose the last second.
    #[default]
    EverySec,
}

/// Options of the embedded store.
#[derive(Debug, Clone)]
pub struct Options {
    /// When a write is safe.
    pub durability: Durability,
    /// Source of time: TTLs and retention.
    pub clock: Clock,
    /// Rows that may wait for the writer.
    pub queue_rows_max: usize,
    /// Bytes of rows that may wait for the writer.
    pub queue_bytes_max: usize,
    /// How long a write waits for a place in the queue.
    pub queue_wait: Duration,
    /// Free space below which writes are refused.
    pub free_bytes_min: u64,
    /// Opens a folder although batches are missing from its journal, with what is left. What is lost stays lost:
    /// restore a copy instead if there is one. Other damage is an error all the same.
    pub accept_loss: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::default(),
            clock: Clock::default(),
            queue_rows_max: QUEUE_ROWS_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            queue_wait: QUEUE_WAIT_DEFAULT,
            free_bytes_min: FREE_BYTES_MIN,
            accept_loss: false,
        }
    }
}
