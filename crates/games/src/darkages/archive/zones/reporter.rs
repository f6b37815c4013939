//! A reporter: collects the samples of one zone in one process, and writes what it has by the hour.

use super::super::error::{Error, Result, check_text};
use super::super::limits::{
    REPORTER_HOURS_AHEAD_MAX, REPORTER_HOURS_BEHIND_MAX, SERVER_INSTANCE_BYTES_MAX, TICK_TIME_MS_MAX,
};
use super::super::{Answer, Archive};
use super::{HOUR_MS, Sketch, hour_of};
use crate::darkages::history::ZoneReport;
use emberkeep_history::{Error as HistoryError, HistoryStore};
use emberkeep_schema::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// One tick of a zone server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ZoneSample {
    /// Players in the zone.
    pub player_count: i32,
    /// Length of the tick, from 0 to a day.
    pub tick_time_ms: f32,
    /// Packets sent since the sample before.
    pub packets_sent: i64,
    /// Packets received since the sample before.
    pub packets_received: i64,
    /// Bytes sent since the sample before.
    pub bytes_sent: i64,
    /// Bytes received since the sample before.
    pub bytes_received: i64,
}

/// Collects the samples of a zone, by the hour. Each hour counts from zero under a number of its own, so that what a former
/// process, or this reporter before it forgot the hour, has reported is not overwritten. It holds the current hour, two
/// before it and one after it, by the store's clock.
pub struct ZoneReporter {
    zone_id: i32,
    server_instance: String,
    /// Hours are counted by its clock.
    store: Arc<dyn HistoryStore>,
    hours: BTreeMap<Timestamp, (ZoneReport, Sketch)>,
}

impl std::fmt::Debug for ZoneReporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ZoneReporter { zone_id, server_instance, hours, .. } = self;
        write!(f, "reporter of zone {zone_id} on {server_instance} with {} hours", hours.len())
    }
}

impl ZoneReporter {
    /// Forgets the hours that are too far from now.
    fn forget(&mut self) {
        let now = Timestamp(self.store.now());
        self.hours.retain(|hour, _| is_near(*hour, now));
    }

    /// Counts a sample. Nothing is written before [`Archive::report_zone`].
    pub fn add(&mut self, at: Timestamp, sample: ZoneSample) -> Result<()> {
        check(&sample)?;
        let (hour, now) = (hour_of(at), Timestamp(self.store.now()));
        if !is_near(hour, now) {
            let (behind, ahead) = (REPORTER_HOURS_BEHIND_MAX, REPORTER_HOURS_AHEAD_MAX);
            let problem =
                format!("{}, expected {behind} hours before to {ahead} after now ({})", at.0, now.0);
            return Err(Error::invalid("time of a sample", problem));
        }
        if !self.hours.contains_key(&hour) {
            self.forget();
        }
        let (report, sketch) = self.hours.entry(hour).or_insert_with(|| {
            let report = ZoneReport {
                zone_id: self.zone_id,
                hour_bucket: hour,
                server_instance: self.server_instance.clone(),
                incarnation: Uuid::new_v4(),
                samples: 0,
                player_count_sum: 0,
                player_count_max: sample.player_count,
                player_count_min: sample.player_count,
                tick_time_ms_sum: 0.0,
                tick_time_ms_max: 0.0,
                tick_time_sketch: Vec::new(),
                packets_sent: 0,
                packets_received: 0,
                bytes_sent: 0,
                bytes_received: 0,
            };
            (report, Sketch::default())
        });
        sketch.add(f64::from(sample.tick_time_ms));
        report.samples += 1;
        report.player_count_sum += i64::from(sample.player_count);
        report.player_count_max = report.player_count_max.max(sample.player_count);
        report.player_count_min = report.player_count_min.min(sample.player_count);
        report.tick_time_ms_sum += f64::from(sample.tick_time_ms);
        report.tick_time_ms_max = report.tick_time_ms_max.max(sample.tick_time_ms);
        for (sum, more) in [
            (&mut report.packets_sent, sample.packets_sent),
            (&mut report.packets_received, sample.packets_received),
            (&mut report.bytes_sent, sample.bytes_sent),
            (&mut report.bytes_received, sample.bytes_received),
        ] {
            *sum = sum.saturating_add(more);
        }
        Ok(())
    }

    /// What it has, by the hour.
    fn reports(&self) -> Vec<ZoneReport> {
        let report = |(report, sketch): &(ZoneReport, Sketch)| ZoneReport {
            tick_time_sketch: sketch.to_bytes(),
            ..report.clone()
        };
        self.hours.values().map(report).collect()
    }
}

fn is_near(hour: Timestamp, now: Timestamp) -> bool {
    let hours = (i128::from(hour.0) - i128::from(hour_of(now).0)) / i128::from(HOUR_MS);
    (-i128::from(REPORTER_HOURS_BEHIND_MAX)..=i128::from(REPORTER_HOURS_AHEAD_MAX)).contains(&hours)
}

fn check(sample: &ZoneSample) -> Result<()> {
    let ZoneSample { player_count, tick_time_ms, .. } = *sample;
    let counts = [sample.packets_sent, sample.packets_received, sample.bytes_sent, sample.bytes_received];
    if !(0.0..=TICK_TIME_MS_MAX).contains(&tick_time_ms) {
        let problem = format!("{tick_time_ms}, expected a number from 0 to {TICK_TIME_MS_MAX}");
        return Err(Error::invalid("tick_time_ms", problem));
    }
    if player_count < 0 || counts.iter().any(|count| *count < 0) {
        return Err(Error::invalid("sample", "a negative count, expected 0 or more"));
    }
    Ok(())
}

impl Archive {
    /// A reporter of a zone on a server.
    pub fn zone_reporter(&self, zone_id: i32, server_instance: &str) -> Result<ZoneReporter> {
        check_text("server instance", server_instance, SERVER_INSTANCE_BYTES_MAX)?;
        let (server_instance, store) = (server_instance.to_owned(), self.history().store().clone());
        Ok(ZoneReporter { zone_id, server_instance, store, hours: BTreeMap::new() })
    }

    /// Writes what a reporter has collected, then merges each hour with the reports of others. Call it every few seconds,
    /// and again if it failed: a reporter counts on, and its next report replaces the one before. An hour that fails does
    /// not stop the others; the error is the first one. The answer names reports that could not be read and were left
    /// out. What could not be written within two hours is lost.
    pub fn report_zone<'a>(&'a self, reporter: &'a mut ZoneReporter) -> Answer<'a, Vec<HistoryError>> {
        Box::pin(async move {
            let (mut failed, mut corrupt) = (None, Vec::new());
            for report in reporter.reports() {
                if let Err(error) = self.write_zone_report(report).await {
                    failed.get_or_insert(error);
                }
            }
            for hour in reporter.hours.keys() {
                match self.merge_zone_reports(reporter.zone_id, *hour).await {
                    Ok(merged) => corrupt.extend(merged.corrupt),
                    Err(error) => drop(failed.get_or_insert(error)),
                }
            }
            reporter.forget();
            failed.map_or(Ok(corrupt), Err)
        })
    }
}
