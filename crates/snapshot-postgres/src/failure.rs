//! What went wrong on the server or on the way to it, as errors of snapshots.

use emberkeep_snapshot::Error;
use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// Neither the words of the driver nor those of the server have the password.
pub(crate) fn failed(store: &str, error: &tokio_postgres::Error) -> Error {
    let store = store.to_owned();
    let Some(server) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let reason = error.to_string();
        let reason = if reason.ends_with(&cause) { reason } else { reason + &cause };
        return Error::Unavailable { store, reason };
    };
    let (code, reason) = (server.code(), server.message().to_owned());
    if [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code) {
        return Error::Full { store, reason };
    }
    match code.code().get(..2) {
        // Wrong credentials, a database that is not there, missing rights, a server that only reads.
        Some("28" | "3D" | "3F" | "25") => Error::Denied { store, reason },
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Error::Denied { store, reason },
        _ => Error::Unavailable { store, reason },
    }
}
