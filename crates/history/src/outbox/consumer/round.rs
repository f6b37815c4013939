//! What a consumer does with the next entries of its log: it delivers, acknowledges and trims, or it moves them into its
//! spool.

use super::Consumer;
use crate::contract::Source;
use crate::delivery::{Delivered, Entry};
use crate::error::{Error, Result};
use crate::limits::{
    CLAIM_TRIES_MAX, DRAIN_PAGE_ENTRIES, DRAIN_PAGE_ENTRIES_MIN, READER_PAUSE, READER_WAIT_MAX,
};
use crate::logs::LogState;
use crate::outbox::claims;
use crate::outbox::error::DrainError;
use crate::outbox::log::Done;
use crate::outbox::plan::{self, Action, Owner, Run};
use crate::outbox::relay::{self, Relay};
use emberkeep_hot::store::LogPosition;
use futures_util::future::try_join_all;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A page may be twice as large after one that took less than this part of the time.
const PAGE_GROWS_BELOW: u32 = 4;

/// The entries after those that are done.
pub(super) struct Waiting {
    pub(super) entries: Vec<Entry>,
    last: u64,
    /// The incarnation that they continue. Empty = they begin one.
    present: String,
    /// The entry that they follow, if it is in the log.
    after: Option<(u64, u32)>,
    /// An entry that is done is not in the log, and must be: the log was set back.
    pub(super) set_back: Option<(u64, String)>,
}

/// An entry that is done.
struct Place {
    sequence: u64,
    mark: String,
    /// The incarnation that the entry after it continues. Empty = it begins one.
    present: String,
}

impl From<Done> for Place {
    fn from(done: Done) -> Place {
        Place { sequence: done.sequence, mark: format!("{:08x}", done.mark), present: String::new() }
    }
}

impl Waiting {
    pub(super) fn count(&self) -> u64 {
        self.entries.first().map_or(0, |first| self.last + 1 - first.sequence)
    }

    /// The entry that they follow. `None` = they are all that is in the log.
    fn stands(&self, is_spooled: bool) -> Option<Done> {
        let (sequence, mark) = self.after?;
        Some(Done { sequence, mark, is_spooled })
    }

    fn stands_at(&self, done: Done) -> bool {
        self.stands(done.is_spooled) == Some(done)
    }
}

impl Consumer {
    /// Delivers the next run of entries, or moves a page of them into the spool. `None` = nothing waits.
    pub(super) async fn pass(&self, epoch: i64) -> Result<Option<Delivered>, DrainError> {
        let Some(relay) = &self.relay else { return self.round(epoch).await };
        if relay.is_used() {
            return self.move_to_spool(relay, epoch).await;
        }
        // A round may end at any point: what it has claimed is in the spool then, under its claim.
        let begun = Instant::now();
        let error = match timeout(self.spool_after, self.round(epoch)).await {
            Ok(Err(DrainError::History(error))) if error.is_transient() => {
                if relay.history_is_away_for(Duration::ZERO) < self.spool_after {
                    return Err(error.into());
                }
                error
            }
            Ok(outcome) => {
                relay.history_answered();
                if outcome.is_ok() && begun.elapsed() < self.spool_after / PAGE_GROWS_BELOW {
                    self.size_page(|entries| entries * 2);
                }
                return outcome;
            }
            Err(_) => {
                // It may be slow, and not away: the next page that it gets directly has to fit into the time.
                self.size_page(|entries| entries / 4);
                relay.history_is_away_for(self.spool_after);
                let (backend, reason) =
                    (self.deliverer.history.store().name(), "it takes too long".to_owned());
                Error::Unavailable { backend, reason }
            }
        };
        let moved = self.move_to_spool(relay, epoch).await?;
        if moved.is_some() {
            tracing::warn!(log = %self.name, %error, "history is away; entries are moved into the spool");
        }
        moved.map(Some).ok_or(error.into())
    }

