//! The key families of the reactors: those of the storage document, and two auxiliary indexes.
//!
//! Three documented keys do not contain the tenant: the counter, the set of all, and the record. On one
//! server all tenants share them, and every reader of a record checks its tenant. On a Cluster they have the
//! tenant as a hash tag, as all keys have.
//!
//! The auxiliary indexes can be lost: the documented keys alone define which reactors live and which spots
//! cool down.

use super::limits::{COOLDOWNS_LIFE, IDS};
use super::model::{Reactor, ReactorId, Spot};
use crate::world::{Field, Tenant};
use emberkeep_primitives::{Cooldowns, Sequence};
use emberkeep_schema::{
    Codec, Hash, Id, Json, Key, Number, Part, Schema, Set, SortedSet, Text, ValueError, family,
};
use uuid::Uuid;

family! {
    /// The reactor id that was assigned last.
    pub REACTOR_ID_NEXT = "reactors:next_id" {
        kind: Text<Number<i64>>,
        partition: shared Tenant,
        parts: (),
        ttl: persistent,
        owner: "reactors",
    }
}

family! {
    /// The ids of all reactors of the tenant, or of all tenants where they share the key.
    pub REACTORS_ALL = "reactors:all" {
        kind: Set<Id<ReactorId>>,
        partition: shared Tenant,
        parts: (),
        ttl: persistent,
        owner: "reactors",
        readers: ["*"],
        index_of: REACTOR,
    }
}

family! {
    /// Reactor instance data: one record a reactor, from its creation to its destruction.
    pub REACTOR = "reactor:{id}" {
        kind: Text<Json<Reactor>>,
        partition: shared Tenant,
        parts: (id: ReactorId),
        ttl: persistent,
        owner: "reactors",
        readers: ["*"],
    }
}

family! {
    /// The reactors of a field.
    pub REACTOR_MAP = "reactors:map:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" {
        kind: Set<Id<ReactorId>>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid),
        ttl: persistent,
        owner: "reactors",
        readers: ["*"],
        index_of: REACTOR,
    }
}

family! {
    /// Exists while a spot is on cooldown. Its value has no meaning.
    pub REACTOR_COOLDOWN = "reactor:cd:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}:{classification}:{x}:{y}" {
        kind: Text<Number<i64>>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid, classification: u32, x: i16, y: i16),
        ttl: given,
        owner: "reactors",
        readers: ["*"],
    }
}

family! {
    /// Auxiliary index: the spots of a field that are on cooldown, by the end of the cooldown. Clearing a
    /// field needs no scan.
    pub REACTOR_COOLDOWNS = "ember:reactor-cds:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" {
        kind: SortedSet<SpotText>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid),
        ttl: refresh(COOLDOWNS_LIFE),
        owner: "reactors",
        index_of: REACTOR_COOLDOWN,
    }
}

family! {
    /// Auxiliary index: the spot of each reactor of a field. A creation need not read every record.
    pub REACTOR_SPOTS = "ember:reactor-spots:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}" {
        kind: Hash<Id<ReactorId>, SpotText>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid),
        ttl: persistent,
        owner: "reactors",
        index_of: REACTOR,
    }
}

/// A spot as `classification:x:y`, the last part of its cooldown key.
pub struct SpotText;

impl Codec for SpotText {
    type Value = Spot;
    const TYPE: &'static str = "classification:x:y";

