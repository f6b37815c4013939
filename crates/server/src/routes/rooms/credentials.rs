//! Credentials of a room: the master key, and the reconnect token of a device. Also the rate limit of room
//! creation.

use crate::error::ApiError;
use crate::extract::{ClientAddress, FromPath, Path, PathParameters};
use crate::headers::{MASTER_KEY, RECONNECT_TOKEN};
use crate::limit::login_backoff::Refusal;
use crate::limits::ROOM_RATE_RETRY;
use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use emberkeep_games::party::{DeviceId, Error, Master, MasterKey, RoomCode};
use std::convert::Infallible;
use utoipa::IntoParams;

/// The room that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RoomPath {
    /// The code of the room.
    #[param(example = "AB23CD", pattern = "^[A-HJ-NP-Z2-9]{6}$")]
    code: String,
}

impl FromPath for RoomPath {
    fn from_path(parameters: &PathParameters) -> Result<RoomPath, ApiError> {
        Ok(RoomPath { code: parameters.get("code")? })
    }
}

impl RoomPath {
    pub(super) fn code(&self) -> Result<RoomCode, ApiError> {
        Ok(RoomCode::new(&self.code)?)
    }
}

/// Proof of the master key of the room in the path. It is checked before the body is read.
pub(super) struct RoomMaster(pub(super) Master);

/// The header of the master key, for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the document reads it")]
pub(super) struct MasterKeyParam {
    /// The master key of the room.
    #[param(rename = "X-Master-Key", example = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh")]
    key: String,
}

impl FromRequestParts<AppState> for RoomMaster {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<RoomMaster, ApiError> {
        let Path(path) = Path::<RoomPath>::from_request_parts(parts, app).await?;
        let code = path.code()?;
        let Ok(ClientAddress(address)) = ClientAddress::from_request_parts(parts, app).await;
        let shown = parts.headers.get(MASTER_KEY).and_then(|key| key.to_str().ok());
        // A malformed key is answered like a wrong one.
        let shown = shown.ok_or(Error::MasterOnly(code))?;
        let key = MasterKey::new(shown).map_err(|_| Error::NotMaster(code))?;
        match app.login_backoff.verify_master(&app.rooms, code, &key, address).await {
            Ok(master) => Ok(RoomMaster(master)),
            Err(Refusal::Room(error)) => Err(error.into()),
            Err(Refusal::Backoff { wait }) => {
                let detail = "too many wrong master keys; wait, then try again";
                Err(ApiError::rate_limited(detail).retry_after(wait))
            }
        }
    }
}

/// Limits requests without a service token per client address.
pub(super) struct RoomRateLimit;

impl FromRequestParts<AppState> for RoomRateLimit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<RoomRateLimit, ApiError> {
        let Ok(ClientAddress(address)) = ClientAddress::from_request_parts(parts, app).await;
        if app.has_service_token(&parts.headers) || app.access.room_rate.try_take(address) {
            return Ok(RoomRateLimit);
        }
        let detail = "too many rooms created or set up from this address; wait, then try again";
        Err(ApiError::rate_limited(detail).retry_after(ROOM_RATE_RETRY))
    }
}

/// The reconnect token of the calling device; `None` without the header.
pub(super) struct ReconnectToken(Option<String>);

/// The header of the reconnect token, for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the document reads it")]
pub(super) struct ReconnectTokenParam {
    /// The reconnect token that joining gave the device.
    #[param(rename = "X-Reconnect-Token", example = "dGhpcyBpcyBhbiBleGFtcGxlIHRva2Vu", required = false)]
    token: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ReconnectToken {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ReconnectToken, Infallible> {
        let token = parts.headers.get(RECONNECT_TOKEN).and_then(|token| token.to_str().ok());
        Ok(ReconnectToken(token.map(str::to_owned)))
    }
}

impl ReconnectToken {
    /// Verifies the token and returns the room. An unknown device and a wrong token get the same error.
    pub(super) async fn verify(
        &self,
        app: &AppState,
        path: &RoomPath,
        device: &DeviceId,
    ) -> Result<RoomCode, ApiError> {
        let code = path.code()?;
        let token = self.0.as_deref().unwrap_or_default();
        app.rooms.verify_device(code, device, token).await?;
        Ok(code)
    }

    /// The device if the token is valid for it, otherwise `None`.
    pub(super) async fn verified_device(
        &self,
        app: &AppState,
        path: &RoomPath,
        named: Option<DeviceId>,
    ) -> Result<Option<DeviceId>, ApiError> {
        let (Some(device), Some(token)) = (named, &self.0) else { return Ok(None) };
        match app.rooms.verify_device(path.code()?, &device, token).await {
            Ok(()) => Ok(Some(device)),
            Err(Error::NotThisDevice | Error::Banned(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The token as it was sent, not compared with anything.
    pub(super) fn into_text(self) -> Option<String> {
        self.0
    }
}
