//! The spool: a durable, bounded queue in a local folder, for events of high volume that no transaction of hot state
//! carries.
//!
//! [`Spool::record`] returns when the event is as safe as the mode promises, whether or not history can be reached. A
//! [`SpoolConsumer`] delivers in the background, by the same projections as an [outbox](crate::outbox), and removes
//! segments when all of their events are acknowledged in history.
//!
//! | file | content |
//! |---|---|
//! | `lock` | held by the one process that uses the folder |
//! | `spool-00000001.seg` | a segment: records with checksums, in the journal's format. The first one is its header: the id of the source |
//!
//! 1. **Each opening has a new source id**, and its events have the positions 1, 2, 3 and so on. An event counts once by
//!    source and position, however often its segment is delivered.
//! 2. Therefore a copied folder is harmless: both copies deliver the old segments under the old ids, and what either
//!    records afterwards has an id of its own. Nothing has to detect the copy.
//! 3. A full spool refuses ([`Error::SpoolFull`](crate::Error)), it never drops.
//! 4. What a crash leaves at the end of a segment, half a record, was not answered and is cut. Damage of what was synced
//!    is an error that names the file.
#![doc = include_str!("../../docs/spool.md")]

mod consumer;
mod folder;
mod queue;
mod recorder;

pub use consumer::SpoolConsumer;
pub(crate) use folder::{folder_error, has_segments};
pub(crate) use queue::Page;
pub use queue::SpoolStats;
pub(crate) use recorder::Handle;
pub use recorder::{Recorded, Spool, SpoolMode, SpoolOptions};
