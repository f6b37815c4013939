//! Entries that wait in a local spool while history is away, so that hot state does not have to hold them.
//!
//! Moving needs no history: a page of the log is written to the spool and synced, then the log is trimmed. Between the two
//! the page is in both, and another process may move it, too. Which of the copies counts is decided when they are
//! delivered, by the claims of the entries (`plan.rs`).

use super::claims;
use super::consumer::mark_text;
use super::error::DrainError;
use super::log::Done;
use super::plan::{self, Action, Owner, Run};
use crate::contract::Source;
use crate::delivery::{Delivered, Deliverer, Entry};
use crate::error::{Error, Result};
use crate::limits::CLAIM_TRIES_MAX;
use crate::logs::LogState;
use crate::spool::{Handle, Page, SpoolMode, SpoolOptions, folder_error, has_segments};
use bytes::Bytes;
use emberkeep_schema::Timestamp;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The spool of a consumer.
pub(super) struct Relay {
    spool: Handle,
    folder: PathBuf,
    state: Mutex<RelayState>,
}

#[derive(Default)]
struct RelayState {
    /// Since when history does not answer.
    away_since: Option<Instant>,
    /// Since when entries are in the spool.
    used_since: Option<Instant>,
    /// The last entry that was moved. It may still be in the log.
    moved: Option<Done>,
}

impl Relay {
    /// Opens the spool of a log in a folder of spools. What a former process left there is delivered.
    pub(super) fn open(folder: &Path, log: &str, bytes_max: u64) -> Result<Relay> {
        let folder = folder.join(folder_name(log));
        let options = SpoolOptions { mode: SpoolMode::Always, bytes_max, ..SpoolOptions::default() };
        let spool = Handle::open(&folder, options)?;
        Ok(Relay { spool, folder, state: Mutex::default() })
    }

    /// Opens the spool of a log if a former process left entries in it. Nothing is made if there is none.
    pub(super) fn open_left(folder: &Path, log: &str, bytes_max: u64) -> Result<Option<Relay>> {
        let of_log = folder.join(folder_name(log));
        let is_left = of_log.is_dir() && has_segments(&of_log)?;
        is_left.then(|| Relay::open(folder, log, bytes_max)).transpose()
    }

    /// When the oldest of its entries happened, by its projection.
    pub(super) fn oldest(&self, deliverer: &Deliverer) -> Result<Option<Timestamp>> {
        let Some(page) = self.spool.page()? else { return Ok(None) };
        Ok(self.entries(&page)?.first().and_then(|first| deliverer.time_of(first)))
    }

    /// Whether it has entries: then those behind them are moved, too.
    pub(super) fn is_used(&self) -> bool {
        let is_used = self.spool.stats().waiting > 0;
        let mut state = self.state.lock();
        state.used_since = is_used.then(|| state.used_since.unwrap_or_else(Instant::now));
        is_used
    }

