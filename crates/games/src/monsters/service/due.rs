//! Work that is due: found by an index, done in bounded transactions, handed to one caller.

use super::*;
use crate::monsters::limits::{DUE_PER_CALL_MAX, MONSTERS_PER_TRANSACTION};

/// What a caller was handed.
#[derive(Clone, Debug, PartialEq)]
pub struct Due<T> {
    /// What was due, the longest overdue first. Nobody else gets it.
    pub done: Vec<T>,
    /// Records that could not be read, each error with its key. They are left as they are and not batch at again
    /// until a sweep finds them mended.
    pub corrupt: Vec<hot::Error>,
    /// What kept the call from going on after it had handed out these: call again for the rest. Nobody else is told of
    /// what was handed out, so that must not be lost in an error.
    pub stopped: Option<hot::Error>,
}

impl<T> Default for Due<T> {
    fn default() -> Due<T> {
        Due { done: Vec::new(), corrupt: Vec::new(), stopped: None }
    }
}

/// What one transaction came to.
pub(super) struct DueBatch<T> {
    /// What it hands out.
    pub(super) due: Due<T>,
    /// Entries of the index that it dealt with. Each is over or has a later time afterwards, so transactions come to an end.
    pub(super) count: usize,
}

impl<T> Default for DueBatch<T> {
    fn default() -> DueBatch<T> {
        DueBatch { due: Due::default(), count: 0 }
    }
}

/// Runs transactions until `limit` entries (and [`DUE_PER_CALL_MAX`]) were dealt with or nothing more is due.
pub(super) async fn in_transactions<T: Send + 'static>(
    scope: Scope<Tenant>,
    limit: usize,
    transaction: impl Fn(&mut Tx<'_, Tenant>, usize) -> hot::Result<DueBatch<T>> + Copy + Send + 'static,
) -> Result<Due<T>> {
    let (mut all, mut left) = (Due::default(), limit.min(DUE_PER_CALL_MAX));
    while left > 0 {
        let wanted = left.min(MONSTERS_PER_TRANSACTION);
        match scope.transact(move |tx| transaction(tx, wanted)).await {
            Ok(batch) => {
                all.done.extend(batch.due.done);
                all.corrupt.extend(batch.due.corrupt);
                left -= batch.count.min(left);
                if batch.count < wanted {
                    break;
                }
            }
            Err(error) if all.done.is_empty() && all.corrupt.is_empty() => return Err(error.into()),
            Err(error) => {
                all.stopped = Some(error);
                break;
            }
        }
    }
    Ok(all)
}
