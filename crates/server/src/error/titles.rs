//! Every error code of the API with its title. The reference page lists them at `/docs#error-CODE`.

/// Code and title, by code.
pub(crate) const TITLES: &[(&str, &str)] = &[
    ("already_dead", "The monster is already dead"),
    ("already_logged_in", "The player is already logged in"),
    ("already_registered", "The player is already registered"),
    ("already_voted", "The player has already voted"),
    ("ban_not_found", "Ban not found"),
    ("banned", "The device is banned from the room"),
    ("body_broke_off", "The connection ended inside the body"),
    ("body_too_large", "The body is too large"),
    ("body_too_late", "The body did not arrive in time"),
    ("busy", "The server has too many unfinished requests"),
    ("changed", "The record has changed since it was read"),
    ("conflict", "Conflict with the current state"),
    ("connection_in_use", "Another entity has the connection"),
    ("dead", "The player is dead"),
    ("device_already_has_player", "The device already has a player"),
    ("exhausted", "No id is free"),
    ("exists", "The id is taken"),
    ("field_full", "The field is full"),
    ("forbidden", "The token does not allow this"),
    ("history_full", "History has no place left"),
    ("history_not_configured", "The server has no history"),
    ("history_unavailable", "History is unavailable"),
    ("host_not_allowed", "The Host header does not name this machine"),
    ("in_transit", "The player is on its way to another shard"),
    ("inactive", "The player does not take part"),
    ("internal", "Internal error"),
    ("invalid", "Invalid request"),
    ("invalid_cursor", "The cursor does not belong to this list"),
    ("invalid_payload", "Invalid request"),
    ("invalid_protocol_version", "The protocol version is not supported"),
    ("invalid_selection", "Invalid vote"),
    ("journal_stopped", "The journal has stopped"),
    ("late", "The vote is closed"),
    ("lease_held", "Another process runs the ticks"),
    ("lease_lost", "Another process took the ticks over"),
    ("malformed_json", "The body is not JSON"),
    ("method_not_allowed", "Method not allowed"),
    ("no_drop_timer", "The monster has no drop timer"),
    ("no_effect", "The monster does not have this effect"),
    ("no_such_route", "No such route"),
    ("not_arrived", "The player did not arrive in the zone"),
    ("not_claimed", "The player is not claimed"),
    ("not_enough_players", "Not enough players take part"),
    ("not_found", "Not found"),
    ("not_in_phase", "Not possible in this phase of the game"),
    ("not_logged_in", "The player is not logged in"),
    ("not_master", "The master key is missing or wrong"),
    ("not_owner", "The ship is another player's"),
    ("not_ready", "The store is not ready"),
    ("not_registered", "The player is not registered"),
    ("not_this_device", "The reconnect token is missing or wrong"),
    ("on_cooldown", "The spot is on cooldown"),
    ("origin_not_allowed", "The Origin header is not allowed"),
    ("other_shard", "The players are of different shards"),
    ("outcome_unknown", "It is unknown whether the write was committed"),
    ("paused", "The game is paused"),
    ("player_banned", "The player is banned"),
    ("player_deleted", "The player was deleted"),
    ("player_not_found", "Player not found"),
    ("proxy_not_allowed", "A server without tokens does not accept proxied requests"),
    ("rate_limited", "Too many requests"),
    ("recorder_not_configured", "The server has no folder for events"),
    ("registration_closed", "Registration is closed"),
    ("replaced", "A later login or hand-off replaced this one"),
    ("room_expired", "The room has expired"),
    ("room_full", "The room is full"),
    ("room_locked", "The room is locked"),
    ("room_not_found", "Room not found"),
    ("rule_exists", "The ship has a rule with this id"),
    ("spot_taken", "Another reactor stands on the spot"),
    ("stale_step", "Another tick came between"),
    ("store_full", "The store is full"),
    ("store_unavailable", "The store is unavailable"),
    ("stored_value_spoiled", "A stored value is corrupt"),
    ("taken", "The name or address is taken"),
    ("taken_now", "Another device has the player"),
    ("tick_gone", "The tick is not kept any more"),
    ("too_large", "A value is too large"),
    ("too_many", "A limit is reached"),
    ("too_many_connections", "The entity has too many connections"),
    ("too_many_in_transit", "Too many players are on their way out of the shard"),
    ("too_many_sockets", "Too many WebSockets from one address"),
    ("too_many_streams", "Too many streams from one address"),
    ("unauthorized", "A known token is required"),
    ("unavailable", "Temporarily unavailable"),
    ("under_way", "A reset or a restore is under way"),
    ("unsupported_media_type", "The body must be application/json"),
    ("upgrade_required", "A WebSocket handshake is required"),
];

/// `None` for a code that is not in [`TITLES`].
pub(super) fn title(code: &str) -> Option<&'static str> {
    let index = TITLES.binary_search_by_key(&code, |(known, _)| known).ok()?;
    Some(TITLES[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_for_the_binary_search() {
        assert!(TITLES.is_sorted_by_key(|(code, _)| code));
    }
}
