//! The stored types of a room. Their JSON names are those of the storage document; unknown fields are
//! preserved.

mod code;
mod device;
mod game;
mod ids;
mod lobby;
mod meta;
mod votes;

pub use code::{Room, RoomCode};
pub use device::{Ban, Device, Loss};
pub use game::{Game, Item, Plan, Points, Round, Status};
pub use ids::{DeviceId, ItemId, PlayerId, RoundId, SenderId};
pub use lobby::{Lobby, Phase, Player, Sender, State};
pub(crate) use meta::digest;
pub use meta::{MasterKey, Meta};
pub use votes::{PlayerResult, Selections, VoteResults};