    fn encode(spot: &Spot, out: &mut Vec<u8>) -> Result<(), ValueError> {
        spot.classification.write(out);
        out.push(b':');
        spot.x.write(out);
        out.push(b':');
        spot.y.write(out);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Spot, ValueError> {
        let spot = std::str::from_utf8(bytes).ok().and_then(|text| {
            let (classification, place) = text.split_once(':')?;
            let (x, y) = place.split_once(':')?;
            Some(Spot {
                classification: Part::parse(classification)?,
                x: Part::parse(x)?,
                y: Part::parse(y)?,
            })
        });
        spot.ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
    }
}

/// The key families of this game.
pub fn schema() -> Schema {
    emberkeep_schema::schema![
        REACTOR_ID_NEXT,
        REACTORS_ALL,
        REACTOR,
        REACTOR_MAP,
        REACTOR_COOLDOWN,
        REACTOR_COOLDOWNS,
        REACTOR_SPOTS
    ]
    .expect("no key belongs to two families, a test holds")
}

/// The key of a field's index.
pub fn field_key(field: &Field) -> Key<REACTOR_MAP> {
    REACTOR_MAP.key(field.world, field.channel, field.map, field.instance)
}

/// The field of an index.
pub(super) fn field_of(key: &Key<REACTOR_MAP>) -> Field {
    let (world, channel, map, instance) = REACTOR_MAP.parts(key);
    Field { world, channel, map, instance }
}

/// The key of a spot's cooldown.
pub fn cooldown_key(field: &Field, spot: &Spot) -> Key<REACTOR_COOLDOWN> {
    let (world, channel, map) = (field.world, field.channel, field.map);
    REACTOR_COOLDOWN.key(world, channel, map, field.instance, spot.classification, spot.x, spot.y)
}

/// The field and the spot of a cooldown key.
pub(super) fn cooldown_parts(key: &Key<REACTOR_COOLDOWN>) -> (Field, Spot) {
    let (world, channel, map, instance, classification, x, y) = REACTOR_COOLDOWN.parts(key);
    (Field { world, channel, map, instance }, Spot { classification, x, y })
}

/// The field of an index of cooldowns.
pub(super) fn cooldowns_field(key: &Key<REACTOR_COOLDOWNS>) -> Field {
    let (world, channel, map, instance) = REACTOR_COOLDOWNS.parts(key);
    Field { world, channel, map, instance }
}

/// The key of a field's index of cooldowns.
pub fn cooldowns_key(field: &Field) -> Key<REACTOR_COOLDOWNS> {
    REACTOR_COOLDOWNS.key(field.world, field.channel, field.map, field.instance)
}

/// The field of a hash of spots.
pub(super) fn spots_field(key: &Key<REACTOR_SPOTS>) -> Field {
    let (world, channel, map, instance) = REACTOR_SPOTS.parts(key);
    Field { world, channel, map, instance }
}

/// The key of a field's occupied spots.
pub fn spots_key(field: &Field) -> Key<REACTOR_SPOTS> {
    REACTOR_SPOTS.key(field.world, field.channel, field.map, field.instance)
}

/// The cooldowns of a field.
pub(super) fn cooldowns(
    field: Field,
) -> Cooldowns<REACTOR_COOLDOWNS, impl Fn(&Spot) -> Key<REACTOR_COOLDOWN> + Clone> {
    Cooldowns::new(cooldowns_key(&field), move |spot: &Spot| cooldown_key(&field, spot))
}

/// The ids of the reactors.
pub(super) fn ids() -> Sequence<REACTOR_ID_NEXT> {
    Sequence::new(IDS, REACTOR_ID_NEXT.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{KeyLayout, Topology};
    use proptest::prelude::*;

    const TENANT: &str = "550e8400-e29b-41d4-a716-446655440000";
    const INSTANCE: &str = "00000000-0000-0000-0000-000000000000";

    fn field() -> Field {
        Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() }
    }

    #[test]
    fn keys_are_those_of_the_document() {
        let tenant = Tenant(TENANT.parse().unwrap());
        let layout = KeyLayout::single();
        let spot = Spot { classification: 2001, x: -315, y: -88 };
        assert_eq!(REACTOR_ID_NEXT.key().to_text(&layout, &tenant), "reactors:next_id");
        assert_eq!(REACTORS_ALL.key().to_text(&layout, &tenant), "reactors:all");
        assert_eq!(REACTOR.key(ReactorId(1_000_000_001)).to_text(&layout, &tenant), "reactor:1000000001");
        assert_eq!(
            field_key(&field()).to_text(&layout, &tenant),
            format!("reactors:map:{TENANT}:0:1:100000000:{INSTANCE}")
        );
        assert_eq!(
            cooldown_key(&field(), &spot).to_text(&layout, &tenant),
            format!("reactor:cd:{TENANT}:0:1:100000000:{INSTANCE}:2001:-315:-88")
        );
    }

    #[test]
    fn our_own_keys_match_no_pattern_of_the_document() {
        let tenant = Tenant(TENANT.parse().unwrap());
        let layout = KeyLayout::single();
        assert!(spots_key(&field()).to_text(&layout, &tenant).starts_with("ember:"));
        assert!(cooldowns_key(&field()).to_text(&layout, &tenant).starts_with("ember:"));
    }

    #[test]
    fn a_cluster_keeps_a_tenant_together() {
        let tenant = Tenant(TENANT.parse().unwrap());
        let layout = KeyLayout::new("", Topology::Cluster).unwrap();
        let text = REACTOR.key(ReactorId(1_000_000_001)).to_text(&layout, &tenant);
        assert_eq!(text, format!("{{{TENANT}}}reactor:1000000001"));
    }

    #[test]
    fn only_one_text_names_a_spot() {
        let spot = Spot { classification: 2001, x: -315, y: 88 };
        assert_eq!(SpotText::decode(b"2001:-315:88"), Ok(spot));
        for text in ["", "2001", "2001:1", "2001:1:2:3", "02001:1:2", "2001:+1:2", "2001:1:40000", ":1:2"] {
            assert!(SpotText::decode(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn spots_and_markers_survive(classification: u32, x: i16, y: i16, map: u32, instance: u128) {
            let spot = Spot { classification, x, y };
            let mut out = Vec::new();
            SpotText::encode(&spot, &mut out).unwrap();
            prop_assert_eq!(SpotText::decode(&out), Ok(spot));
            let field = Field { map, instance: Uuid::from_u128(instance), ..field() };
            prop_assert_eq!(cooldown_parts(&cooldown_key(&field, &spot)), (field, spot));
            prop_assert_eq!(field_of(&field_key(&field)), field);
            prop_assert_eq!(cooldowns_field(&cooldowns_key(&field)), field);
            prop_assert_eq!(spots_field(&spots_key(&field)), field);
        }
    }
}
