//! Errors, one variant per remedy. Each text says what to do.

use crate::kind::KindFound;
use std::time::Duration;

/// The result of an operation on hot state.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A key as text: bytes that are not printable ASCII are escaped.
pub fn show(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// The key that [`show`] printed; `None` if the text is not one of its.
pub(crate) fn shown(text: &str) -> Option<Vec<u8>> {
    let (mut key, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                ((digit(high)? * 16 + digit(low)?) as u8, tail)
            }
            (b'\\', [b't', tail @ ..]) => (b'\t', tail),
            (b'\\', [b'r', tail @ ..]) => (b'\r', tail),
            (b'\\', [b'n', tail @ ..]) => (b'\n', tail),
            (b'\\', [escaped @ (b'\\' | b'\'' | b'"'), tail @ ..]) => (*escaped, tail),
            (b'\\', _) => return None,
            (plain, tail) => (*plain, tail),
        };
        key.push(byte);
        rest = tail;
    }
    Some(key)
}

fn shown_name(name: &Option<&'static str>) -> String {
    name.map_or_else(|| "this transaction".into(), |name| format!("transaction {name}"))
}

fn shown_field(field: &Option<Box<str>>) -> String {
    field.as_ref().map_or_else(String::new, |field| format!(" (field {field})"))
}

/// The error of an operation on hot state.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Other transactions kept changing the same keys until the deadline. Nothing was written.
    #[error(
        "conflict: other clients kept changing the keys of {} for {waited:?} ({attempts} attempts); nothing was written; retry, or set a longer deadline",
        shown_name(transaction)
    )]
    Conflict {
        /// Time between the call and giving up.
        waited: Duration,
        /// Runs of the body.
        attempts: u32,
        /// The name that [`Scope::named`](crate::Scope::named) gave the transaction.
        transaction: Option<&'static str>,
    },
    /// The key holds another Redis type than its family declares.
    #[error(
        "wrong type: {key} is a {found}, expected a {expected}; an external client wrote it; delete or rename the key"
    )]
    WrongType {
        /// The key (and its family, where the caller named one).
        key: String,
        /// What the family declares.
        expected: &'static str,
        /// The type that the key has.
        found: KindFound,
    },
    /// The stored value cannot be decoded as its family declares. It was not overwritten.
    #[error("corrupt value at {key}: {reason}; it was not changed; repair or delete it")]
    Corrupt {
        /// The key and its family.
        key: String,
        /// What was wrong with it.
        reason: String,
    },
    /// A number would leave 64 bits. Nothing was written.
    #[error(
        "overflow: {key} is {value}, and {by} more leaves the range of a 64-bit integer; nothing was written; check the increment, or reset the number"
    )]
    Overflow {
        /// The key (and its family, where the caller named one).
        key: String,
        /// The number that is stored.
        value: i64,
        /// The increment, or the sum of those that share a commit.
        by: i64,
    },
    /// An argument of the caller is not allowed.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// The argument, such as `index` or `key`.
        what: &'static str,
        /// Its value and what was expected.
        problem: String,
    },
    /// A reply would exceed the limit of one read.
    #[error(
        "too large: {what} of {key} has {found} {unit}, one read returns at most {max}; read smaller ranges, or a set or hash page by page outside a transaction (`Scope::members`, `Scope::fields`)"
    )]
    TooLarge {
        /// The key (and its family, where the caller named one).
        key: String,
        /// The command, such as `ZRANGE`.
        what: &'static str,
        /// The size of the whole reply, in `unit`.
        found: usize,
        /// What is counted: `elements` or `bytes`.
        unit: &'static str,
        /// The limit of one read, in the same unit.
        max: usize,
    },
    /// The memory limit is reached. Nothing was written; deletes still work.
    #[error("out of memory: {detail}; nothing was written; delete keys or raise the limit")]
    OutOfMemory {
        /// How much is in use and what the limit is, as the engine says it.
        detail: String,
    },
    /// The log is full and may not drop entries.
    #[error("the log {key} is full ({max} entries); nothing was written; let its consumer trim it first")]
    LogFull {
        /// The key of the log, and its family.
        key: String,
        /// Entries that the log may have.
        max: usize,
    },
    /// The body panicked. Its writes were discarded.
    #[error("the transaction's body panicked: {message}; its writes were discarded")]
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// The backend cannot be reached or refuses to work now. Nothing was written.
    #[error("{backend} is unavailable: {reason}; nothing was written; {advice}")]
    Unavailable {
        /// Which backend, without credentials.
        backend: String,
        /// The reason, as the backend or the operating system reports it.
        reason: String,
        /// What an operator can do about it.
        advice: &'static str,
    },
    /// The backend refuses the credentials or the command.
    #[error("{backend} refuses: {reason}; {advice}")]
    Denied {
        /// Which backend, without credentials.
        backend: String,
        /// The backend's own words.
        reason: String,
        /// What to grant or to correct.
        advice: &'static str,
    },
    /// The scope acts as a service that may not write this: it is not the owner, and has no grant for it. Nothing
    /// was written.
    #[error(
        "forbidden: the service {service} may not write {family}{}, which {owner} owns; nothing was written; let {owner} do it, or run the operation with a grant (`Scope::for_operation`)",
        shown_field(field)
    )]
    Forbidden {
        /// The service that the scope acts as.
        service: &'static str,
        /// The family.
        family: &'static str,
        /// The service that owns the family.
        owner: &'static str,
        /// The field, if only some fields of the family are granted.
        field: Option<Box<str>>,
    },
    /// The transaction may or may not be committed: the connection was lost during the commit, or too few
    /// replicas confirmed it.
    #[error(
        "outcome unknown: {reason}; the transaction may or may not be committed on {backend}; read the state before you retry"
    )]
    OutcomeUnknown {
        /// Which backend, without credentials.
        backend: String,
        /// What came between the commit and its answer.
        reason: String,
    },
    /// A commit failed after its first write. This should never happen and needs attention.
    #[error("partial commit: {reason}; these keys may be partly written, check them: {keys:?}")]
    PartialCommit {
        /// What the backend said.
        reason: String,
        /// Keys of the transaction.
        keys: Vec<String>,
    },
    /// The journal accepts no transactions: the disk is full, or a write or sync failed. Nothing was
    /// written. With `Durability::Always`, reads of writes that are not durable are refused too.
    #[error("the journal stopped: {reason}")]
    JournalStopped {
        /// The error of the file system, and whether the journal resumes by itself or only after a restart.
        reason: String,
    },
    /// A file of the journal is damaged. Nothing was loaded.
    #[error("damaged journal: {file} at byte {offset}: {problem}; {remedy}")]
    DamagedJournal {
        /// The file's name in the journal's folder.
        file: String,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong there.
        problem: String,
        /// How to start nevertheless, and what is lost by it.
        remedy: &'static str,
    },
    /// The folder of the store cannot be used.
    #[error("cannot use {path}: {problem}")]
    Folder {
        /// The folder or file.
        path: String,
        /// The error of the file system, or which process has the folder.
        problem: String,
    },
    /// A closure used the store instead of its `Tx`: it started a transaction, a plain read, a scan or a
    /// subscription, or called `stats` or `close`. On an engine in this process that would wait for itself.
    #[error(
        "a transaction's closure may use nothing of the store but its own `Tx`; make the call before or after the transaction"
    )]
    InsideTransaction,
    /// Only with [`Options::check_closures`](crate::embedded::Options::check_closures): two runs of a closure
    /// differed, or it could not stand a read that was not available yet. Nothing was written.
    #[error(
        "impure closure: {difference}; a closure may depend only on its reads, its captures, `tx.now()` and `tx.random()`, and passes errors of `tx` on with `?`"
    )]
    ImpureClosure {
        /// What the second run did otherwise.
        difference: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Internal: a read is not available yet and the body will run again. Bodies return it with `?`.
    #[doc(hidden)]
    #[error("this read is not available yet; return the error with `?` and the body will run again")]
    Suspended,
}

