//! Writing everything that the store below has in memory to files, in bounded time.

use super::store_error;
use crate::error::{Error, Result};
use crate::limits::CLOSE_WAIT;
use fjall::{Database, Keyspace, PersistMode};
use std::time::{Duration, Instant};

/// Between two looks at what is left.
const POLL: Duration = Duration::from_millis(5);

/// Writes the memory of these keyspaces to files. The journal must be synced: it has everything if this fails.
///
/// The store below has a call that waits, but it waits for ever if its threads have failed.
pub(super) fn flush(database: &Database, keyspaces: &[Keyspace]) -> Result<()> {
    for keyspace in keyspaces {
        keyspace.rotate_memtable().map_err(|error| store_error(keyspace.name(), &error))?;
    }
    let begun = Instant::now();
    while keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0) {
        // An error if a thread of it has failed.
        database.persist(PersistMode::Buffer).map_err(|error| store_error("a flush", &error))?;
        if begun.elapsed() >= CLOSE_WAIT {
            let reason = format!("memory was not written to files within {CLOSE_WAIT:?}");
            return Err(Error::Stopped { reason });
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
