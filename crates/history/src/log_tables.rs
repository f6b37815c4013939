//! The tables of history itself: what the consumer of a log remembers, and sources that have ended.

use emberkeep_schema::{Timestamp, table};

table! {
    /// How far the consumer of a log has come. Changed by compare and set only.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LogPosition = "ember_log_positions" {
        /// The name of the log: its partition and key.
        pub log: String,
        /// The incarnation that the log had.
        pub incarnation: String,
        /// The last sequence that was drained.
        pub sequence: i64,
        /// The mark of that entry.
        pub mark: String,
    }
    partition: (log),
    clustering: (),
    ttl: persistent,
    writes: conditional,
    owner: "history",
}

table! {
    /// Entries of logs that cannot be stored as what they are. The log `spool` has one for each spool of recorded events that has
    /// some.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DeadLetter = "ember_dead_letters" {
        /// The name of the log: its partition and key.
        pub log: String,
        /// Its sequence in the log.
        pub sequence: i64,
        /// The incarnation that the log had.
        pub incarnation: String,
        /// Why it could not be stored.
        pub reason: String,
        /// The entry as it was in the log.
        pub entry: Vec<u8>,
        /// When it was put here.
        pub at: Timestamp,
    }
    partition: (log),
    clustering: (sequence asc, incarnation asc),
    ttl: days(90),
    writes: rows,
    owner: "history",
}

table! {
    /// Sources of totals that have ended and take no more entries (CQL; the embedded store keeps them beside the totals).
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClosedSource = "ember_closed_sources" {
        /// The table of the totals.
        pub totals: String,
        /// The name of the source.
        pub source: String,
        /// When it was closed.
        pub closed_at: Timestamp,
    }
    partition: (totals, source),
    clustering: (),
    ttl: persistent,
    writes: conditional,
    owner: "history",
}
