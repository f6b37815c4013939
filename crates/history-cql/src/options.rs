//! How a store on CQL is opened, beside what its URL says.

use crate::limits::IN_FLIGHT_MAX_DEFAULT;
use emberkeep_history::Clock;
use emberkeep_history::limits::{BATCH_BYTES_MAX, QUEUE_ROWS_MAX, QUEUE_WAIT_DEFAULT};
use std::time::Duration;

/// What opening does about tables that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaMode {
    /// Refuses to open, and names what differs: `emberkeep schema apply` changes it.
    #[default]
    Verify,
    /// Adds missing tables, columns and indexes. The keyspace must exist.
    Apply,
}

/// Options of a store on CQL.
#[derive(Debug, Clone)]
pub struct CqlOptions {
    /// What opening does about tables that are not there.
    pub schema: SchemaMode,
    /// Source of time: of TTLs, and of the order of writes to tables of `writes: rows`. Servers that write the same rows
    /// need clocks that agree.
    pub clock: Clock,
    /// Rows of all calls that may be under way or wait.
    pub queue_rows_max: usize,
    /// Bytes of those rows.
    pub queue_bytes_max: usize,
    /// How long a write waits for a place before the caller gets `Busy`.
    pub queue_wait: Duration,
    /// Requests to the cluster that are under way at most.
    pub in_flight_max: usize,
}

impl Default for CqlOptions {
    fn default() -> CqlOptions {
        CqlOptions {
            schema: SchemaMode::default(),
            clock: Clock::default(),
            queue_rows_max: QUEUE_ROWS_MAX,
            queue_bytes_max: 4 * BATCH_BYTES_MAX,
            queue_wait: QUEUE_WAIT_DEFAULT,
            in_flight_max: IN_FLIGHT_MAX_DEFAULT,
        }
    }
}
