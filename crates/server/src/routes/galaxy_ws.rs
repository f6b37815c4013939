//! The WebSocket handshake of Galaxy's stream.

use super::ws::{check_origin, limited, too_many_sockets, upgrade_required};
use crate::auth::bearer_token;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::ClientAddress;
use crate::state::AppState;
use crate::ws::Timing;
use crate::ws::galaxy::{GalaxyClient, serve};
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(galaxy_ws))
}

/// Opens a WebSocket to the ticks of Galaxy. The Galaxy protocol describes the messages; the first one carries the token.
#[utoipa::path(get, path = "/ws/galaxy", tag = "galaxy",
    responses((status = 101, description = "The connection speaks WebSocket from here on"),
        (status = 403, description = "Pages of this origin may not open a WebSocket", body = ProblemDetails,
            content_type = "application/problem+json"),
        (status = 426, description = "The request is not a WebSocket handshake", body = ProblemDetails,
            content_type = "application/problem+json"),
        (status = 429, description = "Too many WebSockets from one address", body = ProblemDetails,
            content_type = "application/problem+json")))]
async fn galaxy_ws(
    State(app): State<AppState>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    check_origin(&app, &headers)?;
    let upgrade = upgrade.map_err(upgrade_required)?;
    let permit = app.galaxy_feeds.connections().acquire(address).ok_or_else(too_many_sockets)?;
    let client = GalaxyClient {
        feeds: app.galaxy_feeds.clone(),
        gateway: app.galaxy_gateway.clone(),
        tokens: app.access.tokens.clone(),
        token: bearer_token(&headers).map(str::to_owned),
        timing: Timing::of_galaxy(),
    };
    Ok(limited(upgrade).on_upgrade(move |socket| serve(client, socket, permit)))
}
