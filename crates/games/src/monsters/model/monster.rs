//! What is stored of a monster.

use super::effect::StatusEffect;
use crate::world::{CharacterId, Field, TenantFields};
use emberkeep_schema::{Array, part, record};
use uuid::Uuid;

part! {
    /// One monster's id among the living of its tenant. Ids are used again after a monster is removed.
    #[derive(Copy)]
    pub struct MonsterId(u32);
}

part! {
    /// A skill of a monster.
    #[derive(Copy)]
    pub struct SkillId(u32);
}

record! {
    /// A monster, from its spawn to its removal.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Monster {
        /// Its id.
        pub id: MonsterId => "uniqueId",
        /// Whose it is; the key says it too.
        pub tenant: Option<TenantFields> => "tenant" optional,
        /// The world it is in.
        pub world: u8 => "worldId",
        /// The channel it is in.
        pub channel: u8 => "channelId",
        /// The map it is on.
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance",
        /// What kind of monster it is.
        pub template: u32 => "monsterId",
        /// Full health.
        pub max_hp: u32 => "maxHp",
        /// Health left; 0 is dead.
        pub hp: u32 => "hp",
        /// Full mana.
        pub max_mp: u32 => "maxMp" or 0,
        /// Mana left.
        pub mp: u32 => "mp" or 0,
        /// Whose client moves it; 0 is nobody's.
        pub controller: CharacterId => "controlCharacterId" default,
        /// Where it stands.
        pub x: i16 => "x" or 0,
        /// Where it stands.
        pub y: i16 => "y" or 0,
        /// The foothold it stands on.
        pub fh: i16 => "fh" or 0,
        /// How it stands.
        pub stance: u8 => "stance" or 0,
        /// Its team; -1 is none.
        pub team: i8 => "team" or -1,
        /// Who hurt it, oldest first.
        pub damage: Array<DamageEntry> => "damageEntries" default,
        /// What weighs on it.
        pub effects: Array<StatusEffect> => "statusEffects" default,
    }
}

impl Monster {
    /// Where it is.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// Says another field.
    pub(in crate::monsters) fn set_field(&mut self, field: Field) {
        let Field { world, channel, map, instance } = field;
        (self.world, self.channel, self.map, self.instance) = (world, channel, map, instance);
    }

    /// Whether it has health left.
    pub fn is_alive(&self) -> bool {
        self.hp > 0
    }
}

record! {
    /// One hit, or several of one character that were merged.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DamageEntry {
        /// Who.
        pub character: CharacterId => "characterId",
        /// How much health it took. Merged hits of a monster that was healed can exceed its health.
        pub damage: u64 => "damage",
    }
}

#[cfg(test)]
mod tests {
    use super::super::SourceType;
    use super::*;
    use emberkeep_schema::{Codec, Json};

    /// What a script and a Go service leave behind: `{}` and `null` for nothing, a field of their own.
    const FOREIGN: &str = concat!(
        r#"{"uniqueId":1000000001,"worldId":0,"channelId":3,"mapId":100000000,"#,
        r#""instance":"550e8400-e29b-41d4-a716-446655440000","monsterId":9300018,"maxHp":125000,"hp":99321,"#,
        r#""damageEntries":{},"statusEffects":[{"effectId":"550e8400-e29b-41d4-a716-446655440002","#,
        r#""sourceType":"PLAYER_SKILL","statuses":null}],"controllerHasAggro":true}"#,
    );

    #[test]
    fn what_others_wrote_is_read_and_kept() {
        let monster = Json::<Monster>::decode(FOREIGN.as_bytes()).unwrap();
        assert!(monster.damage.is_empty());
        assert_eq!(monster.effects[0].source, SourceType::PlayerSkill);
        assert_eq!((monster.tenant.as_ref(), monster.team, monster.controller), (None, -1, CharacterId(0)));
        let mut out = Vec::new();
        Json::<Monster>::encode(&monster, &mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert!(written.contains(r#""damageEntries":[]"#), "{written}");
        assert!(written.contains(r#""statuses":{}"#), "{written}");
        assert!(written.ends_with(r#""controllerHasAggro":true}"#), "{written}");
        assert!(!written.contains("tenant"), "a tenant was made up: {written}");
    }
}
