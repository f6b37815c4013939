//! What travels from one shard to another.

use super::model::{EntityId, Play, Point, Session, ZoneId};
use super::schema::{HANDOFFS_DEAD, HANDOFFS_OUT, HANDOFFS_RECEIVED, HANDOFFS_STATE, Shard};
use emberkeep_primitives::mail::Mail;
use emberkeep_schema::{Json, Key, record};

record! {
    /// A connection of a player on the way to another shard.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PassedConnection {
        /// The id of its hash, `internal:conn:{id}`.
        pub id: String => "id",
        /// Its fields, also those of other programs.
        pub fields: Vec<(String, String)> => "fields",
    }
}

record! {
    /// A player on the way to a zone of another shard, with all that belongs to it. In the source's outbox, then an arrival
    /// of the target.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Passage {
        /// The entity of the player.
        pub entity_id: i64 => "entity_id",
        /// The number of the hand-off: it is accepted once.
        pub number: i64 => "number",
        /// The zone that it left.
        pub source_zone: i32 => "source_zone",
        /// The shard that it left.
        pub source_shard: u16 => "source_shard",
        /// The zone that it enters.
        pub target_zone: i32 => "target_zone",
        /// When it left, in milliseconds since 1970.
        pub left_at: i64 => "left_at",
        /// The target did not accept it in time: it is on its way back, and is taken in without being asked for.
        pub returns: bool => "returns" or false,
        /// The session, with the position at which it arrives.
        pub session: Session => "session",
        /// The play record, as it was when the player left.
        pub play: Play => "play",
        /// The open connections.
        pub connections: Vec<PassedConnection> => "connections" default,
    }
}

impl Passage {
    /// The entity of the player.
    pub fn entity(&self) -> EntityId {
        EntityId(self.entity_id)
    }

    /// The zone that it enters.
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.target_zone)
    }

    /// The play record as the target has it: with the number of the hand-off.
    pub(super) fn play_here(&self) -> Play {
        Play { number: self.number, ..self.play.clone() }
    }

    /// Where it arrives in the target zone.
    pub fn position(&self) -> &Point {
        &self.session.position
    }
}

/// The mail that carries passages between shards.
pub(super) struct Passages;

impl Mail for Passages {
    type From = Shard;
    type To = Shard;
    type Codec = Json<Passage>;
    type Outbox = HANDOFFS_OUT;
    type State = HANDOFFS_STATE;
    type Received = HANDOFFS_RECEIVED;
    type Dead = HANDOFFS_DEAD;

    fn outbox() -> Key<HANDOFFS_OUT> {
        HANDOFFS_OUT.key()
    }

    fn state() -> Key<HANDOFFS_STATE> {
        HANDOFFS_STATE.key()
    }

    fn received(from: &Shard) -> Key<HANDOFFS_RECEIVED> {
        HANDOFFS_RECEIVED.key(from.0)
    }

    fn dead() -> Key<HANDOFFS_DEAD> {
        HANDOFFS_DEAD.key()
    }
}
