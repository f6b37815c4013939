//! What is stored of a monster. The JSON names are those that other services read and write.

use crate::world::{CharacterId, Field, TenantFields};
use emberkeep_schema::{Array, part, record};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

part! {
    /// One monster's id among the living of its tenant. Ids are used again after a monster is removed.
    #[derive(Copy)]
    pub struct MonsterId(u32);
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

record! {
    /// Something that weighs on a monster for a time.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StatusEffect {
        /// Its id.
        pub id: Uuid => "effectId",
        /// Where it came from.
        pub source: SourceType => "sourceType",
        /// Who cast it; 0 is nobody.
        pub source_character: CharacterId => "sourceCharacterId" default,
        /// The skill.
        pub source_skill: u32 => "sourceSkillId" or 0,
        /// The skill's level.
        pub source_skill_level: u32 => "sourceSkillLevel" or 0,
        /// What it does, by name.
        pub statuses: Statuses => "statuses" default,
        /// How long it lasts.
        pub duration_ms: i64 => "durationMs" or 0,
        /// Time between two ticks; 0 is none.
        pub tick_interval_ms: i64 => "tickIntervalMs" or 0,
        /// The last tick; 0 is never.
        pub last_tick_ms: i64 => "lastTickMs" or 0,
        /// When it began.
        pub created_at_ms: i64 => "createdAtMs" or 0,
        /// When it ends.
        pub expires_at_ms: i64 => "expiresAtMs" or 0,
    }
}

/// Where a status effect came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SourceType {
    /// A player cast it.
    PlayerSkill,
    /// A monster cast it.
    MonsterSkill,
}

/// Statuses and their values. `null`, which is Go's empty map, reads as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<BTreeMap<String, i32>>")]
pub struct Statuses(pub BTreeMap<String, i32>);

impl From<Option<BTreeMap<String, i32>>> for Statuses {
    fn from(map: Option<BTreeMap<String, i32>>) -> Self {
        Statuses(map.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
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
