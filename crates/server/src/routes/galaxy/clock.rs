//! The clock and the game as a whole: status, pause, rates, registration, reset.

use super::acting::Acting;
use super::shapes::ClockAnswer;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::Json;
use crate::routes::responses::Conflict;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::galaxy::{ClockChange, GalaxyState, GameTime, StartRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The game as a whole.
#[derive(Serialize, ToSchema)]
pub(super) struct GalaxyStatus {
    /// The generation of the game; 0 before a tick engine was started.
    #[schema(example = 1)]
    generation: i64,
    /// `running`, or the `reset` or `restore` that is under way.
    #[schema(example = "running")]
    phase: &'static str,
    /// Entities of the present tick.
    #[schema(example = 250)]
    entities: i64,
    /// Players with a live connection.
    #[schema(example = 12)]
    online: usize,
    /// The settings of the clock.
    clock: ClockAnswer,
}

/// Returns the state of the game as a whole.
#[utoipa::path(get, path = "/v1/galaxy/status", tag = "galaxy",
    responses((status = 200, description = "The state", body = GalaxyStatus)))]
pub(super) async fn get_galaxy_status(State(app): State<AppState>) -> Result<Answer<GalaxyStatus>, ApiError> {
    let galaxy = &app.galaxy;
    let (era, head) = (galaxy.era().await?, galaxy.head().await?);
    Ok(Answer(GalaxyStatus {
        generation: era.generation,
        phase: era.phase.as_str(),
        entities: head.entities,
        online: galaxy.online_count().await?,
        clock: galaxy.clock().await?.into(),
    }))
}

/// Returns the settings of the clock, the present tick and its time.
#[utoipa::path(get, path = "/v1/galaxy/clock", tag = "galaxy",
    responses((status = 200, description = "The clock", body = ClockAnswer)))]
pub(super) async fn get_galaxy_clock(State(app): State<AppState>) -> Result<Answer<ClockAnswer>, ApiError> {
    Ok(Answer(app.galaxy.clock().await?.into()))
}

/// New settings of the clock. What is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tick_rate": 10, "time_scale": 1, "time_sync": true}))]
pub(super) struct ClockSettings {
    /// Pauses or resumes.
    paused: Option<bool>,
    /// Ticks per second.
    #[schema(minimum = 0.1, maximum = 100)]
    tick_rate: Option<f64>,
    /// Speed of game time.
    #[schema(minimum = 0.1, maximum = 100)]
    time_scale: Option<f64>,
    /// Whether game time is synchronized with UTC.
    time_sync: Option<bool>,
}

async fn change(galaxy: &GalaxyState, change: ClockChange) -> Result<Answer<ClockAnswer>, ApiError> {
    galaxy.tick_engine().set_clock(change).await?;
    Ok(Answer(galaxy.clock().await?.into()))
}

/// Changes settings of the clock, all of them or none.
#[utoipa::path(post, path = "/v1/galaxy/clock", tag = "galaxy", request_body = ClockSettings,
    responses((status = 200, description = "The clock", body = ClockAnswer)))]
pub(super) async fn change_clock(
    Acting(galaxy): Acting,
    Json(body): Json<ClockSettings>,
) -> Result<Answer<ClockAnswer>, ApiError> {
    let ClockSettings { paused, tick_rate, time_scale, time_sync } = body;
    change(&galaxy, ClockChange { paused, tick_rate, time_scale, time_sync }).await
}

/// Pauses the game: no tick begins until it is resumed.
#[utoipa::path(post, path = "/v1/galaxy/clock/pause", tag = "galaxy",
    responses((status = 200, description = "The clock", body = ClockAnswer)))]
pub(super) async fn pause_galaxy(Acting(galaxy): Acting) -> Result<Answer<ClockAnswer>, ApiError> {
    change(&galaxy, ClockChange { paused: Some(true), ..ClockChange::default() }).await
}

/// Resumes the game.
#[utoipa::path(post, path = "/v1/galaxy/clock/resume", tag = "galaxy",
    responses((status = 200, description = "The clock", body = ClockAnswer)))]
pub(super) async fn resume_galaxy(Acting(galaxy): Acting) -> Result<Answer<ClockAnswer>, ApiError> {
    change(&galaxy, ClockChange { paused: Some(false), ..ClockChange::default() }).await
}

/// Whether players may register.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"open": true}))]
pub(super) struct RegistrationGate {
    /// `false` closes registration.
    open: bool,
}

/// Opens or closes registration.
#[utoipa::path(put, path = "/v1/galaxy/registration", tag = "galaxy", request_body = RegistrationGate,
    responses((status = 204, description = "It is open or closed")))]
pub(super) async fn set_registration(
    Acting(galaxy): Acting,
    Json(body): Json<RegistrationGate>,
) -> Result<StatusCode, ApiError> {
    galaxy.api_gateway().set_registration_open(body.open).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where a reset begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"time": "2000-01-01T12:00:00Z"}))]
pub(super) struct ResetStart {
    /// The game time of tick 0 in ISO 8601; now if absent.
    time: Option<String>,
}

/// The game after a reset.
#[derive(Serialize, ToSchema)]
pub(super) struct GenerationBegun {
    /// The new generation, which begins with tick 0.
    #[schema(example = 2)]
    generation: i64,
}

/// Clears the game and begins tick 0 of the next generation. The tick engine is stopped before: it has the lease.
#[utoipa::path(post, path = "/v1/galaxy/reset", tag = "galaxy", request_body = ResetStart,
    responses((status = 200, description = "The new generation", body = GenerationBegun), Conflict))]
pub(super) async fn reset_galaxy(
    State(app): State<AppState>,
    Acting(galaxy): Acting,
    Json(body): Json<ResetStart>,
) -> Result<Answer<GenerationBegun>, ApiError> {
    let time = body.time.as_deref().map(parse_time).transpose()?;
    let holder = format!("reset by {}", app.galaxy_gateway.name());
    let run = galaxy.tick_engine().start(StartRequest::new(holder)).await?;
    let reset = run.reset(time).await;
    // A lease that is not released ends by itself.
    let released = run.release().await;
    let generation = reset?;
    released?;
    Ok(Answer(GenerationBegun { generation }))
}

fn parse_time(text: &str) -> Result<GameTime, ApiError> {
    GameTime::parse(text).ok_or_else(|| {
        let detail = format!("time is {text:?}, expected ISO 8601 such as 2000-01-01T12:00:00Z");
        ApiError::invalid(detail).with("what", "time")
    })
}
