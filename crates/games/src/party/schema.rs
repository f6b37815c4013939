//! The key families of a room: those of its storage document, and four of our own.
//!
//! All keys of a room expire together, except the meta, which stays as a tombstone.

use super::event::Entry;
use super::limits::EVENTS_MAX;
use super::model::{Device, DeviceId, ItemId, Meta, PlayerId, Room, RoundId, Selections, State};
use super::wakeup::Wakeup;
use emberkeep_primitives::{Ballot, Claims, ExpiringGroup, expiring_group::member};
use emberkeep_schema::{Channel, Hash, Json, Log, Newest, Raw, Schema, Set, Text, family};

family! {
    /// Creation and expiry of the room, and the digest of its master key. Outlives the room by a day.
    pub ROOM_META = "brp:room:{code}:meta" {
        kind: Text<Json<Meta>>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// The state of the room, without claims and votes.
    pub ROOM_STATE = "brp:room:{code}:state" {
        kind: Text<Json<State>>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// The player of each device.
    pub DEVICE_TO_PLAYER = "brp:room:{code}:device_to_player" {
        kind: Hash<DeviceId, PlayerId>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// The device of each player.
    pub PLAYER_TO_DEVICE = "brp:room:{code}:player_to_device" {
        kind: Hash<PlayerId, DeviceId>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// The votes on the current item.
    pub VOTES = "brp:room:{code}:vote:{round_id}:{item_id}" {
        kind: Hash<PlayerId, Selections>,
        partition: Room,
        parts: (round_id: RoundId, item_id: ItemId),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// The players whose vote on the current item was received.
    pub VOTES_RECEIVED = "brp:room:{code}:vote_received:{round_id}:{item_id}" {
        kind: Set<PlayerId>,
        partition: Room,
        parts: (round_id: RoundId, item_id: ItemId),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// Auxiliary index: the names of the room's keys. They expire together without a scan.
    pub ROOM_ROSTER = "brp:room:{code}:ember:roster" {
        kind: Set<Raw>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
    }
}

family! {
    /// What the room knows of each device: the digest of its reconnect token, and how it lost its player.
    pub ROOM_DEVICES = "brp:room:{code}:ember:devices" {
        kind: Hash<DeviceId, Json<Device>>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
    }
}

family! {
    /// The events of the room. Its state names the last one that it includes.
    pub ROOM_LOG = "ember:log:room:{code}" {
        kind: Log<Json<Entry>, Newest<EVENTS_MAX>>,
        partition: Room,
        parts: (),
        ttl: given,
        owner: "party",
        readers: ["*"],
    }
}

family! {
    /// Announces new events in the room's log, or that the room was closed.
    pub ROOM_CHANNEL = "ember:room:{code}" {
        kind: Channel<Json<Wakeup>>,
        partition: Room,
        parts: (),
        ttl: persistent,
        owner: "party",
        readers: ["*"],
    }
}

/// The key families of this game.
pub fn schema() -> Schema {
    emberkeep_schema::schema![
        ROOM_META,
        ROOM_STATE,
        DEVICE_TO_PLAYER,
        PLAYER_TO_DEVICE,
        VOTES,
        VOTES_RECEIVED,
        ROOM_ROSTER,
        ROOM_DEVICES,
        ROOM_LOG,
        ROOM_CHANNEL
    ]
    .expect("no key belongs to two families, a test holds")
}

/// The claims of devices on players.
pub(super) fn claims(until_ms: i64) -> Claims<DEVICE_TO_PLAYER, PLAYER_TO_DEVICE> {
    Claims::new(DEVICE_TO_PLAYER.key(), PLAYER_TO_DEVICE.key(), until_ms)
}

/// The ballot of an item.
pub(super) fn ballot(round: &RoundId, item: &ItemId, until_ms: i64) -> Ballot<VOTES, VOTES_RECEIVED> {
    Ballot::new(
        VOTES.key(round.clone(), item.clone()),
        VOTES_RECEIVED.key(round.clone(), item.clone()),
        until_ms,
    )
}

/// The keys that expire with the room.
pub(super) fn group() -> ExpiringGroup<ROOM_ROSTER> {
    let families = [
        member::<ROOM_STATE>,
        member::<DEVICE_TO_PLAYER>,
        member::<PLAYER_TO_DEVICE>,
        member::<VOTES>,
        member::<VOTES_RECEIVED>,
        member::<ROOM_DEVICES>,
        member::<ROOM_LOG>,
    ];
    ExpiringGroup::new(ROOM_ROSTER.key(), &families)
}

const _: () = assert!(EVENTS_MAX <= emberkeep_hot::limits::REPLY_ELEMENTS_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::party::RoomCode;
    use emberkeep_schema::{KeyLayout, Topology};

    fn room() -> Room {
        Room(RoomCode::new("AB23CD").unwrap())
    }

    #[test]
    fn keys_of_a_room_are_those_of_the_document() {
        let (room, layout) = (room(), KeyLayout::single());
        let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i7").unwrap());
        assert_eq!(ROOM_META.key().to_text(&layout, &room), "brp:room:AB23CD:meta");
        assert_eq!(ROOM_STATE.key().to_text(&layout, &room), "brp:room:AB23CD:state");
        assert_eq!(DEVICE_TO_PLAYER.key().to_text(&layout, &room), "brp:room:AB23CD:device_to_player");
        assert_eq!(PLAYER_TO_DEVICE.key().to_text(&layout, &room), "brp:room:AB23CD:player_to_device");
        let votes = VOTES.key(round.clone(), item.clone());
        assert_eq!(votes.to_text(&layout, &room), "brp:room:AB23CD:vote:r1:i7");
        let received = VOTES_RECEIVED.key(round, item);
        assert_eq!(received.to_text(&layout, &room), "brp:room:AB23CD:vote_received:r1:i7");
    }

    #[test]
    fn our_own_key_goes_with_an_external_close_of_the_room() {
        let text = ROOM_ROSTER.key().to_text(&KeyLayout::single(), &room());
        assert_eq!(text, "brp:room:AB23CD:ember:roster");
        let text = ROOM_DEVICES.key().to_text(&KeyLayout::single(), &room());
        assert_eq!(text, "brp:room:AB23CD:ember:devices");
        let text = ROOM_LOG.key().to_text(&KeyLayout::single(), &room());
        assert_eq!(text, "ember:log:room:AB23CD", "except its log, which ends by itself");
    }

    #[test]
    fn a_cluster_keeps_a_room_together() {
        let layout = KeyLayout::new("", Topology::Cluster).unwrap();
        assert_eq!(ROOM_META.key().to_text(&layout, &room()), "{AB23CD}brp:room:AB23CD:meta");
    }
}
