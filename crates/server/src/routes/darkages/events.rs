//! What happened: combat events, kills, play sessions and statistics.

use super::page::{TimePage, archive};
use super::rows::RowPage;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Path, Query};
use crate::routes::path::{AttackerPath, PlayerPath, TargetPath, ZonePath};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::darkages::history::{CombatEvent, Kill, PlayerSession};
use serde::Serialize;
use utoipa::ToSchema;

type CombatEventPage = RowPage<CombatEvent>;
type KillPage = RowPage<Kill>;
type PlayerSessionPage = RowPage<PlayerSession>;

/// Lists combat events of a range of at most 366 days. They are kept for 30 days.
#[utoipa::path(get, path = "/v1/darkages/combat-events", tag = "darkages",
    params(TimePage), responses((status = 200, description = "A page", body = CombatEventPage)))]
pub(super) async fn list_combat_events(
    State(app): State<AppState>,
    Query(query): Query<TimePage>,
) -> Result<Answer<CombatEventPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse(&archive)?;
    Ok(Answer(archive.combat_events(range, page).await?.into()))
}

/// Lists combat events of an attacker.
#[utoipa::path(get, path = "/v1/darkages/attackers/{attacker}/combat-events", tag = "darkages",
    params(AttackerPath, TimePage),
    responses((status = 200, description = "A page", body = CombatEventPage)))]
pub(super) async fn list_attacks(
    State(app): State<AppState>,
    Path(attacker): AttackerPath,
    Query(query): Query<TimePage>,
) -> Result<Answer<CombatEventPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse(&archive)?;
    Ok(Answer(archive.combat_events_by_attacker(attacker.0, range, page).await?.into()))
}

/// Lists combat events of a target.
#[utoipa::path(get, path = "/v1/darkages/targets/{target}/combat-events", tag = "darkages",
    params(TargetPath, TimePage),
    responses((status = 200, description = "A page", body = CombatEventPage)))]
pub(super) async fn list_hits_taken(
    State(app): State<AppState>,
    Path(target): TargetPath,
    Query(query): Query<TimePage>,
) -> Result<Answer<CombatEventPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse(&archive)?;
    Ok(Answer(archive.combat_events_by_target(target.0, range, page).await?.into()))
}

/// Lists combat events of a zone.
#[utoipa::path(get, path = "/v1/darkages/zones/{zone}/combat-events", tag = "darkages",
    params(ZonePath, TimePage),
    responses((status = 200, description = "A page", body = CombatEventPage)))]
pub(super) async fn list_zone_combat_events(
    State(app): State<AppState>,
    Path(zone): ZonePath,
    Query(query): Query<TimePage>,
) -> Result<Answer<CombatEventPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse(&archive)?;
    Ok(Answer(archive.combat_events_in_zone(zone.0, range, page).await?.into()))
}

/// Lists kills: the kill feed.
#[utoipa::path(get, path = "/v1/darkages/kills", tag = "darkages",
    params(TimePage), responses((status = 200, description = "A page", body = KillPage)))]
pub(super) async fn list_kills(
    State(app): State<AppState>,
    Query(query): Query<TimePage>,
) -> Result<Answer<KillPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse(&archive)?;
    Ok(Answer(archive.kills(range, page).await?.into()))
}

/// Lists completed play sessions of a player; all of the last 90 days without a range.
#[utoipa::path(get, path = "/v1/darkages/players/{player}/play-sessions", tag = "darkages",
    params(PlayerPath, TimePage),
    responses((status = 200, description = "A page", body = PlayerSessionPage)))]
pub(super) async fn list_play_sessions(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Query(query): Query<TimePage>,
) -> Result<Answer<PlayerSessionPage>, ApiError> {
    let archive = archive(&app)?;
    let (range, page) = query.parse_open(&archive)?;
    Ok(Answer(archive.play_sessions(player.0, range, page).await?.into()))
}

/// What a player did, ever.
#[derive(Serialize, ToSchema)]
pub(super) struct PlayerTotals {
    /// The player of whom these are the sums.
    player_id: i64,
    /// Players that the player killed.
    total_kills: i64,
    /// How often the player died.
    total_deaths: i64,
    /// Kills by others that the player helped with.
    total_assists: i64,
    /// Health that the player took from others.
    total_damage_dealt: i64,
    /// Health that the player lost to hits.
    total_damage_taken: i64,
    /// Health that blocking saved.
    total_damage_blocked: i64,
    /// Health that the player gave to players.
    total_healing_done: i64,
    /// Whole minutes of play that were recorded.
    total_playtime_minutes: i64,
    /// Matches that the player took part in.
    total_matches: i64,
    /// Matches that the player won.
    total_wins: i64,
    /// The time of the latest event in it; `null` if nothing was recorded.
    last_updated: Option<i64>,
}

/// Returns what a player did, ever. It is zero for a player of whom nothing was recorded.
#[utoipa::path(get, path = "/v1/darkages/players/{player}/stats", tag = "darkages",
    params(PlayerPath), responses((status = 200, description = "The sums", body = PlayerTotals)))]
pub(super) async fn get_player_stats(
    State(app): State<AppState>,
    Path(player): PlayerPath,
) -> Result<Answer<PlayerTotals>, ApiError> {
    let totals = archive(&app)?.player_stats(player.0).await?;
    let last_updated = totals.as_ref().map(|totals| totals.last_updated.0);
    let sums = totals.map(|totals| totals.sums).unwrap_or_default();
    Ok(Answer(PlayerTotals {
        player_id: player.0,
        total_kills: sums.total_kills,
        total_deaths: sums.total_deaths,
        total_assists: sums.total_assists,
        total_damage_dealt: sums.total_damage_dealt,
        total_damage_taken: sums.total_damage_taken,
        total_damage_blocked: sums.total_damage_blocked,
        total_healing_done: sums.total_healing_done,
        total_playtime_minutes: sums.total_playtime_minutes,
        total_matches: sums.total_matches,
        total_wins: sums.total_wins,
        last_updated,
    }))
}
