//! Routes of DarkAges. Fields are named as in its storage document, times are milliseconds since 1970.

mod audit;
mod boards;
mod city;
mod combat;
mod events;
mod hand_off;
mod metrics;
mod page;
mod positions;
mod profiles;
mod record;
mod rows;
mod sessions;
mod stream;
mod words;
mod zones;

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
        .routes(routes!(sessions::get_session))
        .routes(routes!(sessions::list_expired_sessions))
        .routes(routes!(zones::list_zone_members))
        .routes(routes!(zones::count_zone_members))
        .routes(routes!(zones::get_zone_member))
        .routes(routes!(city::find_nearby_players))
        .routes(routes!(city::list_connections))
        .routes(routes!(stream::stream_zone))
        .routes(routes!(hand_off::list_arrivals))
        .routes(routes!(positions::get_positions))
        .routes(routes!(events::list_combat_events))
        .routes(routes!(events::list_attacks))
        .routes(routes!(events::list_hits_taken))
        .routes(routes!(events::list_zone_combat_events))
        .routes(routes!(events::list_kills))
        .routes(routes!(events::list_play_sessions))
        .routes(routes!(events::get_player_stats))
        .routes(routes!(metrics::list_zone_metrics))
        .routes(routes!(boards::get_board))
        .routes(routes!(boards::list_daily_board))
        .routes(routes!(boards::get_rank))
        .routes(routes!(boards::get_board_around))
}

fn service_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(sessions::log_in))
        .routes(routes!(sessions::log_out))
        .routes(routes!(sessions::touch_session))
        .routes(routes!(sessions::change_session))
        .routes(routes!(zones::move_player))
        .routes(routes!(city::open_connection, city::get_connection, city::close_connection))
        .routes(routes!(city::touch_connection))
        .routes(routes!(city::check_rate_limit))
        .routes(routes!(stream::publish_zone_message))
        .routes(routes!(hand_off::hand_off_player))
        .routes(routes!(hand_off::accept_arrival))
        .routes(routes!(hand_off::refuse_arrival))
        .routes(routes!(zones::keep_zone))
        .routes(routes!(positions::set_positions))
        .routes(routes!(combat::damage_player))
        .routes(routes!(record::record_events))
        .routes(routes!(record::record_stats))
        .routes(routes!(metrics::report_zone_metrics))
        .routes(routes!(profiles::register_player))
        .routes(routes!(profiles::get_profile_by_username))
        .routes(routes!(profiles::get_profile_by_email))
        .routes(routes!(profiles::get_profile))
        .routes(routes!(profiles::change_profile))
        .routes(routes!(profiles::change_username))
        .routes(routes!(profiles::change_email))
        .routes(routes!(profiles::record_login))
        .routes(routes!(profiles::get_ban))
        .routes(routes!(audit::list_audit_entries, audit::record_audit_entry))
}

fn admin_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(sessions::kick_player))
        .routes(routes!(sessions::close_expired_sessions))
        .routes(routes!(profiles::ban_profile, profiles::unban_profile))
}
