//! Schemas of the stored records of monsters. A derive cannot describe types of `record!`: they have a hidden field for unknown
//! members. A test compares the field names with what is written.
#![expect(dead_code, reason = "only their schemas are used")]

use crate::routes::shape::FieldFields;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A monster, from its spawn to its removal. External services may have added fields.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct Monster {
    /// Its id.
    #[schema(example = 1_000_000_000)]
    unique_id: u32,
    /// Its tenant.
    #[schema(example = "550e8400-e29b-41d4-a716-446655440000", nullable = false)]
    tenant_id: Option<Uuid>,
    /// Region of the tenant's client.
    #[schema(example = "GMS")]
    tenant_region: String,
    /// Major version of the tenant's client.
    #[schema(example = 83)]
    tenant_major_version: u16,
    /// Minor version of the tenant's client.
    #[schema(example = 1)]
    tenant_minor_version: u16,
    /// The world it is in.
    world_id: u8,
    /// The channel it is in.
    #[schema(example = 1)]
    channel_id: u8,
    /// The map it is on.
    #[schema(example = 100_000_000)]
    map_id: u32,
    /// The instance of the map.
    instance: Uuid,
    /// Full health.
    #[schema(example = 50)]
    max_hp: u32,
    /// Health left; 0 is dead.
    #[schema(example = 35)]
    hp: u32,
    /// Full mana.
    max_mp: u32,
    /// Mana left.
    mp: u32,
    /// The template of the monster.
    #[schema(example = 100_100)]
    monster_id: u32,
    /// The controlling character; 0 is none.
    control_character_id: u32,
    /// Position.
    x: i16,
    /// Position.
    y: i16,
    /// The foothold it stands on.
    fh: i16,
    /// The stance.
    stance: u8,
    /// Its team; -1 is none.
    #[schema(example = -1)]
    team: i8,
    /// Damage by character, oldest first.
    damage_entries: Vec<DamageEntry>,
    /// Its status effects.
    status_effects: Vec<StatusEffect>,
}

/// One hit, or several of one character that were merged.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct DamageEntry {
    /// The character.
    #[schema(example = 7)]
    character_id: u32,
    /// Health that was taken. More than 4294967295 of one character is split into several entries.
    #[schema(example = 15)]
    damage: u32,
}

/// A status effect of a monster.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct StatusEffect {
    /// Its id.
    effect_id: Uuid,
    /// The source.
    #[schema(example = "PLAYER_SKILL")]
    source_type: String,
    /// The casting character; 0 is none.
    source_character_id: u32,
    /// The skill.
    source_skill_id: u32,
    /// The skill's level.
    source_skill_level: u32,
    /// Statuses and their values.
    #[schema(example = json!({"POISON": 10}))]
    statuses: BTreeMap<String, i32>,
    /// Duration in milliseconds.
    duration_ms: i64,
    /// Milliseconds between two ticks; 0 is none.
    tick_interval_ms: i64,
    /// The last tick, in milliseconds since 1970; before the first one, when it began.
    last_tick_ms: i64,
    /// When it began, in milliseconds since 1970.
    created_at_ms: i64,
    /// When it ends, in milliseconds since 1970; 0 means that the duration counts.
    expires_at_ms: i64,
}

/// A drop timer.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct DropTimer {
    /// Its tenant.
    #[schema(example = "550e8400-e29b-41d4-a716-446655440000", nullable = false)]
    tenant_id: Option<Uuid>,
    /// Region of the tenant's client.
    #[schema(example = "GMS")]
    tenant_region: String,
    /// Major version of the tenant's client.
    #[schema(example = 83)]
    tenant_major_version: u16,
    /// Minor version of the tenant's client.
    #[schema(example = 1)]
    tenant_minor_version: u16,
    /// The monster.
    #[schema(example = 1_000_000_000, nullable = false)]
    unique_id: Option<u32>,
    /// The template of the monster.
    #[schema(example = 9_300_061)]
    monster_id: u32,
    /// The field of the monster.
    field: FieldFields,
    /// Milliseconds between two drops.
    #[schema(example = 15_000)]
    drop_period_ms: i64,
    /// The monster's attack, from which the game derives the drop.
    weapon_attack: u32,
    /// Its full health.
    max_hp: u32,
    /// The last drop, or the registration, in milliseconds since 1970.
    last_drop_at_ms: i64,
    /// The last hit, in milliseconds since 1970; 0 is never.
    last_hit_at_ms: i64,
}
