//! Every limit of this crate. Units and qualifiers are last in the names.

use std::time::Duration;

/// How long a call waits for one answer of the cluster, retries on other nodes included.
pub const REQUEST_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// How long connecting to a node may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two signs of life on an idle or silent connection.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// A node that does not answer a sign of life for so long is given up, and its requests go to another one.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests of one store that are under way at most.
pub const IN_FLIGHT_MAX_DEFAULT: usize = 256;
/// How long opening waits for all nodes to have the same schema after a change of it.
pub const SCHEMA_AGREEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Statements of one batch. All of them belong to one partition.
pub const BATCH_STATEMENTS_MAX: usize = 100;
/// Bytes of the values of one batch, unless one row alone is larger. ScyllaDB warns above 128 KiB.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;
/// Rows that one request to the cluster returns at most.
pub const FETCH_ROWS_MAX: usize = 128;
/// Slices of a bucket that are read at the same time.
pub const SLICES_READ_AT_ONCE_MAX: usize = 16;
/// Buckets of a sliced day that are read at the same time.
pub const BUCKETS_READ_AT_ONCE_MAX: usize = 4;
/// How often an unknown outcome of a conditional write is read again before it is reported.
pub const OUTCOME_READS_MAX: usize = 3;
/// How long the slices of a day are remembered after its rows have ended.
pub const SLICES_KEPT_AFTER_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Longest name of a keyspace.
pub const KEYSPACE_BYTES_MAX: usize = 48;

const _: () = assert!(
    KEEPALIVE_INTERVAL.as_secs() + KEEPALIVE_TIMEOUT.as_secs() < REQUEST_TIMEOUT_DEFAULT.as_secs(),
    "a request to a node that hangs is sent to another one in time"
);
