//! Dead letters: entries that cannot be stored as what they are.
//!
//! A letter is written before anything behind its entry is stored, and an entry that has one is left out when it comes
//! again. So an entry either counts or has a letter, wherever a delivery ends.

use super::batch::Rejection;
use super::deliver::{Deliverer, Entry};
use crate::error::Result;
use crate::limits::{BATCH_BYTES_MAX, PAGE_ROWS_MAX, REASON_BYTES_MAX, SPOOL_EVENT_BYTES_MAX};
use crate::log_tables::DeadLetter;
use crate::logs::{SPOOL_LOGS, SPOOLS_LOG};
use emberkeep_schema::Timestamp;

/// Dead letters that are stored together: with the largest entries they fit into a call.
const LETTERS_PER_CALL: usize = 32;
const _: () = assert!(LETTERS_PER_CALL * (SPOOL_EVENT_BYTES_MAX + 2 * REASON_BYTES_MAX) < BATCH_BYTES_MAX);

/// An entry that has a letter.
pub(super) struct Lettered {
    sequence: i64,
    bytes: Vec<u8>,
}

impl Lettered {
    /// The bytes are compared too: in a spool a log that was set back has its sequences again.
    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        self.sequence == entry.sequence as i64 && self.bytes == shown(entry)
    }
}

/// What a letter has of an entry. What is not an entry may be of any length, and its beginning is enough.
fn shown(entry: &Entry) -> &[u8] {
    let bytes = entry.bytes();
    &bytes[..bytes.len().min(SPOOL_EVENT_BYTES_MAX)]
}

impl Deliverer {
    /// The letters of entries that came before.
    pub(super) async fn lettered(
        &self,
        log: &str,
        incarnation: &str,
        entries: &[Entry],
    ) -> Result<Vec<Lettered>> {
        let sequences = || entries.iter().map(|entry| entry.sequence as i64);
        let (Some(first), Some(last)) = (sequences().min(), sequences().max()) else { return Ok(Vec::new()) };
        let query = self.history.range(DeadLetter::partition(log.to_owned()));
        let query = query.between(first..=last).rows_max(PAGE_ROWS_MAX);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = query.page(after.as_ref()).await?;
            after = page.next.clone();
            let letters = page.into_rows()?.into_iter().filter(|letter| letter.incarnation == incarnation);
            found.extend(
                letters.map(|DeadLetter { sequence, entry, .. }| Lettered { sequence, bytes: entry }),
            );
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    pub(super) async fn put_letters(
        &self,
        log: &str,
        incarnation: &str,
        dead: &[(&Entry, Rejection)],
    ) -> Result<()> {
        // First, so that every letter is listed.
        if !dead.is_empty() && log.starts_with(SPOOL_LOGS) {
            self.history.upsert(self.letter_of_spool(log, incarnation)).await?;
        }
        for chunk in dead.chunks(LETTERS_PER_CALL) {
            let letters =
                chunk.iter().map(|(entry, rejection)| self.letter(log, incarnation, entry, rejection));
            self.history.upsert_many(letters.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// Says that a spool has letters.
    fn letter_of_spool(&self, log: &str, incarnation: &str) -> DeadLetter {
        DeadLetter {
            log: SPOOLS_LOG.to_owned(),
            sequence: 0,
            incarnation: incarnation.to_owned(),
            reason: format!("the dead letters of this spool are those of the log {log}"),
            entry: Vec::new(),
            at: Timestamp(self.history.store().now()),
        }
    }

    fn letter(&self, log: &str, incarnation: &str, entry: &Entry, rejection: &Rejection) -> DeadLetter {
        let mut reason = rejection.reason().to_owned();
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        DeadLetter {
            log: log.to_owned(),
            sequence: entry.sequence as i64,
            incarnation: incarnation.to_owned(),
            reason,
            entry: shown(entry).to_vec(),
            at: Timestamp(self.history.store().now()),
        }
    }
}
