//! Recording for servers that compute damage themselves: hits and deltas of statistics, through a durable local spool.
//!
//! 1. A call returns when its events are as safe as the spool's mode promises, whether or not history can be reached.
//! 2. What was recorded reaches history once, also after a crash: it counts by the spool's source and position.
//! 3. An event is recorded once per id: a recorder recognises the last 131,072 ids of its process, also those of calls
//!    that a caller stopped waiting for. A caller that repeats a call after a restart of the recorder may count twice; a
//!    transaction of hot state has no such gap.
//! 4. An event takes one way only. Damage that was applied through hot state is recorded there.

mod hit_type_text;
mod project;
mod recent_ids;
mod record;

pub use project::project_hit;
pub use record::{HitRecord, Record, StatsDelta};

use super::Answer;
use super::error::{Error, Result};
use super::limits::{RECENT_IDS_MAX, RECORD_EVENTS_MAX};
use emberkeep_history::embedded::Ticker;
use emberkeep_history::spool::{self, Spool, SpoolConsumer, SpoolMode, SpoolOptions, SpoolStats};
use emberkeep_history::{Clock, History};
use emberkeep_schema::{Json, Timestamp};
use project::project;
use recent_ids::RecentIds;
use record::{check_delta, check_hit, check_time};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Events that were recorded.
    pub recorded: usize,
    /// Events that had been recorded before.
    pub repeated: usize,
    /// How safe they are.
    pub mode: SpoolMode,
}

/// Takes events into a spool. Cheap to clone. A [`consumer`](Self::consumer) brings them into history.
#[derive(Clone)]
pub struct Recorder {
    spool: Spool<Json<Record>>,
    mode: SpoolMode,
    recent: Arc<Mutex<Recent>>,
    clock: Arc<Ticker>,
}

/// What was appended, whether or not its caller has waited until it was safe.
struct Recent {
    ids: RecentIds,
    last: Option<spool::Recorded>,
}

impl Recorder {
    /// A recorder with its spool in a folder.
    pub fn open(folder: impl AsRef<Path>, options: SpoolOptions) -> Result<Recorder> {
        let mode = options.mode;
        let recent = Recent { ids: RecentIds::new(RECENT_IDS_MAX), last: None };
        let (spool, recent) = (Spool::open(folder, options)?, Arc::new(Mutex::new(recent)));
        Ok(Recorder { spool, mode, recent, clock: Arc::default() })
    }

    /// The same with another clock: events more than a day after its time are refused.
    pub fn with_clock(self, clock: Clock) -> Recorder {
        Recorder { clock: Arc::new(Ticker::new(clock)), ..self }
    }

    /// Delivers what was recorded into a history; a recorder needs one that runs.
    pub fn consumer(&self, history: History) -> SpoolConsumer {
        SpoolConsumer::new(&self.spool, history, project)
    }

    /// How much waits for history.
    pub fn stats(&self) -> SpoolStats {
        self.spool.stats()
    }

    /// Records hits, at most 1,000 in a call: all of them or none.
    pub fn record_events(&self, hits: Vec<HitRecord>) -> Answer<'_, Recorded> {
        Box::pin(async move {
            if hits.len() > RECORD_EVENTS_MAX {
                let problem = format!("{}, at most {RECORD_EVENTS_MAX} are allowed in a call", hits.len());
                return Err(Error::invalid("number of events", problem));
            }
            let now = self.clock.now();
            hits.iter().try_for_each(|hit| check_hit(hit, now))?;
            self.record(hits.into_iter().map(|hit| (hit.event_id, Record::Hit(hit))).collect()).await
        })
    }

    /// Adds to the statistics of a player, once per event id.
    pub fn record_stats(
        &self,
        player_id: i64,
        delta: StatsDelta,
        event_id: Uuid,
        at: Timestamp,
    ) -> Answer<'_, Recorded> {
        Box::pin(async move {
            check_time(at, self.clock.now())?;
            check_delta(delta)?;
            self.record(vec![(event_id, Record::Stats(player_id, at.0, delta))]).await
        })
    }

    /// Ids are remembered as soon as their events are in the spool, so that a caller that stops waiting can repeat the
    /// call. A repeated call waits, too: its events may not be safe yet.
    async fn record(&self, records: Vec<(Uuid, Record)>) -> Result<Recorded> {
        let count = records.len();
        let (recorded, last) = self.append(records)?;
        if let Some(last) = last {
            self.spool.wait_safe(&last).await?;
        }
        Ok(Recorded { recorded, repeated: count - recorded, mode: self.mode })
    }

    /// How many of them are new, and the last that was ever appended.
    fn append(&self, records: Vec<(Uuid, Record)>) -> Result<(usize, Option<spool::Recorded>)> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        let mut is_new = |id: &Uuid| !recent.ids.contains(id) && seen.insert(*id);
        let (ids, new): (Vec<_>, Vec<_>) = records.into_iter().filter(|(id, _)| is_new(id)).unzip();
        if !new.is_empty() {
            recent.last = Some(self.spool.append_events(&new)?);
            ids.into_iter().for_each(|id| recent.ids.insert(id));
        }
        Ok((new.len(), recent.last.clone()))
    }

    /// Syncs and closes the spool. What was not delivered waits for the next opening.
    pub fn close(&self) -> Result<()> {
        Ok(self.spool.close()?)
    }
}
