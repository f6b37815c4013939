//! Party: rooms for a game on phones. People join with a code, take a player each, and guess who sent what.
//!
//! Promises: a player has one device and a device one player; the first vote of a player on an item counts, and none
//! after the end of the vote; a vote ends once, whoever notices; who is not the master sees no vote and no true sender
//! before they are shown; all keys of a room end together, a day after the last thing that anybody did in it.

mod entropy;
mod error;
mod event;
pub mod limits;
pub mod model;
#[cfg(feature = "openapi")]
mod openapi;
mod request;
pub mod rules;
mod schema;
mod service;
mod signal;
pub mod view;

pub use entropy::Entropy;
pub use error::{Error, Result};
pub use event::{Audience, Closing, Entry, Event, EventPage, Followed, Invalidation, Recorded};
pub use model::{DeviceId, ItemId, MasterKey, PlayerId, Room, RoomCode, RoundId, SenderId};
pub use request::{Setup, SetupItem, SetupPlayer, SetupRound, SetupSender};
pub use schema::{
    DEVICE_TO_PLAYER, PLAYER_TO_DEVICE, ROOM_CHANNEL, ROOM_DEVICES, ROOM_META, ROOM_ROSTER, ROOM_STATE,
    VOTES, VOTES_RECEIVED, schema,
};
pub use service::{Admitted, Created, JoinRequest, Joined, Master, Rooms, Settled, Voted};
pub use signal::{Follower, FollowerOfAll, Signal};
pub use view::{Look, MasterSync, PlayerSync};
