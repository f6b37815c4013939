//! Reactors of a field: creating, listing, ending all.

use super::kind::Kind;
use super::shape;
use crate::app::App;
use crate::extract::{Json, Path, Query};
use crate::problem::{Body, Problem};
use crate::routes::answers::{Conflict, Cooling, Created, told};
use crate::routes::place::FieldPath;
use axum::Json as Answer;
use axum::extract::State;
use emberkeep_games::reactors::{CreateRequest, Reactor, ReactorId};
use emberkeep_games::world::Field;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A new reactor.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"classification": 2001, "name": "box", "x": -315, "y": 88, "delay": 60_000,
    "data": {"stateInfo": {"0": [{"type": 0, "nextState": 1}], "1": []}}}))]
pub(super) struct NewReactor {
    /// An id that was allocated before; without it the next one.
    #[schema(minimum = 1_000_000_001, maximum = 2_000_000_000)]
    id: Option<u32>,
    /// What kind of reactor, at least 1.
    #[schema(minimum = 1)]
    classification: u32,
    /// What scripts call it.
    #[serde(default)]
    name: String,
    /// What it does, state by state.
    #[serde(default)]
    data: Kind,
    /// The state it begins in.
    #[serde(default)]
    state: i8,
    /// What its event is up to.
    #[serde(default)]
    event_state: u8,
    /// Milliseconds for which its spot cools down after it; 0 is not at all.
    #[serde(default)]
    delay: u32,
    /// Which way it faces.
    #[serde(default)]
    direction: u8,
    /// Where in the field.
    x: i16,
    /// Where in the field.
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

/// Brings a reactor into a field. `spot_taken` if one of its kind stands there, 423 while the spot cools down.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors", tag = "reactors",
    params(FieldPath), responses((status = 201, description = "The reactor", body = shape::Reactor,
        headers(("Location" = String, description = "Where it is read"))), Conflict, Cooling))]
pub(super) async fn create_reactor(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
    Json(body): Json<NewReactor>,
) -> Result<Created<Reactor>, Problem> {
    let tenant = path.tenant();
    let reactor = app.reactors.create(tenant, body.at(path.field())).await?;
    let location = format!("/v1/tenants/{}/reactors/{}", tenant.0, reactor.id);
    Ok(Created { location, body: reactor })
}

/// Which reactors of a field.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Named {
    /// Only those of this name.
    #[param(example = "box")]
    name: Option<String>,
}

/// The reactors of a field.
#[derive(Serialize, ToSchema)]
pub(super) struct FieldReactors {
    /// Those that stand there, in the order of their ids.
    #[schema(value_type = Vec<shape::Reactor>)]
    reactors: Vec<Reactor>,
    /// Records that could not be read. They do not hide the others.
    corrupt: Vec<Body>,
}

/// Lists the reactors of a field. A field takes at most 1,000.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors", tag = "reactors",
    params(FieldPath, Named), responses((status = 200, description = "The reactors", body = FieldReactors)))]
pub(super) async fn list_field_reactors(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
    Query(query): Query<Named>,
) -> Result<Answer<FieldReactors>, Problem> {
    let (tenant, field) = (path.tenant(), path.field());
    let listing = match query.name {
        Some(name) => app.reactors.named_in_field(tenant, field, &name).await?,
        None => app.reactors.in_field(tenant, field).await?,
    };
    Ok(Answer(FieldReactors { reactors: listing.living, corrupt: told(listing.corrupt) }))
}

/// What became of a field's reactors.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsDestroyed {
    /// Those that this call destroyed, as they were at their end.
    #[schema(value_type = Vec<shape::Reactor>)]
    destroyed: Vec<Reactor>,
    /// Cooldowns that were cleared.
    cooldowns: usize,
    /// Records that could not be read, and were left as they are.
    corrupt: Vec<Body>,
    /// What kept the call from going on: call again for the rest.
    stopped: Option<Body>,
}

/// Destroys every reactor of a field and clears its cooldowns.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/fields/{world}/{channel}/{map}/{instance}/reactors", tag = "reactors",
    params(FieldPath), responses((status = 200, description = "Those that this call destroyed", body = ReactorsDestroyed)))]
pub(super) async fn destroy_field_reactors(
    State(app): State<App>,
    Path(path): Path<FieldPath>,
) -> Result<Answer<ReactorsDestroyed>, Problem> {
    let destroyed = app.reactors.destroy_in_field(path.tenant(), path.field()).await?;
    Ok(Answer(ReactorsDestroyed {
        destroyed: destroyed.reactors,
        cooldowns: destroyed.cooldowns,
        corrupt: told(destroyed.corrupt),
        stopped: destroyed.stopped.map(|error| Problem::from(error).into_body()),
    }))
}