    fn size_page(&self, change: impl Fn(usize) -> usize) {
        let sized = |entries| Some(change(entries).clamp(DRAIN_PAGE_ENTRIES_MIN, DRAIN_PAGE_ENTRIES));
        let _ = self.page_entries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sized);
    }

    /// Moves the next page of the log into the spool. `None` = nothing waits.
    async fn move_to_spool(&self, relay: &Relay, epoch: i64) -> Result<Option<Delivered>, DrainError> {
        let done = self.lease.lock().done;
        let places: Vec<_> = relay.moved().into_iter().chain(done).collect();
        let of_done = places.iter().copied().map(Place::from).collect();
        let waiting = self.after(of_done, DRAIN_PAGE_ENTRIES).await?;
        self.lag.observe(waiting.last, waiting.count());
        if let Some(entry) = &waiting.set_back {
            self.report_set_back(entry, waiting.last);
        }
        if !waiting.entries.is_empty() {
            relay.store(&waiting.entries).await?;
            self.lag.observe(waiting.last, 0);
        }
        // What is not an entry cannot be compared; a later trim removes it.
        let last = waiting.entries.iter().rev().find(|entry| entry.event.is_ok());
        let last = last.map(|last| Done { sequence: last.sequence, mark: last.mark, is_spooled: true });
        if let Some(last) = last {
            self.trim(last, epoch).await?;
        } else if let Some(stands) = places.into_iter().find(|place| waiting.stands_at(*place)) {
            self.trim_again(stands, epoch).await?;
        }
        Ok((!waiting.entries.is_empty()).then(Delivered::default))
    }

    /// Delivers the next run of entries. `None` = nothing waits.
    async fn round(&self, epoch: i64) -> Result<Option<Delivered>, DrainError> {
        let history = &self.deliverer.history;
        let state = history.acknowledged(&self.name).await?;
        let done = self.lease.lock().done;
        let waiting = self.waiting(state.as_ref(), done).await?;
        self.lag.observe(waiting.last, waiting.count());
        if let Some(entry) = &waiting.set_back {
            self.report_set_back(entry, waiting.last);
        }
        let is_spooled = done.is_some_and(|done| done.is_spooled);
        let Some(first) = waiting.entries.first() else {
            if let Some(stands) = waiting.stands(is_spooled) {
                if done != Some(stands) {
                    // The consumer that acknowledged it may not have come to this.
                    history.sync().await?;
                }
                self.trim_again(stands, epoch).await?;
            }
            return Ok(None);
        };
        let run = self.claimed_run(&waiting, is_spooled).await?;
        let part = &waiting.entries[..run.len];
        let last = part.last().unwrap_or(first);
        let (delivered, next) = match self.deliver_run(&run, part).await {
            Ok(delivered) => (delivered, position(run.next, last)),
            // An incarnation that ended long ago: what it had claimed was stored before it was closed.
            Err(DrainError::History(Error::SourceClosed { .. })) if run.next.is_empty() => {
                (Delivered::default(), position(run.next, last))
            }
            Err(DrainError::History(Error::SourceClosed { name, .. })) => {
                self.alarm();
                tracing::error!(log = %self.name, source = name, "the source of an outbox was closed; it takes a new one");
                let state = state.clone().unwrap_or(LogState {
                    incarnation: String::new(),
                    sequence: 0,
                    mark: String::new(),
                });
                (Delivered::default(), LogState { incarnation: plan::closed(&run.incarnation), ..state })
            }
            Err(error) => return Err(error),
        };
        let acknowledged = next.sequence;
        if !history.advance(&self.name, state, next).await? {
            // Another consumer, paused or in another process, was here first. All of it was idempotent.
            return Ok(Some(Delivered::default()));
        }
        self.lag.observe(waiting.last, waiting.last - acknowledged.min(waiting.last));
        self.count_delivered(delivered);
        // What is not an entry cannot be compared; a later trim removes it.
        let entry = part.iter().rev().find(|entry| entry.event.is_ok());
        if let Some(Entry { sequence, mark, .. }) = entry.filter(|_| acknowledged == last.sequence) {
            // The log is the only other copy of these events, and its trim may reach the disk first.
            history.sync().await?;
            self.trim(Done { sequence: *sequence, mark: *mark, is_spooled }, epoch).await?;
        }
        Ok(Some(delivered))
    }

    async fn deliver_run(&self, run: &Run, part: &[Entry]) -> Result<Delivered, DrainError> {
        let (partition, key) = self.log.name();
        match run.action {
            Action::Skip => return Ok(Delivered::default()),
            Action::Wait => {
                return Err(DrainError::InOtherSpool { log: self.name.clone(), sequence: part[0].sequence });
            }
            Action::Deliver | Action::DeliverOwn => {}
        }
        let source = Source::of_log(partition, key, &run.incarnation);
        let delivered = self.deliverer.deliver(&self.name, &run.incarnation, &source, part).await?;
        if !run.is_new {
            // A part of the claim may be delivered now, and the rest by another consumer.
            let log = relay::Log { deliverer: &self.deliverer, name: &self.name, partition, key };
            log.mark_delivered(&run.incarnation, part).await?;
        }
        Ok(delivered)
    }

    /// What waits after the acknowledged entry and the one that the last holder noted.
    pub(super) async fn waiting(
        &self,
        state: Option<&LogState>,
        done: Option<Done>,
    ) -> Result<Waiting, DrainError> {
        let acknowledged = state.filter(|state| state.sequence > 0).map(|state| Place {
            sequence: state.sequence,
            mark: state.mark.clone(),
            present: state.incarnation.clone(),
        });
        let of_done = acknowledged.into_iter().chain(done.map(Place::from)).collect();
        let mut waiting = self.after(of_done, self.page_entries.load(Ordering::Relaxed)).await?;
        if waiting.after.is_none() && waiting.set_back.is_none() {
            // A position without an entry is that of a source that was closed at the beginning.
            waiting.present = state.map_or_else(String::new, |state| state.incarnation.clone());
        }
        Ok(waiting)
    }

    /// Reads the log from the latest of some entries that are done, which must be there: a trim leaves it. The earlier ones
    /// are there too while a reader of the log has not come as far.
    async fn after(&self, mut done: Vec<Place>, entries_max: usize) -> Result<Waiting, DrainError> {
        done.sort_by_key(|place| Reverse(place.sequence));
        let mut lost = None;
        for Place { sequence, mark, present } in done {
            let page = self.log.page(sequence.saturating_sub(1).into(), entries_max + 1).await?;
            let mut entries = page.entries.into_iter();
            let stands = |entry: &Entry| entry.sequence == sequence && mark_text(entry) == mark;
            if let Some(stood) = entries.next().filter(stands) {
                // Hot state lost a later entry that was done.
                let present = if lost.is_none() { present } else { String::new() };
                let mut entries: Vec<_> = entries.collect();
                if entries.is_empty() && page.last > sequence {
                    // An element of an external client may be too large to be read with the ones before it.
                    let stood = LogPosition { sequence, mark: Some(stood.mark) };
                    entries = self.log.page(stood, entries_max).await?.entries;
                }
                let after = Some((sequence, stood.mark));
                return Ok(Waiting { entries, last: page.last, present, after, set_back: lost });
            }
            lost.get_or_insert((sequence, mark));
        }
        let page = self.log.page(LogPosition::START, entries_max).await?;
        let (last, present) = (page.last, String::new());
        Ok(Waiting { entries: page.entries, last, present, after: None, set_back: lost })
    }

    /// The next run, with its entries claimed.
    async fn claimed_run(&self, waiting: &Waiting, is_spooled: bool) -> Result<Run> {
        let (history, first) = (&self.deliverer.history, waiting.entries[0].sequence);
        let in_slot = |entry: &&Entry| plan::slot(entry.sequence) == plan::slot(first);
        let entries = &waiting.entries[..waiting.entries.iter().take_while(in_slot).count()];
        let mut slot = claims::read(history, &self.name, first).await?;
        for _ in 0..CLAIM_TRIES_MAX {
            let run = plan::first_run(&waiting.present, entries, &slot.claims, is_spooled);
            if !run.is_new {
                return Ok(run);
            }
            let owner = Owner::Incarnation(run.incarnation.clone());
            let next = plan::with_claim(&slot.claims, owner, &entries[..run.len]);
            match claims::replace(history, &self.name, first, &slot, &next).await? {
                None => return Ok(run),
                Some(found) => slot = found,
            }
        }
        Err(relay::contended(&self.name))
    }

    fn alarm(&self) {
        self.lag.update(|stats| stats.alarms += 1);
    }

    /// Once for each entry that is not in the log.
    fn report_set_back(&self, entry: &(u64, String), last: u64) {
        let reported = self.lease.lock().reported.replace(entry.clone());
        if reported.as_ref() != Some(entry) {
            self.alarm();
            let drained = entry.0;
            tracing::error!(
                log = %self.name, drained, last,
                "the outbox was set back: the last entry that was drained is not in the log; a failover, a restore or a removal lost entries"
            );
        }
    }

    /// Trims through an entry that is done already: a trim failed, the holder before had no time for it, or a reader was
    /// behind.
    async fn trim_again(&self, done: Done, epoch: i64) -> Result<(), DrainError> {
        let is_needed = {
            let lease = self.lease.lock();
            !lease.is_trimmed || lease.done != Some(done)
        };
        if is_needed { self.trim(done, epoch).await } else { Ok(()) }
    }

    /// How far the other readers have come. One that does not say it may have read nothing: then nothing is trimmed, and the
    /// delivery goes on. For a moment none of them is asked again.
    async fn positions(&self) -> Vec<LogPosition> {
        let unknown = vec![LogPosition::START; self.readers.len()];
        if self.readers_failed_at.lock().is_some_and(|at| at.elapsed() < READER_PAUSE) {
            return unknown;
        }
        let positions = try_join_all(self.readers.iter().map(|reader| reader.position()));
        let reason = match timeout(READER_WAIT_MAX, positions).await {
            Ok(Ok(positions)) => return positions,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it takes too long".to_owned(),
        };
        *self.readers_failed_at.lock() = Some(Instant::now());
        self.lag.update(|stats| stats.errors += 1);
        tracing::warn!(log = %self.name, reason, "the log is not trimmed: one of its readers does not say how far it is");
        unknown
    }

    /// Notes what is done, and trims what all other readers have read too.
    async fn trim(&self, done: Done, epoch: i64) -> Result<(), DrainError> {
        let readers = self.positions().await;
        let is_complete = readers.iter().all(|position| position.sequence >= done.sequence);
        let is_held = self.log.trim(done, readers, epoch).await?;
        let mut lease = self.lease.lock();
        lease.is_trimmed = is_held && is_complete;
        if is_held {
            lease.done = Some(done);
        } else {
            lease.held = None;
        }
        Ok(())
    }
}

pub(in crate::outbox) fn mark_text(entry: &Entry) -> String {
    format!("{:08x}", entry.mark)
}

fn position(incarnation: String, last: &Entry) -> LogState {
    LogState { incarnation, sequence: last.sequence, mark: mark_text(last) }
}
