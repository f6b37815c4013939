//! How often a connection and a room are looked at, and how long they have. Tests have a faster one.

use crate::limits::{LOOK_EVERY, ROOM_STATE_EVERY, SOCKET_IDLE_MAX, SOCKET_PING_EVERY, SOCKET_WRITE_WAIT};
use std::time::Duration;

/// Times between signs of life, and how long one may fail to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub(super) look_every: Duration,
    pub(super) state_every: Duration,
    pub(super) ping_every: Duration,
    pub(super) idle_max: Duration,
    pub(super) write_wait: Duration,
}

impl Default for Rhythm {
    fn default() -> Rhythm {
        Rhythm {
            look_every: LOOK_EVERY,
            state_every: ROOM_STATE_EVERY,
            ping_every: SOCKET_PING_EVERY,
            idle_max: SOCKET_IDLE_MAX,
            write_wait: SOCKET_WRITE_WAIT,
        }
    }
}
