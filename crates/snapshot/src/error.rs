//! Errors, one variant per remedy.

use crate::id::SnapshotId;
use std::path::Path;

/// The result of an operation on snapshots.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on snapshots failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Hot state refused or failed.
    #[error(transparent)]
    Hot(#[from] emberkeep_hot::Error),
    /// There is no such snapshot.
    #[error("there is no snapshot {id} in {store}; list them, and use an id of the list")]
    NotFound {
        /// The id or name that was asked for.
        id: String,
        /// The store.
        store: String,
    },
    /// The stored snapshot is not what was written. Nothing of it was restored.
    #[error("damaged snapshot: {snapshot}: {problem}; nothing of it was used; restore another one")]
    Damaged {
        /// The file or the id.
        snapshot: String,
        /// What was found, and where.
        problem: String,
    },
    /// The stored snapshot is not what it was when its restore began. The restore has not ended.
    #[error(
        "{snapshot} changed while it was restored, at the key {key}; the restore has not ended; restore another one as a whole"
    )]
    ChangedMeanwhile {
        /// The id.
        snapshot: String,
        /// The first key that differs, without prefix and tag.
        key: String,
    },
    /// The snapshot was written by a newer version.
    #[error("{snapshot} has format {found}, this version reads up to {max}; use the version that wrote it")]
    NewerFormat {
        /// The file or the table.
        snapshot: String,
        /// Its format.
        found: u32,
        /// The newest format that is understood.
        max: u32,
    },
    /// A key is larger than a snapshot can hold. No snapshot was made.
    #[error(
        "the key {key} has {bytes} bytes, a snapshot takes up to {max}; the snapshot was not made; split or remove the key"
    )]
    KeyTooLarge {
        /// The key, without prefix and tag.
        key: String,
        /// Its bytes as they would be stored.
        bytes: usize,
        /// The most that are read.
        max: usize,
    },
    /// The store has no space left. No snapshot was listed by this call.
    #[error("{store} is full: {reason}; the snapshot was not made; free space or prune snapshots")]
    Full {
        /// The store, without credentials.
        store: String,
        /// The words of the system or server.
        reason: String,
    },
    /// The store cannot be reached, or went away. A snapshot that was being made is not listed.
    #[error("{store} is unavailable: {reason}; call again when it is back")]
    Unavailable {
        /// The store, without credentials.
        store: String,
        /// The words of the system or server.
        reason: String,
    },
    /// The store refuses: wrong credentials, missing rights, an unreadable folder.
    #[error("{store} refuses: {reason}")]
    Denied {
        /// The store, without credentials.
        store: String,
        /// The words of the system or server.
        reason: String,
    },
    /// The connection was lost when the snapshot was being committed.
    #[error("outcome unknown: {reason}; the snapshot {id} may or may not be listed in {store}; list them")]
    OutcomeUnknown {
        /// The store, without credentials.
        store: String,
        /// The snapshot.
        id: SnapshotId,
        /// What came in between.
        reason: String,
    },
    /// A restore of another snapshot, or of other keys, was begun and has not ended.
    #[error(
        "a restore of the snapshot {snapshot} ({choice}) has not ended; finish it first, or restore a snapshot as a whole"
    )]
    Restoring {
        /// The snapshot of the unfinished restore.
        snapshot: SnapshotId,
        /// Its keys.
        choice: String,
    },
    /// An argument of the caller is not allowed.
    #[error("invalid {what}: {problem}")]
    Invalid {
        /// The argument.
        what: &'static str,
        /// Its value and what was expected.
        problem: String,
    },
}

impl Error {
    pub(crate) fn invalid(what: &'static str, problem: impl Into<String>) -> Error {
        Error::Invalid { what, problem: problem.into() }
    }

    /// An error of the file system.
    pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> Error {
        let (store, reason) = (path.display().to_string(), error.to_string());
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Error::Full { store, reason }
            }
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Error::Denied { store, reason }
            }
            _ => Error::Unavailable { store, reason },
        }
    }
}
