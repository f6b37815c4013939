//! A consistent snapshot of a room. The view of every client is made from it without another read of the
//! store.

use super::master::{MasterSync, master_sync};
use super::player::{PlayerStatus, PlayerSync, player_sync};
use crate::party::model::*;
use crate::party::rules;
use std::collections::BTreeSet;

/// A room at one moment, for a server that sends views to its clients.
///
/// It contains what only the master may see, so it must stay on the server. Clients get
/// [`RoomSnapshot::player`] or [`RoomSnapshot::master`].
#[derive(Clone, Debug)]
pub struct RoomSnapshot {
    pub(crate) meta: Meta,
    pub(crate) state: State,
    pub(crate) now: i64,
    pub(crate) sequence: u64,
    /// Claims on which both maps agree.
    pub(crate) claims: Vec<(DeviceId, PlayerId)>,
    /// Players that no other device can take: those with a claim, and those with half a claim that can become
    /// whole.
    pub(crate) taken: BTreeSet<PlayerId>,
    /// Players that have voted on the current item.
    pub(crate) voters: BTreeSet<PlayerId>,
}

impl RoomSnapshot {
    /// The view of a player's device; without a device, the view of a spectator.
    pub fn player(&self, device: Option<&DeviceId>) -> PlayerSync {
        player_sync(self, device)
    }

    /// The view of the master. The device is the master's own, if it has one.
    pub fn master(&self, device: Option<&DeviceId>) -> MasterSync {
        master_sync(self, device)
    }

    /// The active player of a device; `None` if the device has no player, or if the player is deleted or
    /// inactive.
    pub fn player_of(&self, device: &DeviceId) -> Option<PlayerId> {
        let (_, player) = self.claims.iter().find(|(owner, _)| owner == device)?;
        self.state.player(player).filter(|player| player.active).map(|player| player.player_id.clone())
    }

    pub(super) fn status_of(&self, player: &PlayerId) -> PlayerStatus {
        match self.taken.contains(player) {
            true => PlayerStatus::Taken,
            false => PlayerStatus::Free,
        }
    }

    /// Whether the master banned a device.
    pub fn is_banned(&self, device: &DeviceId) -> bool {
        self.state.is_banned(device)
    }

    /// The current item and the players that have voted on it; `None` if no item is open or waits for its
    /// reveal.
    pub fn voters(&self) -> Option<(&RoundId, &ItemId, &BTreeSet<PlayerId>)> {
        let (round, item) = rules::current(&self.state)?;
        Some((&round.round_id, &item.item_id, &self.voters))
    }

    /// When the room expires unless it is used before, in milliseconds since 1970.
    pub fn expires_at(&self) -> i64 {
        self.meta.expires_at
    }

    /// When the room was created, in milliseconds since 1970. Another value means another room with the same
    /// code.
    pub fn created_at(&self) -> i64 {
        self.meta.created_at
    }

    /// The store's time when the snapshot was taken, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The sequence of the newest event that the snapshot includes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When the open vote closes by itself; `None` if no countdown runs.
    pub fn next_deadline(&self) -> Option<i64> {
        self.state.closes_at()
    }
}