impl Error {
    pub(crate) fn invalid(what: &'static str, problem: impl Into<String>) -> Self {
        Error::Invalid { what, problem: problem.into() }
    }

    /// Adds the name of the transaction, if it has one, to an error that is not about one key.
    pub(crate) fn in_transaction(mut self, name: Option<&'static str>) -> Self {
        let Some(name) = name else { return self };
        match &mut self {
            Error::Conflict { transaction, .. } => *transaction = Some(name),
            Error::Panicked { message: text }
            | Error::Unavailable { reason: text, .. }
            | Error::OutcomeUnknown { reason: text, .. }
            | Error::PartialCommit { reason: text, .. }
            | Error::OutOfMemory { detail: text }
            | Error::ImpureClosure { difference: text } => text.push_str(&format!(" (transaction {name})")),
            _ => {}
        }
        self
    }

    /// Whether a retry may succeed without a repair.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Conflict { .. } | Error::Unavailable { .. })
    }

    /// Whether the value of one key is at fault, probably written by an external client. Other keys are not
    /// affected.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Corrupt { .. } | Error::WrongType { .. } | Error::TooLarge { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_key_differs_from_a_store_that_fails() {
        let (key, reason) = (String::from("k"), String::from("no JSON"));
        assert!(Error::Corrupt { key, reason }.is_corrupt());
        let failing = [Error::Closed, Error::Suspended, Error::invalid("id", "0")];
        assert!(failing.iter().all(|error| !error.is_corrupt()));
    }

    #[test]
    fn errors_name_their_transaction_once() {
        let conflict = Error::Conflict { waited: Duration::ZERO, attempts: 3, transaction: None };
        assert!(conflict.to_string().contains("the keys of this transaction for"));
        let named = conflict.in_transaction(Some("bid"));
        assert!(named.to_string().contains("the keys of transaction bid for"), "{named}");
        let panicked = Error::Panicked { message: "no".into() }.in_transaction(Some("bid"));
        assert_eq!(panicked, Error::Panicked { message: "no (transaction bid)".into() });
        assert_eq!(Error::Closed.in_transaction(Some("bid")), Error::Closed);
    }

    #[test]
    fn a_shown_key_can_be_read_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        for key in [&b""[..], b"plain:key:1", b"a\\x41'\"\n", &every_byte] {
            assert_eq!(shown(&show(key)).as_deref(), Some(key));
        }
        assert_eq!(shown("cut\\x4"), None);
        assert_eq!(shown("cut\\"), None);
    }
}
