//! From an event to history: what a projection makes of it, and how that is stored. The outbox and the spool share it.
//!
//! 1. A projection turns an event into rows and amounts of totals ([`Batch`]). Each row is checked at once, so an event
//!    that history cannot take is rejected before anything is written.
//! 2. The batches of many entries are stored by few calls. All of it may be repeated: rows overwrite themselves, and an
//!    amount counts once by the source and the sequence of its entry.
//! 3. An entry that is rejected, or that the store refuses for good, becomes a dead letter. The others are stored.

mod batch;
mod deliver;
mod letters;
mod stats;

pub use batch::{Batch, Projection, Rejection};
pub(crate) use deliver::{Delivered, Deliverer, Entry};
pub use stats::ConsumerStats;
