//! Intervals and timeouts of connections and hubs. Tests use shorter ones.

use crate::limits::{
    ROOM_POLL_EVERY, ROOM_STATE_EVERY, SOCKET_IDLE_MAX, SOCKET_PING_EVERY, SOCKET_WRITE_TIMEOUT,
};
use emberkeep_games::galaxy::limits::{CLIENT_PING_EVERY, CONNECTION_IDLE_MAX};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(super) poll_every: Duration,
    pub(super) state_every: Duration,
    pub(super) ping_every: Duration,
    pub(super) idle_max: Duration,
    pub(super) write_timeout: Duration,
}

impl Timing {
    /// The times of Galaxy's storage document.
    pub(crate) fn of_galaxy() -> Timing {
        Timing { ping_every: CLIENT_PING_EVERY, idle_max: CONNECTION_IDLE_MAX, ..Timing::default() }
    }
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            poll_every: ROOM_POLL_EVERY,
            state_every: ROOM_STATE_EVERY,
            ping_every: SOCKET_PING_EVERY,
            idle_max: SOCKET_IDLE_MAX,
            write_timeout: SOCKET_WRITE_TIMEOUT,
        }
    }
}
