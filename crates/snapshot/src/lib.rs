//! Snapshots: the state of one partition, stored apart from hot state, compared with it and restored.
//!
//! Responsible for: the contract of a store of snapshots ([`SnapshotStore`]), the store in one folder
//! ([`FileStore`]), creating while the game runs, comparing, restoring, pruning, schedules.
//! Not responsible for: how an engine shows all keys at one moment (`emberkeep-hot`), PostgreSQL
//! (`emberkeep-snapshot-postgres`), any game.
//!
//! ```
//! # use emberkeep_hot::{Store, embedded::Embedded, store::PartitionKeys};
//! # use emberkeep_schema::{Name, Text, Utf8, family, partition, schema};
//! # use emberkeep_snapshot::{FileStore, KeyChoice, Label, SnapshotStore, Snapshots};
//! # partition! { /// A room.
//! #     pub struct Room(Name) as "room"; }
//! # family! { /// A note.
//! #     pub NOTE = "note:{room}:{id}" {
//! #         kind: Text<Utf8>, partition: Room, parts: (id: u32), ttl: persistent, owner: "docs" } }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("emberkeep-doc-{}", std::process::id()));
//! let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
//! let room = Room(Name::new("r1").expect("a word"));
//! store.scope(room.clone()).put(&NOTE.key(1), "before".into()).await?;
//!
//! let snapshots = Snapshots::new(store.clone(), FileStore::open(&folder)?.shared());
//! let keys = PartitionKeys::of(&schema![NOTE]?, &room);
//! let taken = snapshots.create(&keys, Label::named("start"), &mut |_| ()).await?;
//!
//! store.scope(room.clone()).put(&NOTE.key(1), "after".into()).await?;
//! let changes = snapshots.preview(&taken.id, &keys, &KeyChoice::all()).await?;
//! assert_eq!((changes.changed, changes.added), (1, 0));
//! snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await?;
//! assert_eq!(store.scope(room).get(&NOTE.key(1)).await?.as_deref(), Some("before"));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```

mod choice;
mod compare;
mod contract;
mod create;
mod encode;
mod error;
mod file;
mod id;
mod info;
pub mod limits;
mod names;
mod prune;
mod restore;
mod schedule;
mod snapshots;
#[cfg(feature = "testing")]
pub mod testing;
mod verify;

pub use choice::KeyChoice;
pub use compare::{Change, Changes};
pub use contract::{Listing, SnapshotReader, SnapshotStore, SnapshotWriter};
pub use create::{KeySource, Progress};
pub use encode::{content_from, kind_from, kind_number, push_content, push_key};
pub use error::{Error, Result};
pub use file::FileStore;
pub use id::{InvalidSnapshotId, SnapshotId};
pub use info::{DamagedSnapshot, Label, SnapshotInfo};
pub use prune::Retention;
pub use restore::{RestoreMark, RestoreReport};
pub use schedule::Schedule;
pub use snapshots::Snapshots;
