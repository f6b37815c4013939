//! Wake-up messages for the subscribers of a room. They contain no events; subscribers read the log.

use super::model::RoomCode;
use super::schema::ROOM_CHANNEL;
use emberkeep_hot::pubsub::{Event as Message, Subscription};
use emberkeep_schema::{Codec, Family, Json, KeyLayout};
use serde::{Deserialize, Serialize};

/// A message on the room's channel. `Missed` is never published; the subscription reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Wakeup {
    /// The log has events up to this sequence.
    Events {
        /// The sequence of the newest event in the log.
        last: u64,
    },
    /// The room was closed and its log removed. This is the last message.
    Closed,
    /// Messages were lost, or one was unreadable. Read the log or the state.
    #[serde(other)]
    Missed,
}

/// A subscription to the wake-ups of one room.
pub struct RoomSubscription {
    pub(super) messages: Subscription,
}

impl RoomSubscription {
    /// The next message; `None` after the store was closed.
    pub async fn next(&mut self) -> Option<Wakeup> {
        Some(match self.messages.next().await? {
            Message::Message { payload, .. } => read(&payload),
            Message::Missed { .. } => Wakeup::Missed,
        })
    }
}

/// A subscription to the wake-ups of all rooms of a store.
pub struct AllRoomsSubscription {
    pub(super) messages: Subscription,
    pub(super) layout: KeyLayout,
}

impl AllRoomsSubscription {
    /// The next message and its room, or no room if it concerns all of them. `None` after the store was
    /// closed.
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

/// An unreadable message of an external client is a reason to read the log, not to stop.
fn read(payload: &[u8]) -> Wakeup {
    Json::<Wakeup>::decode(payload).unwrap_or(Wakeup::Missed)
}
