//! The numbers that this side and the scripts agree on, in one table.
//!
//! The requests are built by these names, and a test compares the table with the constants at the top of each
//! script.

/// Names of consecutive places.
pub(super) struct Fields {
    pub(super) first: usize,
    pub(super) names: &'static [&'static str],
}

impl Fields {
    /// The first place after them.
    pub(super) const fn end(&self) -> usize {
        self.first + self.names.len()
    }
}

/// ARGV of `commit.lua`; the words follow.
pub(super) const COMMIT_ARGUMENTS: Fields = Fields {
    first: 1,
    names: &[
        "KEYS",
        "MODE",
        "SEQUENCE",
        "TIME",
        "PROCESS",
        "LEASE_MS",
        "RECEIPT_MS",
        "ELEMENTS_MAX",
        "ALLOWANCE_MS",
        "GROUPS",
        "HIDDEN",
        "PROBE",
        "PROGRAM",
        "SHAPES",
    ],
};

/// The header of a group in the program of `commit.lua`, counted from the group's first number.
pub(super) const GROUP_HEADER: Fields = Fields {
    first: 0,
    names: &[
        "LENGTH",
        "ASK_LEASE",
        "TEXTS",
        "ABSENT",
        "READS",
        "WRITTEN_KEYS",
        "TYPES",
        "LOG_ENTRIES",
        "DELETIONS",
        "WRITES",
        "MESSAGES",
        "LEASES",
        "WOKEN",
    ],
};

/// How many numbers one entry of a group's lists has; those of a write are followed by its arguments.
pub(super) mod length {
    pub(crate) const TEXT: usize = 2;
    pub(crate) const TYPE: usize = 5;
    pub(crate) const LOG: usize = 5;
    pub(crate) const WRITE: usize = 3;
    pub(crate) const MESSAGE: usize = 2;
}

/// What an entry of a log says besides its text, added up.
pub(super) mod log_flag {
    /// A full log refuses it.
    pub(crate) const REFUSE: u32 = 1;
    /// Its deadline counts only if the log has none.
    pub(crate) const DEADLINE_IF_NONE: u32 = 2;
}

/// ARGV of `compare_and_set.lua`; the strings follow.
pub(super) const COMPARE_AND_SET_ARGUMENTS: Fields = Fields {
    first: 1,
    names: &[
        "SEQUENCE",
        "TIME",
        "PROCESS",
        "LEASE_MS",
        "RECEIPT_MS",
        "ALLOWANCE_MS",
        "COUNT",
        "HIDDEN",
        "PROBE",
    ],
};

/// The words of one string in `compare_and_set.lua`, counted from its first one.
pub(super) const COMPARE_AND_SET_STRING: Fields =
    Fields { first: 0, names: &["TAG", "EXPECTED", "VALUE", "EXPIRY"] };

/// What a read is expected to give.
pub(super) mod tag {
    pub(crate) const STRING: u32 = 1;
    pub(crate) const NIL: u32 = 2;
    pub(crate) const INTEGER: u32 = 3;
    pub(crate) const ELEMENTS: u32 = 4;
    pub(crate) const SCORE: u32 = 5;
    pub(crate) const WRONG_TYPE: u32 = 6;
    pub(crate) const TOO_MANY: u32 = 7;
    pub(crate) const ARRAY: u32 = 8;
    pub(crate) const DIGEST: u32 = 9;
    pub(crate) const JOINED: u32 = 10;
}

/// What became of a call.
pub(super) mod status {
    pub(crate) const DONE: i64 = 0;
    pub(crate) const CLOCKS_DIFFER: i64 = 1;
    pub(crate) const SEQUENCE_CLOSED: i64 = 2;
    pub(crate) const PARTIAL: i64 = 3;
}

/// What became of a group.
pub(super) mod group {
    pub(crate) const COMMITTED: i64 = 0;
    pub(crate) const STALE: i64 = 1;
    pub(crate) const LEASED: i64 = 2;
    pub(crate) const WRONG_TYPE: i64 = 3;
    pub(crate) const LOG_FULL: i64 = 4;
    /// Alone: not begun, because a group before it failed. With a command: the user may not run that.
    pub(crate) const NOT_BEGUN: i64 = 5;
    /// An external client wrote the last entry of a log, so that the next one has no number.
    pub(crate) const LOG_CORRUPT: i64 = 6;
}

/// A reply that is not the value of a read.
pub(super) mod reply {
    pub(crate) const WRONG_TYPE: i64 = 1;
    pub(crate) const TOO_MANY: i64 = 2;
    pub(crate) const ERROR: i64 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::inline::constants;
    use std::collections::BTreeMap;

    fn numbered(prefix: &str, fields: &Fields) -> Vec<(String, i64)> {
        let name = |(place, name): (i64, &&str)| (format!("{prefix}{name}"), place);
        (fields.first as i64..).zip(fields.names).map(name).collect()
    }

