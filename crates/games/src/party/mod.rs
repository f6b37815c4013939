//! Party: rooms for a game on phones. People join with a code, take a player each, and guess who sent which
//! reel.
//!
//! Promises: a player has one device, and a device has one player. The first vote of a player on an item
//! counts, and none after the vote has closed. A vote closes once, whichever process notices first. Only the
//! master sees votes and true senders before they are revealed. All keys of a room expire together, a day
//! after its last use.

mod error;
mod event;
pub mod limits;
pub mod model;
#[cfg(feature = "openapi")]
mod openapi;
mod random;
mod request;
pub mod rules;
mod schema;
mod service;
pub mod view;
mod wakeup;

pub use error::{Error, Result};
pub use event::{Audience, CloseReason, Entry, Event, EventPage, Invalidation, RoomUpdate, SequencedEvent};
pub use model::{DeviceId, ItemId, MasterKey, PlayerId, Room, RoomCode, RoundId, SenderId};
pub use random::RandomSource;
pub use request::{Setup, SetupItem, SetupPlayer, SetupRound, SetupSender};
pub use schema::{
    DEVICE_TO_PLAYER, PLAYER_TO_DEVICE, ROOM_CHANNEL, ROOM_DEVICES, ROOM_LOG, ROOM_META, ROOM_ROSTER,
    ROOM_STATE, VOTES, VOTES_RECEIVED, schema,
};
pub use service::{Admission, JoinReply, JoinRequest, Master, NewRoom, Rooms, Settlement, VoteReceipt};
pub use view::{MasterSync, PlayerSync, RoomSnapshot};
pub use wakeup::{AllRoomsSubscription, RoomSubscription, Wakeup};
