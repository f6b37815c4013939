//! Performance of zones: what each reporter saw in an hour, merged into the row of the storage document.
//!
//! 1. A report has all that its reporter saw in the hour so far; a later one replaces it (version = samples).
//! 2. Each call that wrote a report writes the merged row, from all reports of the hour, with version = samples merged. The
//!    call that wrote the last report reads all of them, so that the last row is complete in whatever order calls end.
//! 3. Versions begin at the hour in microseconds: a small number would be in the compaction window of 1970.

mod reporter;
mod sketch;

pub use reporter::{ZoneReporter, ZoneSample};
pub use sketch::Sketch;

use super::error::Result;
use super::page::{PageRequest, TimeRange};
use super::{Answer, Archive};
use crate::darkages::history::{ZoneMetrics, ZoneReport};
use emberkeep_history::limits::PAGE_ROWS_MAX;
use emberkeep_history::{Error as HistoryError, Page};
use emberkeep_schema::Timestamp;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// The beginning of the hour of a time.
fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp(at.0.div_euclid(HOUR_MS).saturating_mul(HOUR_MS))
}

fn version(hour: Timestamp, samples: i64) -> i64 {
    hour.0.saturating_mul(1_000).saturating_add(samples)
}

impl Archive {
    /// The performance of a zone by hour, of the hours that begin in a range, or of the last seven days.
    pub fn zone_metrics(
        &self,
        zone_id: i32,
        range: Option<TimeRange>,
        page: PageRequest,
    ) -> Answer<'_, Page<ZoneMetrics>> {
        self.page(ZoneMetrics::partition(zone_id), range, page)
    }

    async fn write_zone_report(&self, report: ZoneReport) -> Result<()> {
        let version = version(report.hour_bucket, report.samples);
        self.history.upsert_at(report, version).await?;
        Ok(())
    }

    /// Merges all reports of a zone and an hour that can be read into its row.
    pub fn merge_zone_reports(&self, zone_id: i32, hour: Timestamp) -> Answer<'_, MergedReports> {
        Box::pin(async move {
            let hour = hour_of(hour);
            let rows = self.history.range(ZoneReport::partition(zone_id, hour)).rows_max(PAGE_ROWS_MAX);
            let (mut merged, mut corrupt, mut after) = (Merged::default(), Vec::new(), None);
            loop {
                let page = rows.page(after.as_ref()).await?;
                after = page.next.clone();
                corrupt.extend(page.unreadable.into_iter().map(|row| row.error));
                corrupt.extend(page.rows.into_iter().filter_map(|report| merged.add(report).err()));
                if after.is_none() {
                    break;
                }
            }
            let samples = merged.samples;
            let row = merged.into_row(zone_id, hour);
            if let Some(row) = row.clone() {
                self.history.upsert_at(row, version(hour, samples)).await?;
            }
            Ok(MergedReports { row, corrupt })
        })
    }
}

/// What became of the reports of a zone and an hour.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedReports {
    /// The row; `None` without a report that can be read.
    pub row: Option<ZoneMetrics>,
    /// What is wrong with each report that was left out.
    pub corrupt: Vec<HistoryError>,
}

/// Reports that are being merged.
#[derive(Default)]
struct Merged {
    samples: i64,
    player_count_sum: i64,
    player_counts: Option<(i32, i32)>,
    tick_time_ms_sum: f64,
    tick_time_ms_max: f32,
    sketch: Sketch,
    packets: [i64; 2],
    bytes: [i64; 2],
    samples_by_server: BTreeMap<String, i64>,
}

impl Merged {
    fn add(&mut self, report: ZoneReport) -> Result<(), HistoryError> {
        let sketch = Sketch::from_bytes(&report.tick_time_sketch).ok_or_else(|| {
            let ZoneReport { server_instance, incarnation, hour_bucket, .. } = &report;
            let reason =
                format!("not a sketch, reported by {server_instance} ({incarnation}) at {}", hour_bucket.0);
            HistoryError::Corrupt { table: "ember_zone_reports", column: "tick_time_sketch", reason }
        })?;
        self.sketch.merge(&sketch);
        self.samples = self.samples.saturating_add(report.samples);
        self.player_count_sum = self.player_count_sum.saturating_add(report.player_count_sum);
        let (min, max) = self.player_counts.unwrap_or((i32::MAX, i32::MIN));
        self.player_counts = Some((min.min(report.player_count_min), max.max(report.player_count_max)));
        self.tick_time_ms_sum += report.tick_time_ms_sum;
        self.tick_time_ms_max = self.tick_time_ms_max.max(report.tick_time_ms_max);
        let sum = |[sent, received]: [i64; 2], more_sent: i64, more_received: i64| {
            [sent.saturating_add(more_sent), received.saturating_add(more_received)]
        };
        self.packets = sum(self.packets, report.packets_sent, report.packets_received);
        self.bytes = sum(self.bytes, report.bytes_sent, report.bytes_received);
        *self.samples_by_server.entry(report.server_instance).or_default() += report.samples;
        Ok(())
    }

    fn into_row(self, zone_id: i32, hour_bucket: Timestamp) -> Option<ZoneMetrics> {
        let (min_player_count, max_player_count) = self.player_counts.filter(|_| self.samples > 0)?;
        // Of servers with equally many samples the first in the order of names.
        let server = self.samples_by_server.into_iter().rev().max_by_key(|(_, samples)| *samples)?.0;
        let p99 = self.sketch.quantile(0.99).unwrap_or_default() as f32;
        Some(ZoneMetrics {
            zone_id,
            hour_bucket,
            avg_player_count: (self.player_count_sum as f64 / self.samples as f64).round() as i32,
            max_player_count,
            min_player_count,
            avg_tick_time_ms: (self.tick_time_ms_sum / self.samples as f64) as f32,
            max_tick_time_ms: self.tick_time_ms_max,
            // A bin's middle may lie above the longest tick.
            p99_tick_time_ms: p99.min(self.tick_time_ms_max),
            total_packets_sent: self.packets[0],
            total_packets_received: self.packets[1],
            total_bytes_sent: self.bytes[0],
            total_bytes_received: self.bytes[1],
            server_instance: server,
        })
    }
}
