//! The drop timer of a friendly monster, which drops an item in regular intervals.

use super::monster::{Monster, MonsterId};
use crate::world::{FieldFields, Tenant};
use emberkeep_schema::record;
use uuid::Uuid;

record! {
    /// The timer by which a friendly monster drops an item in regular intervals.
    // Names and order of the fields are those of other services.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct DropTimer {
        /// The id of the tenant.
        // `None` in records of an earlier version; the key contains it too, and the next write adds it.
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
        /// The id of the monster that drops.
        // `None` in records of an earlier version.
        #[openapi(example = 1_000_000_000)]
        pub id: Option<MonsterId> => "uniqueId" optional,
        /// The template of the monster.
        #[openapi(example = 9_300_061)]
        pub template: u32 => "monsterId",
        /// The field of the monster.
        pub field: FieldFields => "field",
        /// Milliseconds between two drops.
        #[openapi(example = 15_000)]
        pub drop_period_ms: i64 => "dropPeriodMs",
        /// The monster's attack, from which the game derives the drop.
        pub weapon_attack: u32 => "weaponAttack" or 0,
        /// The full health of the monster when the timer was registered.
        pub max_hp: u32 => "maxHp" or 0,
        /// The last drop, or the registration, in milliseconds since 1970.
        pub last_drop_at_ms: i64 => "lastDropAtMs" or 0,
        /// The last hit, in milliseconds since 1970; 0 is never.
        pub last_hit_at_ms: i64 => "lastHitAtMs" or 0,
    }
}

impl DropTimer {
    /// Whether an earlier version wrote the record: tenant or monster are missing.
    pub(in crate::monsters) fn is_former(&self) -> bool {
        self.tenant_id.is_none() || self.id.is_none()
    }

    /// Adds tenant and monster to a record of an earlier version.
    pub(in crate::monsters) fn complete(&mut self, tenant: Tenant, id: MonsterId, monster: &Monster) {
        if self.tenant_id.is_none() {
            (self.tenant_id, self.region) = (Some(tenant.0), monster.region.clone());
            (self.major_version, self.minor_version) = (monster.major_version, monster.minor_version);
        }
        self.id.get_or_insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};

    #[test]
    fn fields_that_others_added_stay() {
        let json = concat!(
            r#"{"tenantId":"550e8400-e29b-41d4-a716-446655440000","tenantRegion":"GMS","tenantMajorVersion":83,"#,
            r#""tenantMinorVersion":1,"uniqueId":1000000001,"#,
            r#""monsterId":9300061,"field":{"worldId":0,"channelId":1,"mapId":910010000,"#,
            r#""instance":"00000000-0000-0000-0000-000000000000","zone":[]},"dropPeriodMs":15000,"#,
            r#""weaponAttack":30,"maxHp":5000,"lastDropAtMs":1700000000000,"lastHitAtMs":0,"luck":{}}"#,
        );
        let timer = Json::<DropTimer>::decode(json.as_bytes()).unwrap();
        assert_eq!((timer.template, timer.drop_period_ms, timer.field.map), (9_300_061, 15_000, 910_010_000));
        let mut out = Vec::new();
        Json::<DropTimer>::encode(&timer, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), json);
    }
}
