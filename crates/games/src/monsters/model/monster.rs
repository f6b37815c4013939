//! The record of a monster.

use super::damage::DamageEntries;
use super::effect::StatusEffect;
use crate::world::{CharacterId, Field, TenantFields};
use emberkeep_schema::{Array, part, record};
use uuid::Uuid;

part! {
    /// The id of a monster, unique among the living monsters of its tenant. Ids are reused after a removal.
    #[derive(Copy)]
    pub struct MonsterId(u32);
}

part! {
    /// A skill of a monster. It has 16 bits, as in other services.
    #[derive(Copy)]
    pub struct SkillId(u16);
}

record! {
    /// A monster, from its spawn to its removal. External services may have added fields.
    // Names and order of the fields are those of other services, so that both sides read each other's records.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct Monster {
        /// The id of the monster, unique in its tenant while it exists.
        #[openapi(example = 1_000_000_000)]
        pub id: MonsterId => "uniqueId",
        /// The id of the tenant.
        // `None` if another service omitted it; the key contains it too, and the next write adds it.
        #[openapi(example = "550e8400-e29b-41d4-a716-446655440000")]
        pub tenant_id: Option<Uuid> => "tenantId" optional,
        /// Region of the tenant's client.
        #[openapi(example = "GMS")]
        pub region: String => "tenantRegion" default,
        /// Major version of the tenant's client.
        #[openapi(example = 83)]
        pub major_version: u16 => "tenantMajorVersion" or 0,
        /// Minor version of the tenant's client.
        #[openapi(example = 1)]
        pub minor_version: u16 => "tenantMinorVersion" or 0,
        /// The world it is in.
        pub world: u8 => "worldId",
        /// The channel it is in.
        #[openapi(example = 1)]
        pub channel: u8 => "channelId",
        /// The map it is on.
        #[openapi(example = 100_000_000)]
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance",
        /// Full health, with which it spawned.
        #[openapi(example = 50)]
        pub max_hp: u32 => "maxHp",
        /// Health left; 0 is dead.
        #[openapi(example = 35)]
        pub hp: u32 => "hp",
        /// Full mana, with which it spawned.
        pub max_mp: u32 => "maxMp" or 0,
        /// Mana that is left.
        pub mp: u32 => "mp" or 0,
        /// The template of the monster.
        #[openapi(example = 100_100)]
        pub template: u32 => "monsterId",
        /// The controlling character; 0 is none.
        pub controller: CharacterId => "controlCharacterId" default,
        /// The horizontal position in the field.
        pub x: i16 => "x" or 0,
        /// The vertical position in the field.
        pub y: i16 => "y" or 0,
        /// The foothold it stands on.
        pub fh: i16 => "fh" or 0,
        /// The posture, as the game numbers it.
        pub stance: u8 => "stance" or 0,
        /// Its team; -1 is none.
        #[openapi(example = -1)]
        pub team: i8 => "team" or -1,
        /// Damage by character, oldest first.
        pub damage: DamageEntries => "damageEntries" default,
        /// The status effects on it, oldest first.
        pub effects: Array<StatusEffect> => "statusEffects" default,
    } then Monster::upgrade
}

impl Monster {
    /// Converts records of an earlier version, which stored the tenant as an object.
    fn upgrade(&mut self) {
        if self.tenant_id.is_some() || self.extra.is_empty() {
            return;
        }
        let former =
            self.extra.get("tenant").and_then(|json| serde_json::from_str::<TenantFields>(json).ok());
        if let Some(tenant) = former {
            self.extra.take("tenant");
            (self.tenant_id, self.region) = (Some(tenant.id), tenant.region);
            (self.major_version, self.minor_version) = (tenant.major_version, tenant.minor_version);
        }
    }

    /// The field that the monster is in.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// Moves the monster to another field.
    pub(in crate::monsters) fn set_field(&mut self, field: Field) {
        let Field { world, channel, map, instance } = field;
        (self.world, self.channel, self.map, self.instance) = (world, channel, map, instance);
    }

