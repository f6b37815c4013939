//! Performance of zones, as zone servers report it.

use super::page::{TimePage, archive};
use super::rows::RowPage;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{BulkJson, Path, Query};
use crate::limits::ZONE_SAMPLES_MAX;
use crate::routes::path::ZonePath;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::archive::zones::ZoneSample;
use emberkeep_games::darkages::history::ZoneMetrics;
use emberkeep_schema::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

type ZoneMetricsPage = RowPage<ZoneMetrics>;

/// Lists the performance of a zone by hour; all of the last seven days without a range.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/metrics", tag = "darkages",
    params(ZonePath, TimePage),
    responses((status = 200, description = "A page", body = ZoneMetricsPage)))]
pub(super) async fn list_zone_metrics(
    State(app): State<AppState>,
    Path(zone): ZonePath,
    Query(query): Query<TimePage>,
) -> Result<Answer<ZoneMetricsPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse_open(&archive)?;
    Ok(Answer(archive.zone_metrics(zone.0, range, page).await?.into()))
}

/// One tick of a zone server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TickSample {
    /// When it was, in milliseconds since 1970, from 2 hours ago on; absent = now.
    #[schema(minimum = 0)]
    at: Option<i64>,
    /// Players in the zone.
    #[schema(minimum = 0)]
    player_count: i32,
    /// Length of the tick.
    #[schema(minimum = 0, maximum = 86_400_000)]
    tick_time_ms: f32,
    /// Packets sent since the sample before.
    #[serde(default)]
    #[schema(minimum = 0)]
    packets_sent: i64,
    /// Packets received since the sample before.
    #[serde(default)]
    #[schema(minimum = 0)]
    packets_received: i64,
    /// Bytes sent since the sample before.
    #[serde(default)]
    #[schema(minimum = 0)]
    bytes_sent: i64,
    /// Bytes received since the sample before.
    #[serde(default)]
    #[schema(minimum = 0)]
    bytes_received: i64,
}

/// Ticks of a zone server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"server_instance": "zone-42", "samples": [
    {"player_count": 64, "tick_time_ms": 12.5, "packets_sent": 1_280,
     "packets_received": 3_840, "bytes_sent": 96_000, "bytes_received": 61_440}]}))]
pub(super) struct ZoneTicks {
    /// The zone server, at most 128 bytes.
    server_instance: String,
    /// At most 2,000 ticks since the call before. A tick that is sent twice counts twice.
    #[schema(max_items = 2_000)]
    samples: Vec<TickSample>,
}

/// Reports ticks of a zone server. The reports of all servers are merged by hour.
#[utoipa::path(post, path = "/v1/darkages/zones/{zone}/metrics", tag = "darkages",
    params(ZonePath), request_body = ZoneTicks,
    responses((status = 204, description = "They are counted")))]
pub(super) async fn report_zone_metrics(
    State(app): State<AppState>,
    Path(zone): ZonePath,
    BulkJson(body): BulkJson<ZoneTicks>,
) -> Result<StatusCode, ApiError> {
    let archive = archive(&app)?;
    let count = body.samples.len();
    if count > ZONE_SAMPLES_MAX {
        let message = format!("{count} samples, expected at most {ZONE_SAMPLES_MAX}");
        return Err(ApiError::invalid(message).with("what", "samples"));
    }
    let now = archive.now();
    let samples = body.samples.into_iter().map(|sample| {
        let TickSample { at, player_count, tick_time_ms, packets_sent, packets_received, .. } = sample;
        let (bytes_sent, bytes_received) = (sample.bytes_sent, sample.bytes_received);
        let sample = ZoneSample {
            player_count,
            tick_time_ms,
            packets_sent,
            packets_received,
            bytes_sent,
            bytes_received,
        };
        (at.map_or(now, Timestamp), sample)
    });
    app.zone_reporters.report(&archive, zone.0, &body.server_instance, samples.collect()).await?;
    Ok(StatusCode::NO_CONTENT)
}
