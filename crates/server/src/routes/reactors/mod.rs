//! Routes of reactors.

mod cooldowns;
mod field;
mod kind;
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
        .routes(routes!(life::get_reactor))
        .routes(routes!(field::list_field_reactors))
        .routes(routes!(tenant::list_reactors))
        .routes(routes!(cooldowns::get_spot_cooldown))
}

fn service_routes() -> OpenApiRouter<AppState> {
    let mut routes = OpenApiRouter::new();
    routes.get_openapi_mut().components.get_or_insert_default().schemas.extend(kind::schemas());
    routes
        .routes(routes!(life::allocate_reactor_id))
        .routes(routes!(life::update_reactor, life::destroy_reactor))
        .routes(routes!(life::hit_reactor))
        .routes(routes!(field::create_reactor, field::destroy_field_reactors))
        .routes(routes!(cooldowns::start_spot_cooldown, cooldowns::clear_spot_cooldown))
        .routes(routes!(cooldowns::clear_field_cooldowns))
}

fn admin_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(tenant::tear_down_reactors))
        .routes(routes!(tenant::tear_down_all_reactors))
        .routes(routes!(tenant::sweep_reactors))
}
