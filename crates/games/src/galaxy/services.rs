//! The services of Galaxy, as the storage document names them, and what each may write besides what it owns.

use super::schema::{
    ACTIVE_SHIP, BODY, CHANGES, CHUNK, DELETED, FLEET, JUMPGATE, KEPT, MANEUVER, ONLINE, PLAYER_SOCKETS,
    RULE, RULES, SHIP, STAGED, STATION, SYSTEM_BODIES, SYSTEM_SHIPS,
};
use emberkeep_schema::service;

service! {
    /// Owns what moves: ships, stations, bodies, jump gates and their indexes.
    pub PHYSICS = "physics" {
        /// Stages a tick: its chunks, and the mark that they are complete.
        STAGE = "tick": [CHUNK, STAGED, KEPT],
        /// Adds a ship to its player's fleet.
        SPAWN = "spawn": [FLEET, ACTIVE_SHIP],
        /// Removes a ship with what belongs to it.
        REMOVE_SHIP = "remove ship": [FLEET, ACTIVE_SHIP, RULES, RULE, MANEUVER],
    }
}

service! {
    /// Owns clock, ticks and maneuvers; evaluates automation rules.
    pub TICK_ENGINE = "tick-engine" {
        /// Switches to a staged tick, which has applied the queued changes.
        SWITCH = "tick": [CHANGES],
        /// Completes a tick that another engine had staged: the fields that a tick changes.
        ROLL_FORWARD = "roll forward": [
            SHIP["position", "velocity", "attitude", "angular_velocity", "fuel", "wheel_momentum", "ember:tick"],
            BODY["position", "velocity"],
            STATION["position_x", "position_y", "position_z", "velocity_x", "velocity_y", "velocity_z"],
            JUMPGATE["position_x", "position_y", "position_z", "velocity_x", "velocity_y", "velocity_z"],
        ],
        /// Disables a rule that acted once.
        DISABLE_RULE = "disable rule": [RULE["enabled"]],
        /// Begins anew with tick 0 of the next generation.
        RESET = "reset": all,
        /// Puts a snapshot in the place of what is there.
        RESTORE = "restore": all,
    }
}

service! {
    /// Owns presence, registration and automation rules: where clients connect.
    pub API_GATEWAY = "api-gateway" {
        /// Gives a ship another name.
        RENAME = "rename": [SHIP["name"]],
    }
}

service! {
    /// Owns the fleets.
    pub PLAYERS = "players" {
        /// Removes all that belongs to a player.
        DELETE_PLAYER = "delete player": [
            SHIP, SYSTEM_SHIPS, RULES, RULE, MANEUVER, ONLINE, PLAYER_SOCKETS, CHANGES, DELETED
        ],
    }
}

service! {
    /// Creates the bodies of a galaxy.
    pub GALAXY = "galaxy" {
        /// Adds a body to its system.
        CREATE_BODY = "create body": [BODY, SYSTEM_BODIES, CHANGES],
    }
}