    /// Entries, bytes, and how long entries have been in it.
    pub(super) fn usage(&self) -> (u64, u64, Duration) {
        let stats = self.spool.stats();
        let since = self.state.lock().used_since.filter(|_| stats.waiting > 0);
        (stats.waiting, stats.used_bytes, since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    pub(super) fn history_answered(&self) {
        self.state.lock().away_since = None;
    }

    /// History did not answer, and was waited for. Returns how long it has been away.
    pub(super) fn history_is_away_for(&self, waited: Duration) -> Duration {
        let now = Instant::now();
        let begun = now.checked_sub(waited).unwrap_or(now);
        self.state.lock().away_since.get_or_insert(begun).elapsed()
    }

    pub(super) fn moved(&self) -> Option<Done> {
        self.state.lock().moved
    }

    /// Writes entries to the spool, all or none. They are on disk when this returns.
    pub(super) async fn store(&self, entries: &[Entry]) -> Result<()> {
        let records: Vec<_> = entries.iter().map(encode).collect();
        self.spool.record(&records).await?;
        self.state.lock().used_since.get_or_insert_with(Instant::now);
        if let Some(Entry { sequence, mark, .. }) = entries.last() {
            self.state.lock().moved = Some(Done { sequence: *sequence, mark: *mark, is_spooled: true });
        }
        Ok(())
    }

    /// Waits until entries are written to the spool.
    pub(super) async fn stored(&self) {
        self.spool.recorded.notified().await;
    }

    /// Delivers the next page of the spool. `None` = it is empty.
    pub(super) async fn deliver(&self, log: &Log<'_>) -> Result<Option<Delivered>, DrainError> {
        let history = &log.deliverer.history;
        let _alone = self.spool.delivering.lock().await;
        let Some(page) = self.spool.page()? else { return Ok(None) };
        let name = format!("spool/{}", page.source);
        let state = history.acknowledged(&name).await?;
        let reached = state.as_ref().map_or(0, |state| state.sequence);
        let mut entries = self.entries(&page)?;
        entries.retain(|entry| entry.position > reached);
        let (mut rest, mut delivered) = (&entries[..], Delivered::default());
        while !rest.is_empty() {
            let (len, stored) = log.deliver_run(&page.source, rest).await?;
            delivered.entries += stored.entries;
            delivered.dead_letters += stored.dead_letters;
            delivered.overwritten += stored.overwritten;
            rest = &rest[len..];
        }
        if let Some(last) = entries.last() {
            let next =
                LogState { incarnation: page.source.clone(), sequence: last.position, mark: mark_text(last) };
            // A copy of the folder may have been first: it delivers the same.
            history.advance(&name, state, next).await?;
        }
        // The segment is the only other copy of these entries.
        history.sync().await?;
        self.spool.acknowledge(&page)?;
        Ok(Some(delivered))
    }

    fn entries(&self, page: &Page) -> Result<Vec<Entry>> {
        let damaged = || Error::Damaged {
            place: self.folder.display().to_string(),
            problem: "a record is not an entry of a log; another kind of spool wrote it".into(),
            remedy: "move the file away: its events are then not delivered",
        };
        page.events.iter().map(|(position, bytes)| decode(*position, bytes).ok_or_else(damaged)).collect()
    }
}

/// The log whose entries a spool has.
pub(super) struct Log<'l> {
    pub(super) deliverer: &'l Deliverer,
    /// The name of the log: its partition and key.
    pub(super) name: &'l str,
    pub(super) partition: &'l str,
    pub(super) key: &'l str,
}

impl Log<'_> {
    /// Delivers the first run of some entries of a spool. Returns its length.
    async fn deliver_run(&self, spool: &str, entries: &[Entry]) -> Result<(usize, Delivered), DrainError> {
        let run = self.claimed_run(spool, entries).await?;
        let part = &entries[..run.len];
        let delivered = match run.action {
            Action::Skip => Delivered::default(),
            Action::Wait => {
                return Err(DrainError::InOtherSpool {
                    log: self.name.to_owned(),
                    sequence: part[0].sequence,
                });
            }
            Action::DeliverOwn => {
                let name = spool.replace('-', "");
                let source = Source::of_log(self.partition, self.key, &name);
                self.deliverer.deliver(self.name, &name, &source, part).await?
            }
            Action::Deliver => self.deliver_under(&run, part).await?,
        };
        Ok((run.len, delivered))
    }

    /// Delivers entries that consumers have claimed, which read the log before they were moved.
    async fn deliver_under(&self, run: &Run, part: &[Entry]) -> Result<Delivered> {
        let in_log = |entry: &Entry| Entry { position: entry.sequence, ..entry.clone() };
        let part: Vec<_> = part.iter().map(in_log).collect();
        let source = Source::of_log(self.partition, self.key, &run.incarnation);
        let delivered = match self.deliverer.deliver(self.name, &run.incarnation, &source, &part).await {
            // What it had claimed was stored before it was closed.
            Err(Error::SourceClosed { .. }) => Delivered::default(),
            delivered => delivered?,
        };
        self.mark_delivered(&run.incarnation, &part).await?;
        Ok(delivered)
    }

