//! The partition log outside a transaction: read it, trim it. See [`crate::tx`] for writing.

use super::Scope;
use crate::command::{Read, Write};
use crate::error::{Error, Result};
use crate::tx::log::{LogPage, first_sequence, log_keys};
use emberkeep_schema::Partition;

impl<P: Partition> Scope<P> {
    /// Up to `limit` entries after a sequence (0 = from the start), in a transaction of its own.
    pub async fn log_after(&self, sequence: u64, limit: usize) -> Result<LogPage> {
        self.transact(move |tx| tx.log_after(sequence, limit)).await
    }

    /// Removes entries up to and including a sequence, after a consumer has stored them elsewhere.
    pub async fn log_trim(&self, through: u64) -> Result<()> {
        let (list, _) = log_keys(&self.store.layout, &self.text);
        self.transact(move |tx| {
            let Some(first) = first_sequence(tx, &list)? else { return Ok(()) };
            if through >= first {
                let gone = i64::try_from(through - first).unwrap_or(i64::MAX).saturating_add(1);
                tx.raw_write(list.clone(), Write::LTrim(gone, -1))?;
            }
            Ok::<_, Error>(())
        })
        .await
    }

    /// The same scope. Its transactions prefetch the log's last sequence, see [`Scope::prefetch`].
    pub fn prefetch_log(mut self) -> Self {
        let (_, counter) = log_keys(&self.store.layout, &self.text);
        self.prefetched.push((counter, Read::Get));
        self
    }
}
