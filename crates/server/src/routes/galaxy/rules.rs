//! Automation rules and maneuvers of ships.

use super::acting::Acting;
use super::shapes::{self, ManeuverAnswer, RuleAnswer};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path, Query};
use crate::routes::path::{RulePath, ShipPath};
use crate::routes::responses::{Conflict, Created, NotFound, percent_encode};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::galaxy::{ManeuverChange, NewRule, PlayerId, RuleChange, RuleMode, ShipId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

type Object = Map<String, Value>;

fn no_rule(ship: ShipId, rule: &str) -> ApiError {
    ApiError::not_found(format!("ship {ship} has no rule {rule:?}")).with("id", rule)
}

fn no_maneuver(ship: ShipId) -> ApiError {
    ApiError::not_found(format!("ship {ship} has no maneuver")).with("id", ship.to_string())
}

/// The rules of a ship.
#[derive(Serialize, ToSchema)]
pub(super) struct ShipRules {
    /// By priority, then id.
    rules: Vec<RuleAnswer>,
}

/// Lists the automation rules of a ship.
#[utoipa::path(get, path = "/v1/galaxy/ships/{ship}/rules", tag = "galaxy", params(ShipPath),
    responses((status = 200, description = "The rules", body = ShipRules)))]
pub(super) async fn list_rules(
    State(app): State<AppState>,
    Path(ship): ShipPath,
) -> Result<Answer<ShipRules>, ApiError> {
    let rules = app.galaxy.rules(ship).await?;
    Ok(Answer(ShipRules { rules: rules.into_iter().map(Into::into).collect() }))
}

fn enabled() -> bool {
    true
}

/// A rule that is to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": "660e8400-e29b-41d4-a716-446655440001", "rule_id": "low-fuel",
    "name": "Low fuel", "mode": "once", "priority": 10,
    "trigger": {"conditions": [{"field": "fuel", "op": "<", "value": 500}], "logic": "AND"},
    "actions": [{"action": "set_thrust", "level": 0}]}))]
pub(super) struct RuleDraft {
    /// The player, whose ship it is.
    player_id: Uuid,
    /// Its id, unique in the ship: a word without `:`, `{` and `}`, and not `rules`.
    rule_id: String,
    /// At most 64 bytes.
    name: String,
    /// Whether it is evaluated.
    #[serde(default = "enabled")]
    enabled: bool,
    #[serde(default)]
    #[schema(schema_with = shapes::rule_mode)]
    mode: RuleMode,
    /// Lower ones come first.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 99)]
    priority: u8,
    /// `{"conditions": [{"field", "op", "value", "args"?}], "logic": "AND"}` with 1 to 5 conditions.
    #[schema(value_type = Object)]
    trigger: Object,
    /// 1 to 5 objects.
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 5)]
    actions: Vec<Object>,
}

/// Creates an automation rule for a ship of a player.
#[utoipa::path(post, path = "/v1/galaxy/ships/{ship}/rules", tag = "galaxy", params(ShipPath),
    request_body = RuleDraft,
    responses((status = 201, description = "The rules of the ship", body = ShipRules,
        headers(("Location" = String, description = "The rule"))), NotFound, Conflict))]
pub(super) async fn create_rule(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<RuleDraft>,
) -> Result<Created<ShipRules>, ApiError> {
    let rule = NewRule {
        rule_id: body.rule_id,
        name: body.name,
        enabled: body.enabled,
        mode: body.mode,
        priority: body.priority,
        trigger_json: Value::from(body.trigger).to_string(),
        actions_json: Value::from_iter(body.actions).to_string(),
    };
    let id = galaxy.api_gateway().create_rule(PlayerId(body.player_id), ship, rule).await?;
    let rules = galaxy.rules(ship).await?.into_iter().map(Into::into).collect();
    let location = format!("/v1/galaxy/ships/{ship}/rules/{}", percent_encode(id.as_str()));
    Ok(Created { location, body: ShipRules { rules } })
}

/// New values of a rule. What is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": "660e8400-e29b-41d4-a716-446655440001", "priority": 5}))]
pub(super) struct RuleEdit {
    /// The player, whose ship it is.
    player_id: Uuid,
    /// At most 64 bytes.
    name: Option<String>,
    /// Whether it is evaluated.
    enabled: Option<bool>,
    #[schema(schema_with = shapes::maybe_rule_mode)]
    mode: Option<RuleMode>,
    /// Lower ones come first.
    #[schema(minimum = 0, maximum = 99)]
    priority: Option<u8>,
    /// As of a new rule.
    #[schema(value_type = Option<Object>)]
    trigger: Option<Object>,
    /// As of a new rule.
    #[schema(value_type = Option<Vec<Object>>, min_items = 1, max_items = 5)]
    actions: Option<Vec<Object>>,
}

/// Changes an automation rule of a player's ship.
#[utoipa::path(post, path = "/v1/galaxy/ships/{ship}/rules/{rule}/change", tag = "galaxy", params(RulePath),
    request_body = RuleEdit,
    responses((status = 204, description = "It is changed"), NotFound, Conflict))]
