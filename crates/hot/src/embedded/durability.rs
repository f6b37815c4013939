//! Durability: what the engine appends to its journal, and who waits for the disk.
//!
//! With [`Durability::Always`] nothing leaves the engine before it is on disk: a transaction's caller waits
//! for its LSN, the journal delivers messages after the sync, and readers wait for everything that was
//! appended when they read. In the other modes messages are delivered under the locks of the transaction and
//! no caller waits: appended writes already survive the death of the process.

use super::Inner;
use super::apply::apply;
use super::options::Options;
use crate::command::{Effects, RawKey, Write, wrong_type};
use crate::engine::{Lsn, Pending};
use crate::error::Result;
use crate::journal::{Delivery, Durability, Journal, JournalOptions, Recovery};

/// A journal and the settings that every commit needs.
pub(super) struct Persistence {
    journal: Journal,
    /// Whether callers wait for the disk.
    always: bool,
    pub(super) recovery: Recovery,
}

impl Persistence {
    /// Loads the folder into the engine and opens the journal for writing.
    pub(super) fn open(options: &Options, inner: &Inner) -> Result<Option<Persistence>> {
        let Some(dir) = options.data.clone() else { return Ok(None) };
        let journal = JournalOptions {
            durability: options.durability,
            files: options.files.clone(),
            cut_damage: options.cut_damage,
            rewrite_bytes_min: options.rewrite_bytes_min,
            ..JournalOptions::new(dir)
        };
        let (journal, recovery) = Journal::open(journal, &mut |key, write| load(inner, key, write))?;
        Ok(Some(Persistence { journal, always: options.durability == Durability::Always, recovery }))
    }
}

/// Applies a write of the journal. Expired keys stay until the sweep finds them and appends their DELs.
fn load(inner: &Inner, key: RawKey, write: Write) -> Result<()> {
    let hashed = inner.hash(&key);
    let mut shard = inner.shards[hashed.shard()].lock();
    apply(&mut shard, hashed, &key, &write, &mut Vec::new())
        .map_err(|refused| wrong_type(&key, refused.expected, refused.found))
}

impl Inner {
    pub(super) fn journal(&self) -> Option<&Journal> {
        self.persistence.get().map(|persistence| &persistence.journal)
    }

    fn always(&self) -> Option<&Journal> {
        self.persistence.get().filter(|persistence| persistence.always).map(|p| &p.journal)
    }

    /// Appends a commit to the journal, with its messages if they must wait for the disk.
    pub(super) fn append(&self, effects: &mut Effects) -> Result<Lsn> {
        let Some(persistence) = self.persistence.get() else { return Ok(Lsn(0)) };
        if !persistence.always {
            if !effects.writes.is_empty() {
                persistence.journal.append(&effects.writes, Vec::new())?;
            }
            return Ok(Lsn(0));
        }
        let deliveries = self.deliveries(effects);
        persistence.journal.append(&effects.writes, deliveries).map(Lsn)
    }

    fn deliveries(&self, effects: &mut Effects) -> Vec<Delivery> {
        if effects.messages.is_empty() {
            return Vec::new();
        }
        let (messages, channels) = (std::mem::take(&mut effects.messages), self.pubsub.clone());
        vec![Box::new(move || {
            for (channel, payload) in &messages {
                channels.publish(channel, payload);
            }
        })]
    }

    /// Delivers the messages that did not go to the journal.
    pub(super) fn deliver(&self, effects: &Effects) {
        for (channel, payload) in &effects.messages {
            self.pubsub.publish(channel, payload);
        }
    }

    /// Appends the DELs of expired keys before they are removed. After an error the keys must stay in
    /// memory: a full disk resumes, and on the next load a later write of such a key would be merged into
    /// its old value.
    pub(super) fn append_deletes(&self, deletes: impl FnOnce() -> Vec<(RawKey, Write)>) -> Result<()> {
        self.journal().map_or(Ok(()), |journal| journal.append(&deletes(), Vec::new()).map(drop))
    }

    /// The LSN that a reader must wait for before its result may leave the engine.
    #[inline]
    pub(super) fn read_lsn(&self) -> Lsn {
        match self.always() {
            Some(journal) => {
                let appended = journal.appended();
                Lsn(if journal.synced() >= appended { 0 } else { appended })
            }
            None => Lsn(0),
        }
    }

    pub(super) fn wait_durable(&self, lsn: Lsn) -> Pending<'_, Result<()>> {
        match self.journal() {
            Some(journal) if lsn.0 > 0 => Box::pin(journal.wait_durable(lsn.0)),
            _ => Box::pin(std::future::ready(Ok(()))),
        }
    }

    pub(super) fn wants_rewrite(&self) -> bool {
        self.journal().is_some_and(Journal::wants_rewrite) && self.copying.try_lock().is_ok()
    }
}
