//! The request of the sweep routes.

use crate::error::ApiError;
use crate::limits::SWEEP_TURNS_MAX;
use serde::Deserialize;
use utoipa::ToSchema;

/// How much of the sweep to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"turns": 100}))]
pub(super) struct Turns {
    /// At most this many turns; each reads some hundred keys.
    #[schema(minimum = 1, maximum = 1_000)]
    turns: u16,
}

impl Turns {
    pub(super) fn turns(&self) -> Result<u16, ApiError> {
        if (1..=SWEEP_TURNS_MAX).contains(&self.turns) {
            return Ok(self.turns);
        }
        let message = format!("{} turns, expected 1 to {SWEEP_TURNS_MAX}", self.turns);
        Err(ApiError::invalid(message).with("what", "turns"))
    }
}
