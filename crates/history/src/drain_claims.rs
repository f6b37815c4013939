//! The table of claims: which entries were, or may have been, delivered under an incarnation of their log.

use emberkeep_schema::table;

table! {
    /// The marks of entries that were claimed for an incarnation of their log before they were delivered under it. They
    /// recognise entries that a log shows again after it was set back.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DrainClaim = "ember_drain_claims" {
        /// The log.
        pub log: String,
        /// The first sequence divided by a constant: it bounds the rows of a partition.
        pub block: i64,
        /// The first sequence.
        pub first_sequence: i64,
        /// The incarnation that they are delivered under.
        pub incarnation: String,
        /// Four bytes for each entry.
        pub marks: Vec<u8>,
    }
    partition: (log, block),
    clustering: (first_sequence asc, incarnation asc),
    ttl: days(7),
    writes: conditional,
    owner: "history",
}
