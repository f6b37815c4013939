//! Sweeps that callers drive: each call makes some turns of the one sweep of this server.

use crate::limits::SWEEP_TURNS_MAX;
use crate::problem::Problem;
use emberkeep_games::{monsters, reactors};
use serde::Deserialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

/// Sweeps that were begun and are not over. A sweep holds nothing between turns, so one that nobody drives costs nothing.
#[derive(Default)]
pub(crate) struct Sweeps {
    pub(super) monsters: Mutex<Option<monsters::Sweep>>,
    pub(super) reactors: Mutex<Option<reactors::Sweep>>,
}

/// How far to go.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"turns": 100}))]
pub(super) struct Turns {
    /// At most so many turns; each looks at some hundred keys.
    #[schema(minimum = 1, maximum = 1_000)]
    turns: u16,
}

impl Turns {
    pub(super) fn turns(&self) -> Result<u16, Problem> {
        if (1..=SWEEP_TURNS_MAX).contains(&self.turns) {
            return Ok(self.turns);
        }
        let message = format!("{} turns, expected 1 to {SWEEP_TURNS_MAX}", self.turns);
        Err(Problem::invalid(message).with("what", "turns"))
    }
}
