//! Fleets: the ships of a player, and which one it pilots.

use super::entities::{ShipKind, find, refuse_deleted};
use super::ships::{owned, player_of};
use super::{GalaxyState, Players};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{PlayerId, ShipId};
use crate::galaxy::schema::{ACTIVE_SHIP, FLEET, Galaxy};
use crate::galaxy::tick::{TickView, running};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Tx};
use serde::{Deserialize, Serialize};

/// The ships of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// Their ids, in order.
    pub ships: Vec<ShipId>,
    /// The one that the player pilots; `None` if there is no ship.
    pub active: Option<ShipId>,
}

impl GalaxyState {
    /// The fleet of a player. Ships that exist no more, and those of others, are left out.
    pub fn fleet(&self, player: PlayerId) -> Pending<'_, Result<Fleet>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let ships = living(tx, player)?;
                let active = tx.get(&ACTIVE_SHIP.key(player))?.filter(|active| ships.contains(active));
                Ok(Fleet { ships, active })
            };
            Ok(self.scope().named("galaxy.fleet").transact::<_, hot::Error, _>(transaction).await?)
        })
    }
}

impl Players {
    /// What a login does: the members of the fleet are verified, ships of the player that are in the present tick are added,
    /// and without an active ship the oldest one becomes active.
    pub fn login(&self, player: PlayerId) -> Pending<'_, Result<Fleet>> {
        Box::pin(async move {
            let view = self.tick().await?;
            let of_tick = owned_ships(&view, player);
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                running(tx)?;
                refuse_deleted(tx, player)?;
                Ok(rebuilt(tx, player, &of_tick)?)
            };
            self.scope().named("galaxy.login").transact::<_, Error, _>(transaction).await
        })
    }

    /// Makes a ship of the player the active one.
    pub fn switch_ship(&self, player: PlayerId, ship: ShipId) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                refuse_deleted(tx, player)?;
                owned(tx, ship, player)?;
                tx.sadd(&FLEET.key(player), &ship)?;
                Ok(tx.put(&ACTIVE_SHIP.key(player), &ship)?)
            };
            self.scope().named("galaxy.switch_ship").transact::<_, Error, _>(transaction).await
        })
    }
}

/// The ships of a player in a tick.
pub(super) fn owned_ships(view: &TickView, player: PlayerId) -> Vec<ShipId> {
    let own = view.world.ships.iter().filter(|(_, ship)| ship.player_id == player);
    own.map(|(id, _)| *id).collect()
}

/// The ships in a player's set that exist and are the player's. The owner of the set removes other entries.
fn living(tx: &mut Tx<'_, Galaxy>, player: PlayerId) -> hot::Result<Vec<ShipId>> {
    let fleet = FLEET.key(player);
    let prunes = tx.may_write(&fleet);
    let mut ships = Vec::new();
    for entry in tx.smembers_lossy(&fleet)? {
        match entry {
            Member::Known(ship) if player_of(tx, &ship)? == Some(player) => ships.push(ship),
            Member::Known(ship) if prunes => tx.srem(&fleet, &ship)?,
            Member::External(bytes) if prunes => tx.srem_raw(&fleet, bytes)?,
            Member::Known(_) | Member::External(_) => {}
        }
    }
    ships.sort_unstable();
    Ok(ships)
}

fn rebuilt(tx: &mut Tx<'_, Galaxy>, player: PlayerId, of_tick: &[ShipId]) -> hot::Result<Fleet> {
    let mut ships = living(tx, player)?;
    for ship in of_tick {
        if !ships.contains(ship) && player_of(tx, ship)? == Some(player) {
            tx.sadd(&FLEET.key(player), ship)?;
            ships.push(*ship);
        }
    }
    ships.sort_unstable();
    let key = ACTIVE_SHIP.key(player);
    let stored = tx.get(&key)?;
    let active = match stored.filter(|active| ships.contains(active)) {
        Some(active) => Some(active),
        None => oldest(tx, &ships)?,
    };
    match active {
        Some(active) if stored != Some(active) => tx.put(&key, &active)?,
        None if stored.is_some() => tx.del(&key)?,
        _ => {}
    }
    Ok(Fleet { ships, active })
}

/// The ship that was spawned first. Ships of other programs have no number and count as older. One that cannot be read is
/// taken only if there is no other.
fn oldest(tx: &mut Tx<'_, Galaxy>, ships: &[ShipId]) -> hot::Result<Option<ShipId>> {
    let mut numbered = Vec::with_capacity(ships.len());
    for ship in ships {
        let number = match find::<ShipKind>(tx, ship) {
            Ok(found) => found.map_or(i64::MAX, |found| found.spawn_number),
            Err(error) if error.is_corrupt() => i64::MAX,
            Err(error) => return Err(error),
        };
        numbered.push((number, *ship));
    }
    Ok(numbered.into_iter().min().map(|(_, ship)| ship))
}
