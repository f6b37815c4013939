//! What wakes those who follow a room. The log says what happened; a message only says that something did.

use super::model::RoomCode;
use super::schema::ROOM_CHANNEL;
use emberkeep_hot::pubsub::{Event as Message, Subscription};
use emberkeep_schema::{Codec, Family, Json, KeyLayout};
use serde::{Deserialize, Serialize};

/// What a follower of a room is told; but for `Missed`, a message on the room's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Wakeup {
    /// There are events up to this sequence.
    Events {
        /// The newest one.
        last: u64,
    },
    /// The room was closed: its log is gone, this is the last word.
    Closed,
    /// Messages were lost, or one cannot be read: look into the log, or at the state.
    #[serde(other)]
    Missed,
}

/// Who follows a room.
pub struct RoomSubscription {
    pub(super) messages: Subscription,
}

impl RoomSubscription {
    /// What comes next; `None` when the store was closed.
    pub async fn next(&mut self) -> Option<Wakeup> {
        Some(match self.messages.next().await? {
            Message::Message { payload, .. } => read(&payload),
            Message::Missed { .. } => Wakeup::Missed,
        })
    }
}

/// Who follows all rooms of a store.
pub struct AllRoomsSubscription {
    pub(super) messages: Subscription,
    pub(super) layout: KeyLayout,
}

impl AllRoomsSubscription {
    /// What comes next, and of which room; of no room means of any. `None` when the store was closed.
    pub async fn next(&mut self) -> Option<(Option<RoomCode>, Wakeup)> {
        Some(match self.messages.next().await? {
            Message::Message { channel, payload } => {
                let parsed = ROOM_CHANNEL::parse(&self.layout, &channel);
                (parsed.and_then(|(room, _)| room).map(|room| room.0), read(&payload))
            }
            Message::Missed { .. } => (None, Wakeup::Missed),
        })
    }
}

/// What an external client publishes there is no reason to stop listening, but one to look.
fn read(payload: &[u8]) -> Wakeup {
    Json::<Wakeup>::decode(payload).unwrap_or(Wakeup::Missed)
}
