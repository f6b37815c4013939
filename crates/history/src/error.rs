//! Errors, one variant per remedy. Each text says what to do.

use std::time::Duration;

/// The result of an operation on history.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation on history.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument of the caller is not allowed. Nothing was written.
    #[error("invalid {what}: {problem}; nothing was written")]
    Invalid {
        /// Which argument: a table and column, or a name.
        what: String,
        /// What is wrong with it, and what is expected.
        problem: String,
    },
    /// A row, batch or range is larger than the limit. Nothing was written.
    #[error("too large: {what} has {found} {unit}, at most {max} are allowed; nothing was written; {remedy}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size, in `unit`.
        found: usize,
        /// What is counted: rows, bytes or partitions.
        unit: &'static str,
        /// The limit, in the same unit.
        max: usize,
        /// What to divide or to make smaller.
        remedy: &'static str,
    },
    /// The text is not a cursor of this query.
    #[error("invalid cursor: {problem}; start again without a cursor")]
    InvalidCursor {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A stored value cannot be read as its table declares. It was not changed.
    #[error(
        "corrupt value in {table}, column {column}: {reason}; it was not changed; add the value to the declaration, or delete the row"
    )]
    Corrupt {
        /// The table, by the name that the store has.
        table: &'static str,
        /// The column, by the name that the store has.
        column: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The store has another declaration of the table, which cannot become this one. Its rows are as they were.
    #[error("{table} differs from what is stored: {problem}; {remedy}")]
    SchemaMismatch {
        /// The table, by the name that the store has.
        table: String,
        /// What the store has and what is declared.
        problem: String,
        /// How the two can be brought together.
        remedy: &'static str,
    },
    /// The source was closed and takes no more entries. Nothing was written.
    #[error(
        "the source {name:?} of {table} is closed; nothing was written; deliver new entries under a new source"
    )]
    SourceClosed {
        /// The table of the totals.
        table: &'static str,
        /// The name of the source.
        name: String,
    },
    /// A sum leaves 64 bits: of a fold, which is not written, or over all sources of a key that is read.
    #[error(
        "overflow: the sum {sum} of {table} leaves the range of a 64-bit integer; a fold is not written then; check the amounts"
    )]
    Overflow {
        /// The table of the totals.
        table: &'static str,
        /// The name of the sum.
        sum: &'static str,
    },
    /// The writer's queue stayed full. Nothing was written.
    #[error(
        "busy: {queued_rows} rows wait for the writer, no place for {waited:?}; nothing was written; slow down and retry"
    )]
    Busy {
        /// Rows in the queue.
        queued_rows: usize,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The disk has too little free space. Nothing was written; the store goes on by itself when there is space.
    #[error(
        "disk full: {path} has {free_bytes} bytes left, {min_bytes} are needed; nothing was written; free space and retry"
    )]
    DiskFull {
        /// The folder of the store.
        path: String,
        /// Bytes that the file system has left.
        free_bytes: u64,
        /// What must be left.
        min_bytes: u64,
    },
    /// The spool has no place for more events. Nothing was recorded; the spool goes on by itself when history takes
    /// events again.
    #[error(
        "the spool is full: {used_bytes} of {bytes_max} bytes wait for history; nothing was recorded; retry, and see why history takes no events"
    )]
    SpoolFull {
        /// Bytes of the spool that wait for history.
        used_bytes: u64,
        /// Bytes that may be in use.
        bytes_max: u64,
    },
    /// The backend cannot be reached now. Nothing was written.
    #[error("{backend} is unavailable: {reason}; nothing was written; retry")]
    Unavailable {
        /// Which backend, without credentials.
        backend: String,
        /// The reason, as the backend or the operating system reports it.
        reason: String,
    },
    /// The write may or may not be stored. Rows overwrite themselves, so writing them again is safe; after a
    /// conditional write read the row instead.
    #[error(
        "outcome unknown: {reason}; some rows may be written; write them again (rows of the same key overwrite themselves), or read the row of a conditional write"
    )]
    OutcomeUnknown {
        /// What came between the write and its answer.
        reason: String,
    },
    /// A file or a row of the store is damaged. The open or the call fails, and nothing of the damaged part is
    /// returned.
    #[error("damaged history: {place}: {problem}; {remedy}")]
    Damaged {
        /// The file, folder or table.
        place: String,
        /// What is wrong there.
        problem: String,
        /// How to go on, and what is lost by it.
        remedy: &'static str,
    },
    /// A newer version of this program has written the folder. Nothing of it was changed.
    #[error(
        "{path} has format {found}, and this version reads formats up to {known}; run the version that wrote it, or restore a copy from before the upgrade"
    )]
    NewerFormat {
        /// The folder.
        path: String,
        /// The number that its file `format` has.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// The folder of the store cannot be used.
    #[error("cannot use {path}: {problem}")]
    Folder {
        /// The folder or file.
        path: String,
        /// The error of the file system, or which process has the folder.
        problem: String,
    },
    /// A write or sync failed. The store takes no more writes until it is opened again.
    #[error("the history store stopped: {reason}; what was not acknowledged may be lost; open it again")]
    Stopped {
        /// The error after which it stopped.
        reason: String,
    },
    /// A defect of this library or of the store below. Nothing was written.
    #[error("internal error: {reason}; nothing was written; please report it")]
    Internal {
        /// What was not as it must be.
        reason: String,
    },
    /// The store was closed.
    #[error("the history store is closed")]
    Closed,
}

impl Error {
    pub(crate) fn invalid(what: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Invalid { what: what.into(), problem: problem.into() }
    }

    /// A table that the store was not opened with: a mistake of the program, not of a row.
    pub fn not_declared(table: &str) -> Error {
        Error::SchemaMismatch {
            table: table.to_owned(),
            problem: "it is not among the tables that the store was opened with".to_owned(),
            remedy: "add it to the `HistorySchema`",
        }
    }

    /// A stable word for logs, metrics and other programs.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Invalid { .. } => "invalid",
            Error::TooLarge { .. } => "too_large",
            Error::InvalidCursor { .. } => "invalid_cursor",
            Error::Corrupt { .. } => "corrupt",
            Error::NewerFormat { .. } => "newer_format",
            Error::SchemaMismatch { .. } => "schema_mismatch",
            Error::SourceClosed { .. } => "source_closed",
            Error::Overflow { .. } => "overflow",
            Error::Busy { .. } => "busy",
            Error::DiskFull { .. } => "disk_full",
            Error::SpoolFull { .. } => "spool_full",
            Error::Unavailable { .. } => "unavailable",
            Error::OutcomeUnknown { .. } => "outcome_unknown",
            Error::Damaged { .. } => "damaged",
            Error::Folder { .. } => "folder",
            Error::Stopped { .. } => "stopped",
            Error::Internal { .. } => "internal",
            Error::Closed => "closed",
        }
    }

    /// Whether the same call may succeed later without a repair.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Error::Busy { .. }
                | Error::DiskFull { .. }
                | Error::SpoolFull { .. }
                | Error::Unavailable { .. }
                | Error::OutcomeUnknown { .. }
        )
    }
}
