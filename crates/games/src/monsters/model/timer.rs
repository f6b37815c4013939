//! The drop timer of a friendly monster, which leaves something behind every now and then.

use crate::world::FieldFields;
use emberkeep_schema::record;

record! {
    /// When a monster drops something again. Its key names the monster.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DropTimer {
        /// What kind of monster it is.
        pub template: u32 => "monsterId",
        /// Where it is.
        pub field: FieldFields => "field",
        /// Time between two drops.
        pub drop_period_ms: i64 => "dropPeriodMs",
        /// Its attack, which decides about what it drops.
        pub weapon_attack: u32 => "weaponAttack" or 0,
        /// Its full health.
        pub max_hp: u32 => "maxHp" or 0,
        /// The last drop, or the registration.
        pub last_drop_at_ms: i64 => "lastDropAtMs" or 0,
        /// The last hit; 0 is never.
        pub last_hit_at_ms: i64 => "lastHitAtMs" or 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};

    #[test]
    fn the_names_are_those_that_other_services_read() {
        let json = concat!(
            r#"{"monsterId":9300061,"field":{"worldId":0,"channelId":1,"mapId":910010000,"#,
            r#""instance":"00000000-0000-0000-0000-000000000000","zone":[]},"dropPeriodMs":15000,"#,
            r#""weaponAttack":30,"maxHp":5000,"lastDropAtMs":1700000000000,"lastHitAtMs":0,"uniqueId":1000000001}"#,
        );
        let timer = Json::<DropTimer>::decode(json.as_bytes()).unwrap();
        assert_eq!((timer.template, timer.drop_period_ms, timer.field.map), (9_300_061, 15_000, 910_010_000));
        let mut out = Vec::new();
        Json::<DropTimer>::encode(&timer, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), json);
    }
}
