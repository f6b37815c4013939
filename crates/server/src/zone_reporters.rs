//! What zone servers reported of their ticks, collected by zone and server until the hour is over.
//!
//! Bound: [`ZONE_REPORTERS_MAX`]. Beyond it the reporter that was used least lately is forgotten; all it had is in history,
//! and the next one of that zone counts from zero under another number, so that nothing is lost or counted twice.

use crate::limits::ZONE_REPORTERS_MAX;
use emberkeep_games::darkages::archive::zones::{ZoneReporter, ZoneSample};
use emberkeep_games::darkages::archive::{Archive, Result};
use emberkeep_schema::Timestamp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex as AsyncMutex;

type Shared = Arc<AsyncMutex<ZoneReporter>>;

/// All reporters of this process.
#[derive(Default)]
pub(crate) struct ZoneReporters(Mutex<Reporters>);

#[derive(Default)]
struct Reporters {
    /// By zone and server, with the number of the last use.
    by_server: HashMap<(i32, String), (u64, Shared)>,
    uses: u64,
}

impl ZoneReporters {
    /// Counts samples of a server and writes them: all of them, or none if one is refused.
    pub(crate) async fn report(
        &self,
        archive: &Archive,
        zone_id: i32,
        server_instance: &str,
        samples: Vec<(Timestamp, ZoneSample)>,
    ) -> Result<()> {
        // A sample that is refused must not leave the ones before it counted.
        let mut trial = archive.zone_reporter(zone_id, server_instance)?;
        samples.iter().try_for_each(|(at, sample)| trial.add(*at, *sample))?;
        let shared = self.reporter(archive, zone_id, server_instance)?;
        let mut reporter = shared.lock().await;
        samples.into_iter().try_for_each(|(at, sample)| reporter.add(at, sample))?;
        for error in archive.report_zone(&mut reporter).await? {
            tracing::warn!(%error, zone_id, "a report of a zone was left out of its metrics");
        }
        Ok(())
    }

    fn reporter(&self, archive: &Archive, zone_id: i32, server_instance: &str) -> Result<Shared> {
        let mut reporters = self.0.lock();
        reporters.uses += 1;
        let (used, key) = (reporters.uses, (zone_id, server_instance.to_owned()));
        if let Some((last, shared)) = reporters.by_server.get_mut(&key) {
            *last = used;
            return Ok(shared.clone());
        }
        if reporters.by_server.len() >= ZONE_REPORTERS_MAX {
            let oldest = reporters.by_server.iter().min_by_key(|(_, (last, _))| *last);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| reporters.by_server.remove(&key));
        }
        let shared = Arc::new(AsyncMutex::new(archive.zone_reporter(zone_id, server_instance)?));
        reporters.by_server.insert(key, (used, shared.clone()));
        Ok(shared)
    }
}
