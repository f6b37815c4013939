//! Routes of the party game's rooms. They are public: a room's master sends the room's key, a device its
//! reconnect token.

mod credentials;
mod game;
mod life;
mod lobby;
mod moderation;
mod responses;
mod setup;

use super::public;
use crate::openapi;
use crate::state::AppState;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    let mut routes = OpenApiRouter::new()
        .routes(routes!(life::create_room))
        .routes(routes!(life::create_room_of_client))
        .routes(routes!(life::get_room, life::close_room))
        .routes(routes!(life::get_room_as_master))
        .routes(routes!(life::join_room))
        .routes(routes!(life::list_room_events))
        .routes(routes!(life::settle_room))
        .routes(routes!(setup::set_up_room))
        .routes(routes!(setup::set_up_room_of_client))
        .routes(routes!(lobby::add_player))
        .routes(routes!(lobby::delete_player))
        .routes(routes!(lobby::rename_player))
        .routes(routes!(lobby::toggle_player))
        .routes(routes!(lobby::rename_own_player))
        .routes(routes!(lobby::take_player, lobby::reset_claims))
        .routes(routes!(lobby::release_player))
        .routes(routes!(game::start_game))
        .routes(routes!(game::open_item))
        .routes(routes!(game::submit_vote))
        .routes(routes!(game::force_close_vote))
        .routes(routes!(game::reveal_item))
        .routes(routes!(game::start_next_round))
        .routes(routes!(moderation::lock_lobby))
        .routes(routes!(moderation::ban_player))
        .routes(routes!(moderation::unban))
        .routes(routes!(moderation::play_again));
    openapi::describe_errors(routes.get_openapi_mut());
    public(routes)
}
