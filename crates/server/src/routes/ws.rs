//! The WebSocket handshake.

use crate::error::{ApiError, ProblemDetails};
use crate::extract::ClientAddress;
use crate::limits::*;
use crate::state::AppState;
use crate::ws::{Gateway, serve};
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, StatusCode, header::ORIGIN};
use axum::response::Response;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(ws))
}

/// Opens a WebSocket to a room. The party protocol describes the messages.
#[utoipa::path(get, path = "/ws", tag = "rooms",
    responses((status = 101, description = "The connection speaks WebSocket from here on"),
        (status = 403, description = "Pages of this origin may not open a WebSocket", body = ProblemDetails,
            content_type = "application/problem+json"),
        (status = 426, description = "The request is not a WebSocket handshake", body = ProblemDetails,
            content_type = "application/problem+json"),
        (status = 429, description = "Too many WebSockets from one address", body = ProblemDetails,
            content_type = "application/problem+json")))]
async fn ws(
    State(app): State<AppState>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    check_origin(&app, &headers)?;
    let upgrade = upgrade.map_err(upgrade_required)?;
    let permit = app.hubs.connections().acquire(address).ok_or_else(too_many_sockets)?;
    let gateway = Gateway {
        hubs: app.hubs.clone(),
        room_codes: app.room_codes.clone(),
        login_backoff: app.login_backoff.clone(),
        address,
    };
    Ok(limited(upgrade).on_upgrade(move |socket| serve(gateway, socket, permit)))
}

/// Refuses pages of other origins.
pub(super) fn check_origin(app: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    if app.access.ws_origins.allow(headers.get(ORIGIN)) {
        return Ok(());
    }
    let detail =
        "this page may not open a WebSocket here; add its origin to the server's setting `ws-origins`";
    Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail))
}

/// The answer to a request that is no handshake.
pub(super) fn upgrade_required(rejection: WebSocketUpgradeRejection) -> ApiError {
    let detail = format!("expected a WebSocket handshake: {}", rejection.body_text());
    ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", detail)
}

/// The answer to an address that has its share.
pub(super) fn too_many_sockets() -> ApiError {
    let detail = format!("this address has {SOCKETS_PER_ADDRESS_MAX} WebSockets already; close some");
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sockets", detail)
}

/// A handshake with the limits of every WebSocket.
pub(super) fn limited(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .read_buffer_size(SOCKET_READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(SOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(SOCKET_MESSAGE_BYTES_MAX)
}
