//! The table of claims: which entries of a log were, or may have been, delivered, and for which source.

use emberkeep_schema::table;

table! {
    /// The marks of entries of a log that were claimed for a source before they were delivered for it. One row has the claims
    /// of all consumers for its sequences, so that of two which claim one entry one wins. They also recognise entries
    /// that a log shows again after it was set back.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LogClaims = "ember_log_claims" {
        /// The name of the log: its partition and key.
        pub log: String,
        /// The sequence of its entries divided by the entries of a page.
        pub slot: i64,
        /// The claims of the entries with these sequences, encoded.
        pub claims: Vec<u8>,
    }
    partition: (log, slot),
    clustering: (),
    ttl: days(7),
    writes: conditional,
    owner: "history",
}
