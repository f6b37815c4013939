//! Spots that cool down.

use crate::app::App;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::routes::answers::{Cleared, Cooldown, ms};
use crate::routes::place::{FieldPath, SpotPath};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

/// How long a spot cools down.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"durationMs": 60_000}))]
pub(super) struct SpotCooldown {
    /// Up to 49.7 days; 0 starts nothing.
    #[schema(maximum = 4_294_967_295_u64)]
    duration_ms: u64,
}

/// Lets a spot cool down from now on, also if it does already.
#[utoipa::path(put, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath), responses((status = 204, description = "It cools down")))]
pub(super) async fn start_spot_cooldown(
    State(app): State<App>,
    Path(path): Path<SpotPath>,
    Json(body): Json<SpotCooldown>,
) -> Result<StatusCode, Problem> {
    let (tenant, field, spot) = path.parts()?;
    app.reactors.start_cooldown(tenant, field, spot, ms(body.duration_ms)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells whether a spot cools down, and for how long.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath), responses((status = 200, description = "Whether it does", body = Cooldown)))]
pub(super) async fn get_spot_cooldown(
    State(app): State<App>,
    Path(path): Path<SpotPath>,
) -> Result<Answer<Cooldown>, Problem> {
    let (tenant, field, spot) = path.parts()?;
    Ok(Answer(app.reactors.cooldown_remaining(tenant, field, spot).await?.into()))
}

/// Ends a spot's cooldown.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns/{classification}/{x}/{y}",
    tag = "reactors", params(SpotPath), responses((status = 200, description = "Whether there was one", body = Cleared)))]
pub(super) async fn clear_spot_cooldown(
    State(app): State<App>,
    Path(path): Path<SpotPath>,
) -> Result<Answer<Cleared>, Problem> {
    let (tenant, field, spot) = path.parts()?;
    Ok(Answer(Cleared { cleared: usize::from(app.reactors.clear_cooldown(tenant, field, spot).await?) }))
}

/// Ends all known cooldowns of a field.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactor-cooldowns",
    tag = "reactors", params(FieldPath), responses((status = 200, description = "How many there were", body = Cleared)))]
pub(super) async fn clear_field_cooldowns(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
) -> Result<Answer<Cleared>, Problem> {
    Ok(Answer(Cleared { cleared: app.reactors.clear_cooldowns(path.tenant(), path.field()).await? }))
}
