//! A room as of one moment, from which every client's view is made without asking the store again.

use super::master::{MasterSync, master_sync};
use super::player::{PlayerSync, Seen, player_sync};
use crate::party::model::*;
use std::collections::BTreeSet;

/// A room as of one moment, for whoever serves its clients. It holds what only the master may see, so it stays with the
/// server: clients get [`Look::player`] or [`Look::master`].
#[derive(Clone, Debug)]
pub struct Look {
    pub(crate) meta: Meta,
    pub(crate) state: State,
    pub(crate) now: i64,
    pub(crate) sequence: u64,
    pub(crate) claims: Vec<(DeviceId, PlayerId)>,
    pub(crate) held: BTreeSet<PlayerId>,
    pub(crate) voters: BTreeSet<PlayerId>,
}

impl Look {
    fn seen(&self) -> Seen<'_> {
        Seen {
            meta: &self.meta,
            state: &self.state,
            now: self.now,
            sequence: self.sequence,
            claims: &self.claims,
            held: &self.held,
            voters: &self.voters,
        }
    }

    /// What a device sees.
    pub fn player(&self, device: Option<&DeviceId>) -> PlayerSync {
        player_sync(&self.seen(), device)
    }

    /// What the master sees, on its device.
    pub fn master(&self, device: Option<&DeviceId>) -> MasterSync {
        master_sync(&self.seen(), device)
    }

    /// The player of a device: it must be there and take part.
    pub fn player_of(&self, device: &DeviceId) -> Option<PlayerId> {
        self.seen().player_of(device)
    }

    /// Whether the master banned a device.
    pub fn is_banned(&self, device: &DeviceId) -> bool {
        self.state.is_banned(device)
    }

    /// The item that is voted on or whose result waits to be shown, and the players who have voted on it.
    pub fn voters(&self) -> Option<(&RoundId, &ItemId, &BTreeSet<PlayerId>)> {
        let (round, item) = crate::party::rules::current(&self.state)?;
        Some((&round.round_id, &item.item_id, &self.voters))
    }

    /// When the room ends, unless it is used before.
    pub fn expires_at(&self) -> i64 {
        self.meta.expires_at
    }

    /// When the room was created: after another time it is another room of the same code.
    pub fn created_at(&self) -> i64 {
        self.meta.created_at
    }

    /// The store's time at the moment of the look.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The newest event that it includes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When the next thing happens by itself.
    pub fn next_deadline(&self) -> Option<i64> {
        self.state.closes_at()
    }
}
