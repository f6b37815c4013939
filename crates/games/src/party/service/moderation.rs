//! Lock, bans, and another game in the same room.

use super::claims::evict;
use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::event::Invalidation;
use crate::party::model::{PlayerId, Room};
use crate::party::rules;
use emberkeep_hot::Tx;

impl Rooms {
    /// Locks or unlocks the lobby. While it is locked, a device that has not joined before can neither join
    /// nor take a player.
    pub async fn lock_lobby(&self, master: &Master, locked: bool) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::lock(&mut room.state, locked);
            room.record(event);
            Ok(())
        })
        .await
    }

    /// Bans the device of a player and returns the id of the ban. The player becomes free. The device can
    /// neither join nor take a player until the ban is lifted.
    pub async fn ban_player(&self, master: &Master, player: &PlayerId) -> Result<String> {
        let player = player.clone();
        self.lead(master, TxMode::KeepAlive, move |tx, room| {
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
    }

    /// Lifts a ban.
    pub async fn unban(&self, master: &Master, ban_id: &str) -> Result<()> {
        let ban_id = ban_id.to_owned();
        self.lead(master, TxMode::KeepAlive, move |_, room| {
            let event = rules::unban(&mut room.state, &ban_id)?;
            room.record([event]);
            Ok(())
        })
        .await
    }

    /// Returns the room to the lobby, even during a game. Players keep their devices, points start at 0.
    /// Without `keep_rounds` the room must be set up again.
    pub async fn play_again(&self, master: &Master, keep_rounds: bool) -> Result<()> {
        let act = move |tx: &mut Tx<'_, Room>, room: &mut RoomTx| {
            room.advance(tx, |state| rules::play_again(state, keep_rounds))
        };
        self.lead(master, TxMode::KeepAlive, act).await
    }
}
