//! What is recorded: hits and deltas of statistics, and their checks.

use super::super::error::{Error, Result, check_text};
use super::super::limits::{
    ABILITY_NAME_BYTES_MAX, PLAYER_NAME_BYTES_MAX, SERVER_INSTANCE_BYTES_MAX, STATS_DELTA_MAX,
};
use super::hit_type_text;
use crate::darkages::history::{HitType, PlayerStats};
use emberkeep_history::limits::FUTURE_MAX;
use emberkeep_schema::{Timestamp, Totals as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A hit that a zone server computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitRecord {
    /// When it happened, in milliseconds since 1970.
    pub timestamp: i64,
    /// Its id; a repeated call has the same.
    pub event_id: Uuid,
    /// The player or creature that attacked.
    pub attacker_id: i64,
    /// Whether the attacker is a player, who has statistics.
    pub attacker_is_player: bool,
    /// The attacker's name, for leaderboards, at most 128 bytes; `None` leaves the one that they know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attacker_name: Option<String>,
    /// The player or creature that was hit.
    pub target_id: i64,
    /// Whether the target is a player.
    pub target_is_player: bool,
    /// Health taken, 0 or more.
    pub damage: i32,
    /// How it landed, in the words of the table.
    #[serde(with = "hit_type_text")]
    pub hit_type: HitType,
    /// Whether the target died of it.
    pub is_kill: bool,
    /// The ability, at most 128 bytes.
    pub ability_name: Option<String>,
    /// The zone in which it happened.
    pub zone_id: i32,
    /// Position in the zone: x, y, z.
    pub position: [f64; 3],
    /// The server, at most 128 bytes.
    pub server_instance: String,
    /// The shard of the zone, as the zone server numbers it.
    pub shard_id: i32,
}

/// What is added to the statistics of a player: all ten columns, each 0 or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatsDelta {
    /// Players killed.
    pub kills: i64,
    /// How often the player died.
    pub deaths: i64,
    /// Kills by others that the player helped with.
    pub assists: i64,
    /// Health taken from others.
    pub damage_dealt: i64,
    /// Health lost to hits.
    pub damage_taken: i64,
    /// Health that blocking saved.
    pub damage_blocked: i64,
    /// Health given to players.
    pub healing_done: i64,
    /// Milliseconds; statistics show whole minutes.
    pub playtime_ms: i64,
    /// Matches that the player took part in.
    pub matches: i64,
    /// Matches that the player won.
    pub wins: i64,
}

impl From<StatsDelta> for PlayerStats {
    fn from(delta: StatsDelta) -> PlayerStats {
        PlayerStats {
            total_kills: delta.kills,
            total_deaths: delta.deaths,
            total_assists: delta.assists,
            total_damage_dealt: delta.damage_dealt,
            total_damage_taken: delta.damage_taken,
            total_damage_blocked: delta.damage_blocked,
            total_healing_done: delta.healing_done,
            total_playtime_minutes: delta.playtime_ms,
            total_matches: delta.matches,
            total_wins: delta.wins,
        }
    }
}

/// An entry of the spool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A hit, which becomes an event and amounts of statistics.
    Hit(HitRecord),
    /// A delta of statistics: player, when, what.
    Stats(i64, i64, StatsDelta),
}

/// History takes rows up to a day ahead. A delta has the same bound: its time becomes the last update of the player.
pub(super) fn check_time(at: Timestamp, now: i64) -> Result<()> {
    if at.is_valid() && at.0 <= now.saturating_add(FUTURE_MAX.as_millis() as i64) {
        return Ok(());
    }
    let problem = format!("{}, expected milliseconds since 1970, at most a day after now ({now})", at.0);
    Err(Error::invalid("time of an event", problem))
}

pub(super) fn check_hit(hit: &HitRecord, now: i64) -> Result<()> {
    check_time(Timestamp(hit.timestamp), now)?;
    check_text("server instance", &hit.server_instance, SERVER_INSTANCE_BYTES_MAX)?;
    if let Some(name) = &hit.ability_name {
        check_text("ability name", name, ABILITY_NAME_BYTES_MAX)?;
    }
    if let Some(name) = &hit.attacker_name {
        check_text("name of the attacker", name, PLAYER_NAME_BYTES_MAX)?;
    }
    if hit.damage < 0 {
        return Err(Error::invalid("damage", format!("{}, expected 0 or more", hit.damage)));
    }
    if !hit.position.iter().all(|number| number.is_finite()) {
        return Err(Error::invalid("position", "a number that is infinite or not a number"));
    }
    Ok(())
}

pub(super) fn check_delta(delta: StatsDelta) -> Result<()> {
    let amounts = PlayerStats::from(delta).amounts();
    if amounts.iter().all(|amount| (0..=STATS_DELTA_MAX).contains(amount)) {
        return Ok(());
    }
    Err(Error::invalid("delta of statistics", format!("expected amounts from 0 to {STATS_DELTA_MAX}")))
}
