//! Recording for servers that compute damage themselves: hits and deltas of statistics, through a durable local spool.
//!
//! 1. A call returns when its events are as safe as the spool's mode promises, whether or not history can be reached.
//! 2. What was recorded reaches history once, also after a crash: it counts by the spool's source and position.
//! 3. An event is recorded once per id: a recorder recognises the last 131,072 ids of its process. A caller that repeats a
//!    call after a restart of the recorder may count twice; a transaction of hot state has no such gap.
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
use emberkeep_history::History;
use emberkeep_history::spool::{Spool, SpoolConsumer, SpoolMode, SpoolOptions, SpoolStats};
use emberkeep_schema::{Json, Timestamp};
use project::project;
use recent_ids::RecentIds;
use record::{check_delta, check_hit, check_time};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;
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
    recent: Arc<Mutex<RecentIds>>,
}

impl Recorder {
    /// A recorder with its spool in a folder.
    pub fn open(folder: impl AsRef<Path>, options: SpoolOptions) -> Result<Recorder> {
        let mode = options.mode;
        let recent = Arc::new(Mutex::new(RecentIds::new(RECENT_IDS_MAX)));
        Ok(Recorder { spool: Spool::open(folder, options)?, mode, recent })
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
            hits.iter().try_for_each(check_hit)?;
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
            check_time(at)?;
            check_delta(delta)?;
            self.record(vec![(event_id, Record::Stats(player_id, at.0, delta))]).await
        })
    }

    /// Ids are known before their events are safe, so the next call waits until this one has ended.
    async fn record(&self, records: Vec<(Uuid, Record)>) -> Result<Recorded> {
        let mut recent = self.recent.lock().await;
        let count = records.len();
        let mut seen = HashSet::new();
        let mut is_new = |id: &Uuid| !recent.contains(id) && seen.insert(*id);
        let (ids, new): (Vec<_>, Vec<_>) = records.into_iter().filter(|(id, _)| is_new(id)).unzip();
        if !new.is_empty() {
            self.spool.record_events(&new).await?;
            ids.into_iter().for_each(|id| recent.insert(id));
        }
        Ok(Recorded { recorded: new.len(), repeated: count - new.len(), mode: self.mode })
    }

    /// Syncs and closes the spool. What was not delivered waits for the next opening.
    pub fn close(&self) -> Result<()> {
        Ok(self.spool.close()?)
    }
}
