//! Reactors of a field: create, list, destroy all.

use super::kind::Kind;
use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path, Query};
use crate::routes::path::FieldPath;
use crate::routes::responses::{Conflict, Created, OnCooldown, problems};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::reactors::{CreateRequest, Reactor, ReactorId};
use emberkeep_games::world::Field;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A reactor to be created in a field.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"classification": 2001, "name": "box", "x": -315, "y": 88, "delay": 60_000,
    "data": {"stateInfo": {"0": [{"type": 0, "nextState": 1}], "1": []}}}))]
pub(super) struct NewReactor {
    /// An allocated id; the next free one if absent.
    #[schema(minimum = 1_000_000_001, maximum = 2_000_000_000)]
    id: Option<u32>,
    /// The classification, at least 1.
    #[schema(minimum = 1)]
    classification: u32,
    /// The name that scripts use.
    #[serde(default)]
    name: String,
    /// Its behaviour in each state.
    #[serde(default)]
    data: Kind,
    /// The state in which it begins.
    #[serde(default)]
    state: i8,
    /// The state of its event.
    #[serde(default)]
    event_state: u8,
    /// Cooldown of its spot after its destruction, in milliseconds; 0 is none.
    #[serde(default)]
    delay: u32,
    /// The direction that it faces.
    #[serde(default)]
    direction: u8,
    /// The horizontal position in the field.
    x: i16,
    /// The vertical position in the field.
    y: i16,
    /// Region of the tenant's client.
    #[serde(default)]
    region: String,
    /// Major version of the tenant's client.
    #[serde(default)]
    major_version: u16,
    /// Minor version of the tenant's client.
    #[serde(default)]
    minor_version: u16,
}

impl NewReactor {
    fn at(self, field: Field) -> CreateRequest {
        CreateRequest {
            id: self.id.map(ReactorId),
            field,
            classification: self.classification,
            name: self.name,
            data: self.data.into(),
            state: self.state,
            event_state: self.event_state,
            delay_ms: i64::from(self.delay),
            direction: self.direction,
            x: self.x,
            y: self.y,
            region: self.region,
            major_version: self.major_version,
            minor_version: self.minor_version,
        }
    }
}

/// Creates a reactor in a field. A taken spot gives `spot_taken`, a spot on cooldown 423.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors",
    tag = "reactors",
    params(FieldPath), request_body = NewReactor,
    responses((status = 201, description = "The reactor", body = Reactor,
        headers(("Location" = String, description = "The URL of the reactor"))), Conflict, OnCooldown))]
pub(super) async fn create_reactor(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
    Json(body): Json<NewReactor>,
) -> Result<Created<Reactor>, ApiError> {
    let reactor = app.reactors.create(tenant, body.at(field)).await?;
    let location = format!("/v1/tenants/{}/reactors/{}", tenant.0, reactor.id);
    Ok(Created { location, body: reactor })
}

/// Which reactors of a field.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NameQuery {
    /// Only reactors with this name.
    #[param(example = "box")]
    name: Option<String>,
}

/// The reactors of a field.
#[derive(Serialize, ToSchema)]
pub(super) struct FieldReactors {
    /// The reactors in the order of their ids.
    reactors: Vec<Reactor>,
    /// Records that could not be read; the others are listed.
    corrupt: Vec<ProblemDetails>,
}

/// Lists the reactors of a field, which has at most 1,000.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors",
    tag = "reactors",
    params(FieldPath, NameQuery),
    responses((status = 200, description = "The reactors", body = FieldReactors)))]
pub(super) async fn list_field_reactors(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
    Query(query): Query<NameQuery>,
) -> Result<Answer<FieldReactors>, ApiError> {
    let listing = match query.name {
        Some(name) => app.reactors.named_in_field(tenant, field, &name).await?,
        None => app.reactors.in_field(tenant, field).await?,
    };
    Ok(Answer(FieldReactors { reactors: listing.living, corrupt: problems(listing.corrupt) }))
}

/// The reactors of a field that were destroyed.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsDestroyed {
    /// The reactors that this call destroyed.
    destroyed: Vec<Reactor>,
    /// Cooldowns that were cleared.
    cooldowns: usize,
    /// Records that could not be read and were left unchanged.
    corrupt: Vec<ProblemDetails>,
    /// The error that stopped the call: call again for the rest.
    stopped: Option<ProblemDetails>,
}

/// Destroys every reactor of a field and clears its cooldowns.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors",
    tag = "reactors",
    params(FieldPath),
    responses((status = 200, description = "The destroyed reactors", body = ReactorsDestroyed)))]
pub(super) async fn destroy_field_reactors(
    State(app): State<AppState>,
    Path((tenant, field)): FieldPath,
) -> Result<Answer<ReactorsDestroyed>, ApiError> {
    let destroyed = app.reactors.destroy_in_field(tenant, field).await?;
    Ok(Answer(ReactorsDestroyed {
        destroyed: destroyed.reactors,
        cooldowns: destroyed.cooldowns,
        corrupt: problems(destroyed.corrupt),
        stopped: destroyed.stopped.map(|error| ApiError::from(error).into_details()),
    }))
}
