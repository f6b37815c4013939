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
    if !app.access.ws_origins.allow(headers.get(ORIGIN)) {
        let detail =
            "this page may not open a WebSocket here; add its origin to the server's setting `ws-origins`";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail));
    }
    let upgrade = upgrade.map_err(|rejection| {
        let detail = format!("expected a WebSocket handshake: {}", rejection.body_text());
        ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", detail)
    })?;
    let permit = app.hubs.connections().acquire(address).ok_or_else(|| {
        let detail = format!("this address has {SOCKETS_PER_ADDRESS_MAX} WebSockets already; close some");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sockets", detail)
    })?;
    let gateway = Gateway {
        hubs: app.hubs.clone(),
        room_codes: app.room_codes.clone(),
        login_backoff: app.login_backoff.clone(),
        address,
    };
    Ok(upgrade
        .read_buffer_size(SOCKET_READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(SOCKET_MESSAGE_BYTES_MAX)
        .max_frame_size(SOCKET_MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| serve(gateway, socket, permit)))
}
