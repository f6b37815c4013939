//! A reporter: collects the samples of one zone in one process, and writes what it has by the hour.

use super::super::error::{Error, Result, check_text};
use super::super::limits::{REPORTER_HOURS_MAX, SERVER_INSTANCE_BYTES_MAX, TICK_TIME_MS_MAX};
use super::super::{Answer, Archive};
use super::{HOUR_MS, Sketch, hour_of};
use crate::darkages::history::ZoneReport;
use emberkeep_schema::Timestamp;
use std::collections::BTreeMap;
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

/// Collects the samples of a zone. It counts from zero when it is made, under a number of its own, so that what a former
/// process reported is not overwritten.
#[derive(Debug)]
pub struct ZoneReporter {
    zone_id: i32,
    server_instance: String,
    incarnation: Uuid,
    hours: BTreeMap<Timestamp, (ZoneReport, Sketch)>,
}

impl ZoneReporter {
    /// A reporter of a zone on a server.
    pub fn new(zone_id: i32, server_instance: &str) -> Result<ZoneReporter> {
        check_text("server instance", server_instance, SERVER_INSTANCE_BYTES_MAX)?;
        let (server_instance, incarnation) = (server_instance.to_owned(), Uuid::new_v4());
        Ok(ZoneReporter { zone_id, server_instance, incarnation, hours: BTreeMap::new() })
    }

    /// Counts a sample. Nothing is written before [`Archive::report_zone`].
    pub fn add(&mut self, at: Timestamp, sample: ZoneSample) -> Result<()> {
        check(at, &sample)?;
        let hour = hour_of(at);
        let (report, sketch) = self.hours.entry(hour).or_insert_with(|| {
            let report = ZoneReport {
                zone_id: self.zone_id,
                hour_bucket: hour,
                server_instance: self.server_instance.clone(),
                incarnation: self.incarnation,
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

fn check(at: Timestamp, sample: &ZoneSample) -> Result<()> {
    let ZoneSample { player_count, tick_time_ms, .. } = *sample;
    let counts = [sample.packets_sent, sample.packets_received, sample.bytes_sent, sample.bytes_received];
    if !at.is_valid() || at.0 > Timestamp::MAX.0 - HOUR_MS {
        return Err(Error::invalid(
            "time of a sample",
            format!("{}, expected milliseconds since 1970", at.0),
        ));
    }
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
    /// Writes what a reporter has collected and merges it with that of other reporters. Call it every few seconds, and
    /// again if it failed: a reporter counts on, and its next report replaces the one before. Hours beyond the last four
    /// are forgotten after they were written.
    pub fn report_zone<'a>(&'a self, reporter: &'a mut ZoneReporter) -> Answer<'a, ()> {
        Box::pin(async move {
            for report in reporter.reports() {
                let (zone_id, hour) = (report.zone_id, report.hour_bucket);
                self.write_zone_report(report).await?;
                self.merge_zone_reports(zone_id, hour).await?;
            }
            while reporter.hours.len() > REPORTER_HOURS_MAX {
                reporter.hours.pop_first();
            }
            Ok(())
        })
    }
}