    /// Whether it has health left.
    pub fn is_alive(&self) -> bool {
        self.hp > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::SourceType;
    use super::*;
    use emberkeep_schema::{Codec, Json};

    /// What a script and a service of another version leave behind: `{}` and `null` for nothing, a field of
    /// its own.
    const EXTERNAL: &str = concat!(
        r#"{"uniqueId":1000000001,"worldId":0,"channelId":3,"mapId":100000000,"#,
        r#""instance":"550e8400-e29b-41d4-a716-446655440000","monsterId":9300018,"maxHp":125000,"hp":99321,"#,
        r#""damageEntries":{},"statusEffects":[{"effectId":"550e8400-e29b-41d4-a716-446655440002","#,
        r#""sourceType":"PLAYER_SKILL","statuses":null}],"controllerHasAggro":true}"#,
    );

    fn written(monster: &Monster) -> String {
        let mut out = Vec::new();
        Json::<Monster>::encode(monster, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_others_wrote_is_read_and_kept() {
        let monster = Json::<Monster>::decode(EXTERNAL.as_bytes()).unwrap();
        assert!(monster.damage.is_empty());
        assert_eq!(monster.effects[0].source, SourceType::PLAYER_SKILL);
        assert_eq!((monster.tenant_id, monster.team, monster.controller), (None, -1, CharacterId(0)));
        let written = written(&monster);
        assert!(written.contains(r#""damageEntries":[]"#), "{written}");
        assert!(written.contains(r#""statuses":{}"#), "{written}");
        assert!(written.ends_with(r#""controllerHasAggro":true}"#), "{written}");
    }

    /// As a former version wrote it: the tenant an object, other fields in another order, a sum of 64 bits.
    const FORMER: &str = concat!(
        r#"{"uniqueId":1000000001,"tenant":{"id":"550e8400-e29b-41d4-a716-446655440000","region":"GMS","#,
        r#""majorVersion":83,"minorVersion":1},"worldId":0,"channelId":3,"mapId":100000000,"#,
        r#""instance":"00000000-0000-0000-0000-000000000000","monsterId":9300018,"maxHp":125000,"hp":9,"#,
        r#""maxMp":5,"mp":4,"controlCharacterId":7,"x":-1,"y":2,"fh":3,"stance":4,"team":-1,"#,
        r#""damageEntries":[{"characterId":7,"damage":4294967296}],"statusEffects":[],"later":1}"#,
    );

    #[test]
    fn a_record_of_the_former_shape_is_written_in_the_present_one() {
        let now = concat!(
            r#"{"uniqueId":1000000001,"tenantId":"550e8400-e29b-41d4-a716-446655440000","tenantRegion":"GMS","#,
            r#""tenantMajorVersion":83,"tenantMinorVersion":1,"worldId":0,"channelId":3,"mapId":100000000,"#,
            r#""instance":"00000000-0000-0000-0000-000000000000","maxHp":125000,"hp":9,"maxMp":5,"mp":4,"#,
            r#""monsterId":9300018,"controlCharacterId":7,"x":-1,"y":2,"fh":3,"stance":4,"team":-1,"#,
            r#""damageEntries":[{"characterId":7,"damage":4294967295},{"characterId":7,"damage":1}],"#,
            r#""statusEffects":[],"later":1}"#,
        );
        let monster = Json::<Monster>::decode(FORMER.as_bytes()).unwrap();
        assert_eq!(written(&monster), now);
        assert_eq!(Json::<Monster>::decode(now.as_bytes()), Ok(monster));
    }

    #[test]
    fn a_tenant_field_of_another_meaning_is_kept() {
        let odd = FORMER.replace(r#"{"id":"550e8400-e29b-41d4-a716-446655440000""#, r#"{"id":"none""#);
        let monster = Json::<Monster>::decode(odd.as_bytes()).unwrap();
        assert!(monster.tenant_id.is_none() && monster.extra.get("tenant").is_some());
    }
}
