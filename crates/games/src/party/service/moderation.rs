//! Lock, bans, and another game in the same room.

use super::claims::evict;
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::PlayerId;
use crate::party::rules;
use emberkeep_hot::engine::Pending;

impl Rooms {
    /// Locks or unlocks the lobby. While it is locked, a device that has not joined before can neither join
    /// nor take a player.
    pub fn lock_lobby<'a>(&'a self, master: &'a Master, locked: bool) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.rule("party.lock_lobby", master, move |state| Ok(rules::lock(state, locked))).await
        })
    }

    /// Bans the device of a player and returns the id of the ban. The player becomes free. The device can
    /// neither join nor take a player until the ban is lifted.
    pub fn ban_player<'a>(&'a self, master: &'a Master, player: &'a PlayerId) -> Pending<'a, Result<String>> {
        Box::pin(async move {
            let player = player.clone();
            self.lead("party.ban_player", master, move |tx, room| {
                if room.state.player(&player).is_none() {
                    return Err(Error::PlayerNotFound(player.clone()));
                }
                let Some(device) = evict(tx, room, &player, Invalidation::Banned)? else {
                    let problem = format!("player {player} has no device to ban");
                    return Err(Error::NotClaimed { problem });
                };
                let event = rules::ban(&mut room.state, &device, &player, room.now)?;
                room.record([event]);
                Ok(room.state.bans().last().map(|ban| ban.ban_id.clone()).unwrap_or_default())
            })
            .await
        })
    }

    /// Ends a ban; the device can join again. Fails with `BanNotFound` if there is none of this id.
    pub fn unban<'a>(&'a self, master: &'a Master, ban_id: &'a str) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let ban_id = ban_id.to_owned();
            self.rule("party.unban", master, move |state| rules::unban(state, &ban_id).map(Some)).await
        })
    }

    /// Returns the room to the lobby, even during a game. Players keep their devices, points start at 0.
    /// Without `keep_rounds` the room must be set up again.
    pub fn play_again<'a>(&'a self, master: &'a Master, keep_rounds: bool) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.lead("party.play_again", master, move |tx, room| {
                room.advance(tx, |state| rules::play_again(state, keep_rounds))
            })
            .await
        })
    }
}
