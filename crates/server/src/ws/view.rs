//! The states of one look at a room, each written once: sockets that see the same share its bytes.

use super::message;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{DeviceId, RoomSnapshot, PlayerId};
use std::collections::HashMap;

/// Who sees the same: masters and others, by the player that the device has.
type Viewer = (bool, Option<PlayerId>);

/// A look, and the states that were made of it so far.
pub(super) struct Views<'a> {
    pub(super) look: &'a RoomSnapshot,
    written: HashMap<Viewer, Utf8Bytes>,
}

impl Views<'_> {
    pub(super) fn of(look: &RoomSnapshot) -> Views<'_> {
        Views { look, written: HashMap::new() }
    }

    /// The state as a device may see it.
    pub(super) fn state(&mut self, is_master: bool, device: &DeviceId) -> Utf8Bytes {
        let look = self.look;
        let viewer = (is_master, look.player_of(device));
        let write = || match is_master {
            true => message::sync(&look.master(Some(device))),
            false => message::sync(&look.player(Some(device))),
        };
        self.written.entry(viewer).or_insert_with(write).clone()
    }
}