pub(super) async fn change_rule(
    Acting(galaxy): Acting,
    Path((ship, rule)): RulePath,
    Json(body): Json<RuleEdit>,
) -> Result<StatusCode, ApiError> {
    let change = RuleChange {
        name: body.name,
        enabled: body.enabled,
        mode: body.mode,
        priority: body.priority,
        trigger_json: body.trigger.map(|trigger| Value::from(trigger).to_string()),
        actions_json: body.actions.map(|actions| Value::from_iter(actions).to_string()),
    };
    galaxy.api_gateway().update_rule(PlayerId(body.player_id), ship, &rule.0, change).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whose ship it is.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OwnerQuery {
    /// The player, whose ship it is; not checked if absent.
    #[param(example = "660e8400-e29b-41d4-a716-446655440001")]
    player_id: Option<Uuid>,
}

/// Deletes an automation rule of a player's ship.
#[utoipa::path(delete, path = "/v1/galaxy/ships/{ship}/rules/{rule}", tag = "galaxy",
    params(RulePath, OwnerQuery),
    responses((status = 204, description = "It is deleted"), NotFound, Conflict))]
pub(super) async fn delete_rule(
    Acting(galaxy): Acting,
    Path((ship, rule)): RulePath,
    Query(query): Query<OwnerQuery>,
) -> Result<StatusCode, ApiError> {
    let player = match query.player_id {
        Some(player) => PlayerId(player),
        None => galaxy.ship(&ship).await?.ok_or_else(|| no_rule(ship, &rule.0))?.player_id,
    };
    match galaxy.api_gateway().delete_rule(player, ship, &rule.0).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_rule(ship, &rule.0)),
    }
}

/// Whether a rule is evaluated.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"enabled": false}))]
pub(super) struct RuleSwitch {
    /// `false` after it acted once.
    enabled: bool,
}

/// Enables or disables a rule, as the tick engine does after it acted once.
#[utoipa::path(put, path = "/v1/galaxy/ships/{ship}/rules/{rule}/enabled", tag = "galaxy", params(RulePath),
    request_body = RuleSwitch, responses((status = 204, description = "It is set"), NotFound))]
pub(super) async fn enable_rule(
    Acting(galaxy): Acting,
    Path((ship, rule)): RulePath,
    Json(body): Json<RuleSwitch>,
) -> Result<StatusCode, ApiError> {
    match galaxy.tick_engine().enable_rule(ship, &rule.0, body.enabled).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_rule(ship, &rule.0)),
    }
}

/// A maneuver that begins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"type": "circularize", "params": {"body": "Earth"}, "phase": "burn", "status": "active"}))]
pub(super) struct ManeuverStart {
    /// What it is, 1 to 64 bytes.
    #[serde(rename = "type")]
    kind: String,
    /// Its parameters.
    #[serde(default)]
    #[schema(value_type = Object)]
    params: Object,
    /// How far it has come, 1 to 64 bytes.
    phase: String,
    /// Whether it runs, 1 to 64 bytes.
    status: String,
}

/// Begins a maneuver of a ship, in the place of the one before.
#[utoipa::path(put, path = "/v1/galaxy/ships/{ship}/maneuver", tag = "galaxy", params(ShipPath),
    request_body = ManeuverStart,
    responses((status = 200, description = "The maneuver", body = ManeuverAnswer), NotFound, Conflict))]
pub(super) async fn begin_maneuver(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<ManeuverStart>,
) -> Result<Answer<ManeuverAnswer>, ApiError> {
    let params = Value::from(body.params).to_string();
    let engine = galaxy.tick_engine();
    Ok(Answer(engine.begin_maneuver(ship, body.kind, params, body.phase, body.status).await?.into()))
}

/// Returns the maneuver of a ship.
#[utoipa::path(get, path = "/v1/galaxy/ships/{ship}/maneuver", tag = "galaxy", params(ShipPath),
    responses((status = 200, description = "The maneuver", body = ManeuverAnswer), NotFound))]
pub(super) async fn get_maneuver(
    State(app): State<AppState>,
    Path(ship): ShipPath,
) -> Result<Answer<ManeuverAnswer>, ApiError> {
    let found = app.galaxy.maneuver(ship).await?;
    found.map(|found| Answer(found.into())).ok_or_else(|| no_maneuver(ship))
}

/// New values of a maneuver. What is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"phase": "coast"}))]
pub(super) struct ManeuverProgress {
    /// 1 to 64 bytes.
    phase: Option<String>,
    /// 1 to 64 bytes.
    status: Option<String>,
    /// Other parameters, in the place of the present ones.
    #[schema(value_type = Option<Object>)]
    params: Option<Object>,
}

/// Changes the maneuver of a ship.
#[utoipa::path(post, path = "/v1/galaxy/ships/{ship}/maneuver/change", tag = "galaxy", params(ShipPath),
    request_body = ManeuverProgress,
    responses((status = 200, description = "The maneuver", body = ManeuverAnswer), NotFound))]
pub(super) async fn change_maneuver(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
    Json(body): Json<ManeuverProgress>,
) -> Result<Answer<ManeuverAnswer>, ApiError> {
    let params_json = body.params.map(|params| Value::from(params).to_string());
    let change = ManeuverChange { phase: body.phase, status: body.status, params_json };
    Ok(Answer(galaxy.tick_engine().update_maneuver(ship, change).await?.into()))
}

/// Ends the maneuver of a ship.
#[utoipa::path(delete, path = "/v1/galaxy/ships/{ship}/maneuver", tag = "galaxy", params(ShipPath),
    responses((status = 204, description = "It is ended"), NotFound))]
pub(super) async fn end_maneuver(
    Acting(galaxy): Acting,
    Path(ship): ShipPath,
) -> Result<StatusCode, ApiError> {
    match galaxy.tick_engine().end_maneuver(ship).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_maneuver(ship)),
    }
}
