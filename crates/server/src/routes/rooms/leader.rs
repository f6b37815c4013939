//! Who asks in a room: its master, by the key in a header, or somebody with a device.

use crate::app::App;
use crate::extract::{Address, Path};
use crate::headers::{MASTER_KEY, RECONNECT_TOKEN};
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use emberkeep_games::party::{DeviceId, Error, Master, MasterKey, RoomCode};
use serde::Deserialize;
use std::convert::Infallible;
use utoipa::IntoParams;

/// A room.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RoomPath {
    /// The code of the room.
    #[param(example = "AB23CD", pattern = "^[A-HJ-NP-Z2-9]{6}$")]
    code: String,
}

impl RoomPath {
    pub(super) fn code(&self) -> Result<RoomCode, Problem> {
        Ok(RoomCode::new(&self.code)?)
    }
}

/// A caller that has shown the key of the room in the path. It is checked before the body is read.
pub(super) struct Key(pub(super) Master);

/// The key, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the document reads it")]
pub(super) struct KeyHeader {
    /// The key of the room's master.
    #[param(rename = "X-Master-Key", example = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh")]
    key: String,
}

impl FromRequestParts<App> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Key, Problem> {
        let Path(path) = Path::<RoomPath>::from_request_parts(parts, app).await?;
        let code = path.code()?;
        let Ok(Address(from)) = Address::from_request_parts(parts, app).await;
        let shown = parts.headers.get(MASTER_KEY).and_then(|key| key.to_str().ok());
        // A text that cannot be a key is a wrong one.
        let shown = shown.ok_or(Error::MasterOnly(code))?;
        let key = MasterKey::new(shown).map_err(|_| Error::NotMaster(code))?;
        Ok(Key(app.brake.master(&app.rooms, code, &key, from).await?))
    }
}

/// The token of the device that asks.
pub(super) struct Token(Option<String>);

/// The token, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the document reads it")]
pub(super) struct TokenHeader {
    /// The reconnect token that joining gave the device.
    #[param(rename = "X-Reconnect-Token", example = "dGhpcyBpcyBhbiBleGFtcGxlIHRva2Vu", required = false)]
    token: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Token {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Token, Infallible> {
        let shown = parts.headers.get(RECONNECT_TOKEN).and_then(|token| token.to_str().ok());
        Ok(Token(shown.map(str::to_owned)))
    }
}

impl Token {
    /// The room, if the token is the device's. A device that is not known and a wrong token are refused in the same way.
    pub(super) async fn prove(
        &self,
        app: &App,
        path: &RoomPath,
        device: &DeviceId,
    ) -> Result<RoomCode, Problem> {
        let code = path.code()?;
        let token = self.0.as_deref().unwrap_or_default();
        app.rooms.verify_device(code, device, token).await?;
        Ok(code)
    }

    /// The device, if the token is its own; other callers are strangers.
    pub(super) async fn device(
        &self,
        app: &App,
        path: &RoomPath,
        named: Option<DeviceId>,
    ) -> Result<Option<DeviceId>, Problem> {
        let (Some(device), Some(token)) = (named, &self.0) else { return Ok(None) };
        match app.rooms.verify_device(path.code()?, &device, token).await {
            Ok(()) => Ok(Some(device)),
            Err(Error::NotThisDevice | Error::Banned(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The token as it was shown.
    pub(super) fn into_shown(self) -> Option<String> {
        self.0
    }
}
