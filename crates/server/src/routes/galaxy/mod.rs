//! Routes of Galaxy. Fields are named as in its storage document.
//!
//! What writes acts as the service of the caller's token ([`acting`]), and without one as the owner of what it writes.

mod acting;
mod clock;
mod players;
mod rules;
mod shapes;
mod ships;
mod structures;
mod systems;

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
        .routes(routes!(clock::get_galaxy_status))
        .routes(routes!(clock::get_galaxy_clock))
        .routes(routes!(systems::get_system))
        .routes(routes!(systems::list_ships))
        .routes(routes!(ships::get_ship))
        .routes(routes!(structures::get_station))
        .routes(routes!(structures::get_jumpgate))
        .routes(routes!(structures::get_body))
        .routes(routes!(rules::list_rules))
        .routes(routes!(rules::get_maneuver))
        .routes(routes!(players::get_fleet))
        .routes(routes!(players::get_presence))
        .routes(routes!(players::list_online_players))
}

fn service_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(ships::spawn_ship))
        .routes(routes!(ships::remove_ship))
        .routes(routes!(ships::rename_ship))
        .routes(routes!(ships::control_ship))
        .routes(routes!(ships::refuel_ship))
        .routes(routes!(ships::move_ship))
        .routes(routes!(structures::spawn_station))
        .routes(routes!(structures::remove_station))
        .routes(routes!(structures::spawn_jumpgate))
        .routes(routes!(structures::remove_jumpgate))
        .routes(routes!(structures::create_body))
        .routes(routes!(structures::remove_body))
        .routes(routes!(rules::create_rule))
        .routes(routes!(rules::delete_rule))
        .routes(routes!(rules::change_rule))
        .routes(routes!(rules::enable_rule))
        .routes(routes!(rules::begin_maneuver, rules::end_maneuver))
        .routes(routes!(rules::change_maneuver))
        .routes(routes!(players::register_pilot))
        .routes(routes!(players::log_in_pilot))
        .routes(routes!(players::switch_ship))
        .routes(routes!(players::close_pilot_connections))
}

fn admin_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(clock::change_clock))
        .routes(routes!(clock::pause_galaxy))
        .routes(routes!(clock::resume_galaxy))
        .routes(routes!(clock::set_registration))
        .routes(routes!(clock::reset_galaxy))
        .routes(routes!(players::delete_pilot))
        .routes(routes!(structures::clear_ships))
        .routes(routes!(structures::clear_stations))
        .routes(routes!(structures::clear_jumpgates))
        .routes(routes!(structures::clear_bodies))
}
