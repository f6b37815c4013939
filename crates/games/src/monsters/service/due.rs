//! Due work: found in a due queue, done in bounded transactions, handed to one caller.

use super::*;
use crate::monsters::limits::{DUE_PER_CALL_MAX, MONSTERS_PER_TRANSACTION};

/// What a caller was handed.
#[derive(Clone, Debug, PartialEq)]
pub struct Due<T> {
    /// The due work, the longest overdue first. No other caller gets it.
    pub done: Vec<T>,
    /// Errors for corrupt records, each with its key. The records are unchanged, and are not examined again
    /// until a sweep finds them readable.
    pub corrupt: Vec<hot::Error>,
    /// Why the call stopped before its limit. Call again for the rest. It is not an `Err`, because `done`
    /// must not be lost.
    pub stopped: Option<hot::Error>,
}

impl<T> Default for Due<T> {
    fn default() -> Due<T> {
        Due { done: Vec::new(), corrupt: Vec::new(), stopped: None }
    }
}

/// The result of one transaction.
pub(super) struct DueBatch<T> {
    /// What this transaction handed out, and what it could not read.
    pub(super) due: Due<T>,
    /// Entries of the due queue that it handled. Each of them is removed or postponed, so the loop ends.
    pub(super) count: usize,
}

impl<T> Default for DueBatch<T> {
    fn default() -> DueBatch<T> {
        DueBatch { due: Due::default(), count: 0 }
    }
}

/// Runs transactions until `limit` entries (at most [`DUE_PER_CALL_MAX`]) were handled or nothing more is
/// due.
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
