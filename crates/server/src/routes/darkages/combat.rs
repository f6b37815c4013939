//! Damage between players.

use super::words::HitTypeWord;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::EntityPath;
use crate::routes::responses::{Conflict, NotFound};
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::darkages::{DamageRequest, EntityId, Fighter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A hit on a player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"attacker_id": 900_001, "attacker_is_npc": true, "damage": 15, "hit_type": "critical",
    "ability_name": "fireball"}))]
pub(super) struct PlayerDamage {
    /// The attacking entity, which is logged in, or the creature.
    attacker_id: i64,
    /// Whether the attacker is a creature of the game, which has no session and no statistics.
    #[serde(default)]
    attacker_is_npc: bool,
    /// Damage; what exceeds the target's health is not counted. 0 if the hit missed.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    damage: i32,
    /// How it landed; a miss takes no health.
    #[serde(default)]
    hit_type: HitTypeWord,
    /// The ability, at most 128 bytes.
    ability_name: Option<String>,
}

/// What a hit on a player did.
#[derive(Serialize, ToSchema)]
pub(super) struct PlayerHit {
    /// Health that the hit took.
    #[schema(example = 15)]
    actual: i32,
    /// Health that is left; 0 is dead.
    #[schema(example = 85)]
    health: i32,
    /// Whether this hit killed the player. True for exactly one hit.
    killed: bool,
    /// The id of the combat event in history.
    event_id: Uuid,
}

/// Hits a player. Both sessions and the event for history change together or not at all.
#[utoipa::path(post, path = "/v1/darkages/sessions/{entity}/damage", tag = "darkages",
    params(EntityPath), request_body = PlayerDamage,
    responses((status = 200, description = "What the hit did", body = PlayerHit), NotFound, Conflict))]
pub(super) async fn damage_player(
    State(app): State<AppState>,
    Path(target): EntityPath,
    Json(body): Json<PlayerDamage>,
) -> Result<Answer<PlayerHit>, ApiError> {
    let attacker = match body.attacker_is_npc {
        true => Fighter::Npc(body.attacker_id),
        false => Fighter::Player(EntityId(body.attacker_id)),
    };
    let request = DamageRequest {
        attacker,
        target,
        amount: body.damage,
        hit_type: body.hit_type.into(),
        ability: body.ability_name,
    };
    let done = app.darkages.damage(request).await?;
    let (actual, health, killed) = (done.actual, done.health, done.killed);
    Ok(Answer(PlayerHit { actual, health, killed, event_id: done.event_id }))
}