    #[track_caller]
    fn assert_same(script: &str, prefix: &str, expected: Vec<(String, i64)>) {
        let found = constants(script).into_iter().filter(|(name, _)| name.starts_with(prefix));
        let found: BTreeMap<String, i64> = found.map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(found, expected.into_iter().collect::<BTreeMap<_, _>>(), "{prefix}");
    }

    fn named<const N: usize>(prefix: &str, values: [(&str, i64); N]) -> Vec<(String, i64)> {
        values.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
    }

    fn answers() -> [(&'static str, Vec<(String, i64)>); 3] {
        let statuses = [
            ("DONE", status::DONE),
            ("CLOCKS_DIFFER", status::CLOCKS_DIFFER),
            ("SEQUENCE_CLOSED", status::SEQUENCE_CLOSED),
            ("PARTIAL", status::PARTIAL),
        ];
        let groups = [
            ("COMMITTED", group::COMMITTED),
            ("STALE", group::STALE),
            ("LEASED", group::LEASED),
            ("WRONG_TYPE", group::WRONG_TYPE),
            ("LOG_FULL", group::LOG_FULL),
            ("NOT_BEGUN", group::NOT_BEGUN),
            ("LOG_CORRUPT", group::LOG_CORRUPT),
        ];
        let replies =
            [("WRONG_TYPE", reply::WRONG_TYPE), ("TOO_MANY", reply::TOO_MANY), ("ERROR", reply::ERROR)];
        [
            ("STATUS_", named("STATUS_", statuses)),
            ("ANSWER_", named("ANSWER_", groups)),
            ("REPLY_", named("REPLY_", replies)),
        ]
    }

    #[test]
    fn the_commit_script_has_the_numbers_of_this_table() {
        let script = include_str!("commit.lua");
        let mut arguments = numbered("ARG_", &COMMIT_ARGUMENTS);
        arguments.push(("ARG_WORDS".into(), COMMIT_ARGUMENTS.end() as i64));
        assert_same(script, "ARG_", arguments);
        let mut header = numbered("GROUP_", &GROUP_HEADER);
        header.push(("GROUP_BODY".into(), GROUP_HEADER.end() as i64));
        assert_same(script, "GROUP_", header);
        let lengths = [
            ("TEXT", length::TEXT),
            ("TYPE", length::TYPE),
            ("LOG", length::LOG),
            ("WRITE", length::WRITE),
            ("MESSAGE", length::MESSAGE),
        ];
        assert_same(script, "LENGTH_", named("LENGTH_", lengths.map(|(name, value)| (name, value as i64))));
        let flags = [("REFUSE", log_flag::REFUSE), ("DEADLINE_IF_NONE", log_flag::DEADLINE_IF_NONE)];
        assert_same(script, "LOG_", named("LOG_", flags.map(|(name, value)| (name, value.into()))));
        let tags = [
            ("STRING", tag::STRING),
            ("NIL", tag::NIL),
            ("INTEGER", tag::INTEGER),
            ("ELEMENTS", tag::ELEMENTS),
            ("SCORE", tag::SCORE),
            ("WRONG_TYPE", tag::WRONG_TYPE),
            ("TOO_MANY", tag::TOO_MANY),
            ("ARRAY", tag::ARRAY),
            ("JOINED", tag::JOINED),
            ("DIGEST", tag::DIGEST),
        ];
        assert_same(script, "TAG_", named("TAG_", tags.map(|(name, value)| (name, value.into()))));
        answers().into_iter().for_each(|(prefix, expected)| assert_same(script, prefix, expected));
    }

    #[test]
    fn the_script_that_compares_and_sets_has_the_numbers_of_this_table() {
        let script = include_str!("compare_and_set.lua");
        let mut arguments = numbered("ARG_", &COMPARE_AND_SET_ARGUMENTS);
        arguments.push(("ARG_STRINGS".into(), COMPARE_AND_SET_ARGUMENTS.end() as i64));
        assert_same(script, "ARG_", arguments);
        let mut string = numbered("STRING_", &COMPARE_AND_SET_STRING);
        string.push(("STRING_LENGTH".into(), COMPARE_AND_SET_STRING.end() as i64));
        assert_same(script, "STRING_", string);
        for (prefix, expected) in answers() {
            // It checks no types, no log and no ACL.
            let used = |(name, _): &(String, i64)| {
                let unused = ["ANSWER_WRONG_TYPE", "ANSWER_LOG_FULL", "ANSWER_LOG_CORRUPT", "REPLY_TOO_MANY"];
                !unused.contains(&name.as_str())
            };
            assert_same(script, prefix, expected.into_iter().filter(used).collect());
        }
    }
}
