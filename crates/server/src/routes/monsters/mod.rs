//! Routes of monsters.

mod combat;
mod cooldowns;
mod drops;
mod effects;
mod field;
mod life;
mod tenant;

use super::require_role;
use crate::auth::Role;
use crate::state::AppState;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes(app: &AppState) -> OpenApiRouter<AppState> {
    require_role(app, Role::ReadOnly, read_routes())
        .merge(require_role(app, Role::Service, service_routes()))
        .merge(require_role(app, Role::Admin, admin_routes()))
}

fn read_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(life::get_monster))
        .routes(routes!(field::list_monsters))
        .routes(routes!(combat::get_damage_leader))
        .routes(routes!(cooldowns::get_monster_cooldown))
        .routes(routes!(drops::get_drop_timer))
}

fn service_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(field::spawn_monster, field::destroy_monsters))
        .routes(routes!(field::move_monster))
        .routes(routes!(field::move_monster_to_field))
        .routes(routes!(life::remove_monster))
        .routes(routes!(life::take_monster))
        .routes(routes!(life::heal_monster))
        .routes(routes!(life::use_monster_mp))
        .routes(routes!(combat::damage_monster))
        .routes(routes!(combat::damage_monster_over_time))
        .routes(routes!(combat::control_monster))
        .routes(routes!(combat::release_monster))
        .routes(routes!(effects::apply_effect, effects::cancel_effects))
        .routes(routes!(effects::cancel_effect))
        .routes(routes!(effects::tick_effects))
        .routes(routes!(effects::run_due_effects))
        .routes(routes!(cooldowns::start_monster_cooldown, cooldowns::clear_monster_cooldown))
        .routes(routes!(cooldowns::clear_monster_cooldowns))
        .routes(routes!(drops::register_drop_timer, drops::unregister_drop_timer))
        .routes(routes!(drops::record_drop_hit))
        .routes(routes!(drops::run_due_drops))
}

fn admin_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(tenant::tear_down_monsters))
        .routes(routes!(tenant::tear_down_all_monsters))
        .routes(routes!(tenant::sweep_monsters))
}
