//! Reactors over HTTP, one file per kind of thing that one can do with them.

mod cooldowns;
mod field;
mod kind;
mod life;
mod shape;
mod tenant;

use super::{PLAY, READ, RULE};
use crate::access::fenced;
use crate::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes(app: &App) -> OpenApiRouter<App> {
    fenced(app, READ, reads()).merge(fenced(app, PLAY, plays())).merge(fenced(app, RULE, rules()))
}

fn reads() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(life::get_reactor))
        .routes(routes!(field::list_field_reactors))
        .routes(routes!(tenant::list_reactors))
        .routes(routes!(cooldowns::get_spot_cooldown))
}

fn plays() -> OpenApiRouter<App> {
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

fn rules() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tenant::tear_down_reactors))
        .routes(routes!(tenant::tear_down_all_reactors))
        .routes(routes!(tenant::sweep_reactors))
}
