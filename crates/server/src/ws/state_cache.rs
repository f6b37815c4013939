//! The serialized states of one read of a room. Clients with the same view share the bytes.

use super::server_message;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{DeviceId, PlayerId, RoomSnapshot};
use std::collections::HashMap;

/// Clients with the same view: role, and player of the device.
type Viewer = (bool, Option<PlayerId>);

pub(super) struct StateCache<'a> {
    pub(super) look: &'a RoomSnapshot,
    serialized: HashMap<Viewer, Utf8Bytes>,
}

impl StateCache<'_> {
    pub(super) fn new(look: &RoomSnapshot) -> StateCache<'_> {
        StateCache { look, serialized: HashMap::new() }
    }

    /// The state as a device may see it.
    pub(super) fn state(&mut self, is_master: bool, device: &DeviceId) -> Utf8Bytes {
        let look = self.look;
        let viewer = (is_master, look.player_of(device));
        let serialize = || match is_master {
            true => server_message::sync(&look.master(Some(device))),
            false => server_message::sync(&look.player(Some(device))),
        };
        self.serialized.entry(viewer).or_insert_with(serialize).clone()
    }
}
