//! Path parameters that routes share.

use crate::error::ApiError;
use emberkeep_games::monsters::{MonsterId, SkillId};
use emberkeep_games::reactors::rules::check_classification;
use emberkeep_games::reactors::{ReactorId, Spot};
use emberkeep_games::world::{CharacterId, Field, Tenant};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

/// A tenant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct TenantPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
}

impl TenantPath {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant(self.tenant)
    }
}

/// A field of a tenant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct FieldPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The world.
    #[param(example = 0)]
    world: u8,
    /// The channel of the world.
    #[param(example = 1)]
    channel: u8,
    /// The map.
    #[param(example = 100_000_000)]
    map: u32,
    /// The instance of the map; all zeros for a map with only one.
    #[param(example = "00000000-0000-0000-0000-000000000000")]
    instance: Uuid,
}

impl FieldPath {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant(self.tenant)
    }

    pub(super) fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }
}

/// A monster of a tenant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct MonsterPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The monster's id.
    #[param(example = 1_000_000_000)]
    monster: u32,
}

impl MonsterPath {
    pub(super) fn parts(&self) -> (Tenant, MonsterId) {
        (Tenant(self.tenant), MonsterId(self.monster))
    }
}

/// An effect on a monster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct EffectPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The monster's id.
    #[param(example = 1_000_000_000)]
    monster: u32,
    /// The effect's id.
    #[param(example = "6f1e1c58-7a3b-4d0a-9d3e-2f6f3f1f2a11")]
    effect: Uuid,
}

impl EffectPath {
    pub(super) fn parts(&self) -> (Tenant, MonsterId, Uuid) {
        (Tenant(self.tenant), MonsterId(self.monster), self.effect)
    }
}

/// A skill of a monster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SkillPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The monster's id.
    #[param(example = 1_000_000_000)]
    monster: u32,
    /// The skill, 0 to 65535.
    #[param(example = 126)]
    skill: u16,
}

impl SkillPath {
    pub(super) fn parts(&self) -> (Tenant, MonsterId, SkillId) {
        (Tenant(self.tenant), MonsterId(self.monster), SkillId(self.skill))
    }
}

/// A character that controls a monster.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ControllerPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The monster's id.
    #[param(example = 1_000_000_000)]
    monster: u32,
    /// The character.
    #[param(example = 7)]
    character: u32,
}

impl ControllerPath {
    pub(super) fn parts(&self) -> (Tenant, MonsterId, CharacterId) {
        (Tenant(self.tenant), MonsterId(self.monster), CharacterId(self.character))
    }
}

/// A reactor of a tenant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ReactorPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The reactor's id.
    #[param(example = 1_000_000_001)]
    reactor: u32,
}

impl ReactorPath {
    pub(super) fn parts(&self) -> (Tenant, ReactorId) {
        (Tenant(self.tenant), ReactorId(self.reactor))
    }
}

/// A spot: a classification and a position in a field.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SpotPath {
    /// The tenant.
    #[param(example = "550e8400-e29b-41d4-a716-446655440000")]
    tenant: Uuid,
    /// The world.
    #[param(example = 0)]
    world: u8,
    /// The channel of the world.
    #[param(example = 1)]
    channel: u8,
    /// The map.
    #[param(example = 100_000_000)]
    map: u32,
    /// The instance of the map; all zeros for a map with only one.
    #[param(example = "00000000-0000-0000-0000-000000000000")]
    instance: Uuid,
    /// The classification of the reactor.
    #[param(minimum = 1, example = 2001)]
    classification: u32,
    /// Position.
    #[param(example = -315)]
    x: i16,
    /// Position.
    #[param(example = 88)]
    y: i16,
}

impl SpotPath {
    pub(super) fn parts(&self) -> Result<(Tenant, Field, Spot), ApiError> {
        check_classification(self.classification)?;
        let field =
            Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance };
        let spot = Spot { classification: self.classification, x: self.x, y: self.y };
        Ok((Tenant(self.tenant), field, spot))
    }
}
