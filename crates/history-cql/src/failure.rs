//! Errors of the driver and the server as errors of history.

use emberkeep_history::Error;
use scylla::errors::{BadQuery, DbError, ExecutionError, PrepareError, RequestAttemptError};

const REMEDY: &str = "compare them with `emberkeep schema diff --history URL`";

/// What an error means for the request.
enum Meaning {
    /// It was not sent.
    NotSent(String),
    /// It may have had an effect.
    Unknown(String),
    /// The server has another schema.
    Refused(String),
    /// The user lacks a right.
    Forbidden(String),
}

/// What a failed write is for the caller: not sent, perhaps stored, or refused.
pub(crate) fn of_write(backend: &str, table: &str, error: &ExecutionError) -> Error {
    match meaning(error) {
        Meaning::NotSent(reason) => Error::Unavailable { backend: backend.to_owned(), reason },
        Meaning::Unknown(reason) => Error::OutcomeUnknown { reason: format!("{backend}: {reason}") },
        Meaning::Refused(problem) => mismatch(table, problem),
        Meaning::Forbidden(problem) => forbidden(table, problem),
    }
}

/// What a failed read is for the caller: a read without an answer can be repeated.
pub(crate) fn of_read(backend: &str, table: &str, error: &ExecutionError) -> Error {
    match meaning(error) {
        Meaning::NotSent(reason) | Meaning::Unknown(reason) => {
            Error::Unavailable { backend: backend.to_owned(), reason }
        }
        Meaning::Refused(problem) => mismatch(table, problem),
        Meaning::Forbidden(problem) => forbidden(table, problem),
    }
}

/// A statement could not be prepared; nothing was executed.
pub(crate) fn of_prepare(backend: &str, table: &str, error: PrepareError) -> Error {
    of_read(backend, table, &ExecutionError::PrepareError(error))
}

/// Whether a conditional write may have been applied.
pub(crate) fn is_unknown(error: &ExecutionError) -> bool {
    matches!(meaning(error), Meaning::Unknown(_))
}

fn mismatch(table: &str, problem: String) -> Error {
    Error::SchemaMismatch { table: table.to_owned(), problem, remedy: REMEDY }
}

fn forbidden(table: &str, problem: String) -> Error {
    // Not an error of the row: it can be written once the right is granted.
    let reason =
        format!("no permission for {table}: {problem}; grant the user SELECT and MODIFY on the keyspace");
    Error::Unavailable { backend: "the cluster".into(), reason }
}

fn meaning(error: &ExecutionError) -> Meaning {
    match error {
        ExecutionError::BadQuery(BadQuery::SerializationError(error)) => Meaning::Refused(error.to_string()),
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => {
            Meaning::NotSent(error.to_string())
        }
        ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt }) => {
            match of_attempt(first_attempt) {
                // To prepare changes nothing.
                Meaning::Unknown(reason) => Meaning::NotSent(reason),
                other => other,
            }
        }
        ExecutionError::PrepareError(error) => Meaning::NotSent(error.to_string()),
        ExecutionError::LastAttemptError(error) => of_attempt(error),
        error => Meaning::Unknown(error.to_string()),
    }
}

fn of_attempt(error: &RequestAttemptError) -> Meaning {
    match error {
        RequestAttemptError::DbError(
            DbError::Invalid | DbError::SyntaxError | DbError::ConfigError | DbError::ProtocolError,
            text,
        ) => Meaning::Refused(text.clone()),
        RequestAttemptError::DbError(DbError::Unauthorized, text) => Meaning::Forbidden(text.clone()),
        RequestAttemptError::SerializationError(error) => Meaning::Refused(error.to_string()),
        // An attempt before this one may have reached a node, so even "too few nodes" leaves doubt.
        error => Meaning::Unknown(error.to_string()),
    }
}
