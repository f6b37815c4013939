//! Cooldowns of spots.

use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{FieldPath, SpotPath};
use crate::routes::responses::{ClearedCount, Cooldown, from_ms};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

/// A cooldown of a spot.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"durationMs": 60_000}))]
pub(super) struct SpotCooldown {
    /// Milliseconds, up to 49.7 days; 0 starts no cooldown.
    #[schema(maximum = 4_294_967_295_u64)]
    duration_ms: u64,
}

/// Starts the cooldown of a spot. An earlier cooldown is replaced.
#[utoipa::path(put,
    path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath),
    request_body = SpotCooldown,
    responses((status = 204, description = "The cooldown has started")))]
pub(super) async fn start_spot_cooldown(
    State(app): State<AppState>,
    Path((tenant, field, spot)): SpotPath,
    Json(body): Json<SpotCooldown>,
) -> Result<StatusCode, ApiError> {
    app.reactors.start_cooldown(tenant, field, spot, from_ms(body.duration_ms)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the cooldown of a spot.
#[utoipa::path(get,
    path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath),
    responses((status = 200, description = "The cooldown", body = Cooldown)))]
pub(super) async fn get_spot_cooldown(
    State(app): State<AppState>,
    Path((tenant, field, spot)): SpotPath,
) -> Result<Answer<Cooldown>, ApiError> {
    Ok(Answer(app.reactors.cooldown_remaining(tenant, field, spot).await?.into()))
}

/// Clears the cooldown of a spot.
#[utoipa::path(delete,
    path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath),
    responses((status = 200, description = "1 if the cooldown was active, otherwise 0", body = ClearedCount)))]
pub(super) async fn clear_spot_cooldown(
    State(app): State<AppState>,
    Path((tenant, field, spot)): SpotPath,
) -> Result<Answer<ClearedCount>, ApiError> {
    Ok(Answer(ClearedCount { cleared: usize::from(app.reactors.clear_cooldown(tenant, field, spot).await?) }))
}

/// Clears all known cooldowns of a field.
#[utoipa::path(delete,
    path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns",
    tag = "reactors", params(FieldPath),
    responses((status = 200, description = "The number of cleared cooldowns", body = ClearedCount)))]
pub(super) async fn clear_field_cooldowns(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
) -> Result<Answer<ClearedCount>, ApiError> {
    Ok(Answer(ClearedCount { cleared: app.reactors.clear_cooldowns(tenant, field).await? }))
}
