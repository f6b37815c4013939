//! What is stored about ticks besides their chunks.

use crate::galaxy::model::GameTime;
use emberkeep_schema::{Array, record};
use serde::{Deserialize, Serialize};

/// What happens to the galaxy as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The game runs.
    #[default]
    Running,
    /// It is being cleared; the next tick engine completes that.
    Reset,
    /// A snapshot is being restored.
    Restore,
}

impl Phase {
    /// The text that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Running => "running",
            Phase::Reset => "reset",
            Phase::Restore => "restore",
        }
    }
}

record! {
    /// The generation of hot state. A reset or a restore begins the next one.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Era {
        /// Counts from 1.
        pub generation: i64 => "generation",
        /// What is under way.
        pub phase: Phase => "phase" default,
    }
}

record! {
    /// In which chunks the entities of a system are.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SystemChunks {
        /// The star system.
        pub system: String => "system",
        /// The first chunk.
        pub first: i64 => "first",
        /// The last chunk.
        pub last: i64 => "last",
    }
}

record! {
    /// A tick that can be read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TickHead {
        /// The generation of hot state.
        pub generation: i64 => "generation",
        /// The number of the tick in its generation.
        pub tick: i64 => "tick",
        /// The exact game time, in microseconds since 1970.
        pub time_us: i64 => "time_us",
        /// Seconds by which game time is behind UTC.
        pub drift: f64 => "drift" or 0.0,
        /// How many chunks it has.
        pub chunks: i64 => "chunks" or 0,
        /// How many entities.
        pub entities: i64 => "entities" or 0,
        /// The last queued change that it has applied.
        pub changes: u64 => "changes" or 0,
        /// The chunks of each system; empty if there are too many systems.
        pub systems: Array<SystemChunks> => "systems" default,
    }
}

impl TickHead {
    /// Its game time.
    pub fn time(&self) -> GameTime {
        GameTime::from_micros(self.time_us)
    }

    /// The name of a tick in auxiliary hashes.
    pub(super) fn label(&self) -> String {
        label(self.generation, self.tick)
    }

    /// The chunks that contain a system: first and last.
    pub(super) fn chunks_of(&self, system: &str) -> Option<(i64, i64)> {
        if self.systems.is_empty() {
            return (self.chunks > 0).then_some((0, self.chunks - 1));
        }
        let found = self.systems.iter().find(|one| one.system == system)?;
        Some((found.first, found.last))
    }
}

/// The name of a tick in auxiliary hashes.
pub(super) fn label(generation: i64, tick: i64) -> String {
    format!("{generation}-{tick}")
}

/// Generation and tick of such a name, and what follows it.
pub(super) fn parse_label(text: &str) -> Option<(i64, i64, &str)> {
    let (generation, rest) = text.split_once('-')?;
    let (tick, rest) = rest.split_once('-').unwrap_or((rest, ""));
    Some((generation.parse().ok()?, tick.parse().ok()?, rest))
}

record! {
    /// A tick whose chunks are complete.
    #[derive(Clone, Debug, PartialEq)]
    pub struct StagedTick {
        /// The epoch of the engine that staged it.
        pub epoch: i64 => "epoch",
        /// What becomes the head.
        pub head: TickHead => "head",
    }
}
