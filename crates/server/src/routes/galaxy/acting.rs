//! As which service a call acts: the one that its token names, else the owner of what it writes.

use crate::error::ApiError;
use crate::extract::ActingService;
use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use emberkeep_games::galaxy::{self, GalaxyState};
use emberkeep_schema::Schema;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Schema> = LazyLock::new(galaxy::schema);

/// The galaxy, as the service of the caller's token. Without one its handles act as the owners of what they write.
pub(super) struct Acting(pub(super) GalaxyState);

impl FromRequestParts<AppState> for Acting {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Acting, ApiError> {
        let Ok(service) = ActingService::from_request_parts(parts, app).await;
        acting(&app.galaxy, &service).map(Acting)
    }
}

/// The galaxy as a service; 403 if Galaxy has no such service.
pub(super) fn acting(galaxy: &GalaxyState, service: &ActingService) -> Result<GalaxyState, ApiError> {
    let declared = service.declared_in(&SCHEMA)?;
    Ok(declared.map_or_else(|| galaxy.clone(), |declared| galaxy.acting_as(declared)))
}
