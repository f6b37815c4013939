//! Rooms of the party game over HTTP. The game's own clients call them: a room's master shows the room's key, a device its
//! reconnect token.

mod game;
mod leader;
mod life;
mod lobby;
mod moderation;
mod problems;
mod setup;
mod shape;

use crate::access::public;
use crate::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
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
    public(routes)
}
