//! Recording for servers that compute damage themselves: hits and statistics, through a local spool.

use super::words::HitTypeWord;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{BulkJson, Json, Path};
use crate::routes::path::PlayerPath;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::archive::recorder::{self, HitRecord, Recorder, StatsDelta};
use emberkeep_history::spool::SpoolMode;
use emberkeep_schema::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

fn recorder(app: &AppState) -> Result<&Recorder, ApiError> {
    app.history.get().and_then(|tier| tier.recorder()).ok_or_else(|| {
        let detail =
            "this server has no folder in which events wait for history; start it with --spool or --data";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "recorder_not_configured", detail)
    })
}

/// A hit that a zone server computed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RecordedHit {
    /// When it happened, in milliseconds since 1970.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64)]
    timestamp: i64,
    /// Its id; a repeated call has the same.
    event_id: Uuid,
    /// The player or creature that attacked.
    attacker_id: i64,
    /// The attacker's name, for leaderboards; at most 128 bytes.
    attacker_name: Option<String>,
    /// Whether the attacker is a creature, which has no statistics.
    #[serde(default)]
    attacker_is_npc: bool,
    /// The player or creature that was hit.
    target_id: i64,
    /// Whether the target is a creature.
    #[serde(default)]
    target_is_npc: bool,
    /// Health that the hit took.
    #[schema(minimum = 0)]
    damage: i32,
    /// How it landed; `normal` if absent.
    #[serde(default)]
    hit_type: HitTypeWord,
    /// Whether the target died of it.
    #[serde(default)]
    is_kill: bool,
    /// The ability, at most 128 bytes.
    ability_name: Option<String>,
    /// The zone in which it happened.
    zone_id: i32,
    /// Position in the zone.
    position_x: f64,
    /// Position in the zone.
    position_y: f64,
    /// Position in the zone.
    position_z: f64,
    /// The zone server, at most 128 bytes.
    server_instance: String,
    /// The shard of the zone, as the zone server numbers it.
    #[serde(default)]
    shard_id: i32,
}

impl From<RecordedHit> for HitRecord {
    fn from(hit: RecordedHit) -> HitRecord {
        HitRecord {
            timestamp: hit.timestamp,
            event_id: hit.event_id,
            attacker_id: hit.attacker_id,
            attacker_name: hit.attacker_name,
            attacker_is_player: !hit.attacker_is_npc,
            target_id: hit.target_id,
            target_is_player: !hit.target_is_npc,
            damage: hit.damage,
            hit_type: hit.hit_type.into(),
            is_kill: hit.is_kill,
            ability_name: hit.ability_name,
            zone_id: hit.zone_id,
            position: [hit.position_x, hit.position_y, hit.position_z],
            server_instance: hit.server_instance,
            shard_id: hit.shard_id,
        }
    }
}

/// Hits that a zone server computed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"events": [{"timestamp": 1_767_225_600_000_i64,
    "event_id": "0197a3c8-7b7e-7cc3-9d3e-2f6f3f1f2a11", "attacker_id": 12_345, "target_id": 12_346, "damage": 15,
    "hit_type": "critical", "is_kill": false, "ability_name": "fireball", "zone_id": 42, "position_x": 1234.5,
    "position_y": 0.0, "position_z": 6789.0, "server_instance": "zone-42", "shard_id": 0}]}))]
pub(super) struct RecordedEvents {
    /// At most 1,000 hits, and 1 MiB.
    #[schema(max_items = 1_000)]
    events: Vec<RecordedHit>,
}

/// How safe recorded events are.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RecordedMode {
    /// They are on disk.
    Always,
    /// They survive the death of the server, and are on disk within a second.
    EverySec,
    /// They are in memory.
    Memory,
}

/// What became of events.
#[derive(Serialize, ToSchema)]
pub(super) struct EventsRecorded {
    /// Events that were recorded.
    #[schema(example = 1)]
    recorded: usize,
    /// Events whose id had been recorded before.
    #[schema(example = 0)]
    repeated: usize,
    /// How safe they are.
    durability: RecordedMode,
}

impl From<recorder::Recorded> for EventsRecorded {
    fn from(recorded: recorder::Recorded) -> EventsRecorded {
        let durability = match recorded.mode {
            SpoolMode::Always => RecordedMode::Always,
            SpoolMode::EverySec => RecordedMode::EverySec,
            SpoolMode::Memory => RecordedMode::Memory,
        };
        EventsRecorded { recorded: recorded.recorded, repeated: recorded.repeated, durability }
    }
}

/// Records hits of a zone server that computes damage itself: all of them or none, each once by its id.
#[utoipa::path(post, path = "/v1/darkages/combat-events", tag = "darkages",
    request_body = RecordedEvents,
    responses((status = 200, description = "What became of them", body = EventsRecorded)))]
pub(super) async fn record_events(
    State(app): State<AppState>,
    BulkJson(body): BulkJson<RecordedEvents>,
) -> Result<Answer<EventsRecorded>, ApiError> {
    let hits = body.events.into_iter().map(HitRecord::from).collect();
    Ok(Answer(recorder(&app)?.record_events(hits).await?.into()))
}

/// What is added to the statistics of a player; what is absent is 0.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"event_id": "0197a3c8-7b7e-7cc3-9d3e-2f6f3f1f2a12", "timestamp": 1_767_225_600_000_i64,
    "matches": 1, "wins": 1, "playtime_ms": 1_260_000}))]
pub(super) struct StatsChange {
    /// Its id; a repeated call has the same.
    event_id: Uuid,
    /// When it happened, in milliseconds since 1970.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64)]
    timestamp: i64,
    /// Players that the player killed.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    kills: i64,
    /// How often the player died.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    deaths: i64,
    /// Kills by others that the player helped with.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    assists: i64,
    /// Health that the player took from others.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    damage_dealt: i64,
    /// Health that the player lost to hits.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    damage_taken: i64,
    /// Health that blocking saved.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    damage_blocked: i64,
    /// Health that the player gave to players.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    healing_done: i64,
    /// Milliseconds; statistics show whole minutes.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    playtime_ms: i64,
    /// Matches that the player took part in.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    matches: i64,
    /// Matches that the player won.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    wins: i64,
}

/// Adds to the statistics of a player, once per event id.
#[utoipa::path(post, path = "/v1/darkages/players/{player}/stats", tag = "darkages",
    params(PlayerPath), request_body = StatsChange,
    responses((status = 200, description = "What became of it", body = EventsRecorded)))]
pub(super) async fn record_stats(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<StatsChange>,
) -> Result<Answer<EventsRecorded>, ApiError> {
    let delta = StatsDelta {
        kills: body.kills,
        deaths: body.deaths,
        assists: body.assists,
        damage_dealt: body.damage_dealt,
        damage_taken: body.damage_taken,
        damage_blocked: body.damage_blocked,
        healing_done: body.healing_done,
        playtime_ms: body.playtime_ms,
        matches: body.matches,
        wins: body.wins,
    };
    let (id, at) = (body.event_id, Timestamp(body.timestamp));
    Ok(Answer(recorder(&app)?.record_stats(player.0, delta, id, at).await?.into()))
}
