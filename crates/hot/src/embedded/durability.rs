//! What the engine tells its journal, and what it waits for.
//!
//! With [`Durability::Always`] nothing leaves the engine before it is on disk: a transaction's caller waits for its
//! number, messages are handed out by the journal after the sync, and readers wait for whatever was appended when
//! they read. Otherwise messages go out under the locks of their transaction and nobody waits: what was appended survives the
//! death of the process already.

use super::Inner;
use super::apply::apply;
use super::options::Options;
use crate::command::{Effects, RawKey, Write, wrong_type};
use crate::engine::{Lsn, Pending};
use crate::error::Result;
use crate::journal::{Delivery, Durability, Journal, JournalOptions, Recovery};

/// A journal with what the engine asks at every commit.
pub(super) struct Persistence {
    journal: Journal,
    /// Whether callers wait for the disk.
    always: bool,
    pub(super) recovery: Recovery,
}

impl Persistence {
    /// Loads the folder into the engine, and begins to write.
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

/// Applies a write of the past. Keys that have ended stay until the sweep finds them: it tells the journal.
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

    /// Hands a commit to the journal, its messages too if they must wait for the disk.
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
        let (messages, channels) = (std::mem::take(&mut effects.messages), self.channels.clone());
        vec![Box::new(move || {
            for (channel, payload) in &messages {
                channels.publish(channel, payload);
            }
        })]
    }

    /// Hands out the messages that did not go to the journal.
    pub(super) fn deliver(&self, effects: &Effects) {
        for (channel, payload) in &effects.messages {
            self.channels.publish(channel, payload);
        }
    }

    /// Appends the DELs of keys that are about to be swept. After an error they must stay in memory: a full disk
    /// resumes, and a later write of such a key would then be merged into what the file still holds.
    pub(super) fn append_deletes(&self, deletes: impl FnOnce() -> Vec<(RawKey, Write)>) -> Result<()> {
        self.journal().map_or(Ok(()), |journal| journal.append(&deletes(), Vec::new()).map(drop))
    }

    /// What somebody who has read must wait for before telling anybody.
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
        self.journal().is_some_and(Journal::wants_rewrite)
    }
}
