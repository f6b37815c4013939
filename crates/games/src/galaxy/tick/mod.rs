//! Ticks: how thousands of moving entities become visible at once.
//!
//! A tick is committed in four steps. Each is a transaction, or several, that checks the epoch of the tick engine's
//! lease, so that an engine that was stalled changes nothing after another one took over.
//!
//! 1. All entities are written as immutable chunks, whose keys contain generation and tick.
//! 2. The tick is marked as staged. From here on it will be completed, by this engine or by the next one.
//! 3. The documented hashes are updated, a few in each commit, if their entities still exist.
//! 4. Head, `game:tick`, `game:time` and `game:time_drift` are switched in one transaction.
//!
//! A reader of several entities reads the head and then the chunks that it names, so it sees one tick. What it pays is a
//! read of the head, and one of each chunk; a process remembers the last tick that it read as a whole.

mod change;
mod chunk;
mod commit;
mod lease;
mod pins;
mod read;
mod records;
mod reset;
mod stage;
mod world;

pub use change::{Change, MotionChange};
pub use chunk::Chunk;
pub(crate) use commit::running;
pub use commit::{NextTick, TickRun};
pub use lease::StartRequest;
pub use pins::PinnedTick;
pub(crate) use read::TickCache;
pub use read::{SystemView, TickView};
pub use records::{Era, Phase, StagedTick, SystemChunks, TickHead};
pub use stage::Staged;
pub use world::{BodyState, Entity, ShipState, StructureState, World};