    /// Notes up to where an incarnation was delivered, for those who have later entries of it.
    pub(super) async fn mark_delivered(&self, incarnation: &str, part: &[Entry]) -> Result<()> {
        let (history, last) = (&self.deliverer.history, &part[part.len() - 1]);
        let mut slot = claims::read(history, self.name, last.sequence).await?;
        for _ in 0..CLAIM_TRIES_MAX {
            let next = plan::with_delivered(&slot.claims, incarnation, last);
            if next == slot.claims {
                return Ok(());
            }
            match claims::replace(history, self.name, last.sequence, &slot, &next).await? {
                None => return Ok(()),
                Some(found) => slot = found,
            }
        }
        Err(contended(self.name))
    }

    async fn claimed_run(&self, spool: &str, entries: &[Entry]) -> Result<Run> {
        let (history, first) = (&self.deliverer.history, &entries[0]);
        let state = history.acknowledged(self.name).await?;
        let acknowledged = state.as_ref().map(|state| (state.incarnation.as_str(), state.sequence));
        let mut slot = claims::read(history, self.name, first.sequence).await?;
        for _ in 0..CLAIM_TRIES_MAX {
            let run = plan::spooled_run(spool, entries, &slot.claims, acknowledged);
            if !run.is_new {
                return Ok(run);
            }
            let owner = Owner::Spool { source: spool.to_owned(), position: first.position };
            let next = plan::with_claim(&slot.claims, owner, &entries[..run.len]);
            match claims::replace(history, self.name, first.sequence, &slot, &next).await? {
                None => return Ok(run),
                Some(found) => slot = found,
            }
        }
        Err(contended(self.name))
    }
}

/// Other consumers changed the claims each time. The next round tries again.
pub(super) fn contended(log: &str) -> Error {
    Error::OutcomeUnknown { reason: format!("other consumers changed the claims of {log} each time") }
}

/// Folders in a folder of spools that have segments and are of none of these logs.
pub(super) fn spools_of_others<'l>(
    folder: &Path,
    logs: impl Iterator<Item = &'l str>,
) -> Result<Vec<PathBuf>> {
    let names: Vec<_> = logs.map(folder_name).collect();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| folder_error(folder, error))?,
    };
    let mut others = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| folder_error(folder, error))?;
        let is_other = !names.iter().any(|name| entry.file_name().to_str() == Some(name));
        if is_other && entry.path().is_dir() && has_segments(&entry.path())? {
            others.push(entry.path());
        }
    }
    Ok(others)
}

/// A folder for a log: its name as far as a file may have it, and a checksum of all of it.
fn folder_name(log: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = log.chars().map(plain).take(FOLDER_NAME_CHARS_MAX).collect();
    format!("{name}-{:016x}", xxhash_rust::xxh3::xxh3_64(log.as_bytes()))
}

const FOLDER_NAME_CHARS_MAX: usize = 100;

/// Sequence, mark, whether it is an entry, and its bytes.
fn encode(entry: &Entry) -> Vec<u8> {
    let bytes = entry.bytes();
    // What is not an entry may be of any length. Its beginning is enough for a dead letter.
    let bytes = &bytes[..bytes.len().min(emberkeep_hot::limits::LOG_ENTRY_BYTES_MAX)];
    let mut record = Vec::with_capacity(13 + bytes.len());
    record.extend(entry.sequence.to_be_bytes());
    record.extend(entry.mark.to_be_bytes());
    record.push(u8::from(entry.event.is_ok()));
    record.extend(bytes);
    record
}

fn decode(position: u64, record: &Bytes) -> Option<Entry> {
    let (sequence, rest) = record.split_first_chunk::<8>()?;
    let (mark, rest) = rest.split_first_chunk::<4>()?;
    let (is_entry, _) = rest.split_first()?;
    let bytes = record.slice(13..);
    let event = match is_entry {
        0 => Err(bytes),
        1 => Ok(bytes),
        _ => return None,
    };
    let (sequence, mark) = (u64::from_be_bytes(*sequence), u32::from_be_bytes(*mark));
    Some(Entry { sequence, position, mark, event })
}
