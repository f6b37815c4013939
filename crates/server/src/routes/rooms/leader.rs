//! Who asks in a room: its master, by the key in a header, or somebody with a device.

use crate::app::App;
use crate::extract::Address;
use crate::headers::MASTER_KEY;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use emberkeep_games::party::{Error, Master, MasterKey, RoomCode};
use serde::Deserialize;
use std::convert::Infallible;
use std::net::IpAddr;
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

/// The key of a room's master, and who shows it.
pub(super) struct Key {
    shown: Option<String>,
    from: IpAddr,
}

/// The key, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only the document reads it")]
pub(super) struct KeyHeader {
    /// The key of the room's master.
    #[param(rename = "X-Master-Key", example = "dGhpcyBpcyBhbiBleGFtcGxlIGtleSEh")]
    key: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Key, Infallible> {
        let shown = parts.headers.get(MASTER_KEY).and_then(|key| key.to_str().ok()).map(str::to_owned);
        let Address(from) = Address::from_request_parts(parts, state).await?;
        Ok(Key { shown, from })
    }
}

impl Key {
    /// The proof that the caller leads the room. Wrong keys are answered slower and slower.
    pub(super) async fn lead(&self, app: &App, path: &RoomPath) -> Result<Master, Problem> {
        let code = path.code()?;
        let shown = self.shown.as_deref().ok_or(Error::NotMaster(code))?;
        Ok(app.brake.master(&app.rooms, code, &MasterKey::new(shown)?, self.from).await?)
    }

    /// Whether a key was shown at all.
    pub(super) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }
}
