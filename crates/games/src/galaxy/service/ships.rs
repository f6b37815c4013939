//! Ships: spawn, remove, clear, and changes that the next tick applies.

use super::Physics;
use super::entities::{self, Kind as _, ShipKind, refuse_deleted};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::SHIPS_PER_PLAYER_MAX;
use crate::galaxy::model::{NewShip, PlayerId, RuleId, Ship, ShipId, ship_fields};
use crate::galaxy::schema::{
    ACTIVE_SHIP, CHANGES, FLEET, Galaxy, HEAD, MANEUVER, RULE, RULES, SHIP, TOTAL_SPAWNS,
};
use crate::galaxy::services::{REMOVE_SHIP, SPAWN};
use crate::galaxy::tick::{Change, MotionChange, ShipState, running};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Tx};
use emberkeep_schema::Part;

impl Physics {
    /// Spawns a ship: its hash, its entry in the system and in its player's fleet. The first ship of a player becomes the
    /// active one. It is in the next tick. Returns its number among all that were spawned.
    pub fn spawn_ship(&self, ship: NewShip) -> Pending<'_, Result<i64>> {
        Box::pin(async move {
            ship.check()?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| spawn(tx, &ship);
            let scope = self.scope().for_operation(&SPAWN).named("galaxy.spawn_ship");
            scope.transact::<_, Error, _>(transaction).await
        })
    }

    /// Removes a ship with its rules and its maneuver. Another ship of the fleet becomes active when its player logs in.
    /// `false` = there is none.
    pub fn remove_ship(&self, ship: ShipId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| remove_with_all(tx, &ship);
            let scope = self.scope().for_operation(&REMOVE_SHIP).named("galaxy.remove_ship");
            Ok(scope.transact::<_, hot::Error, _>(transaction).await?)
        })
    }

    /// Removes all ships. Returns how many.
    pub fn clear_ships(&self) -> Pending<'_, Result<usize>> {
        Box::pin(async move {
            let scope = self.scope().for_operation(&REMOVE_SHIP).named("galaxy.clear_ships");
            entities::clear::<ShipKind>(scope, remove_with_all).await
        })
    }

    /// Queues new values of tick fields, such as after refuelling or a teleport: the next tick applies them. A ship that
    /// changes its system is in the other index at once.
    pub fn move_ship(&self, ship: ShipId, change: MotionChange) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| queue(tx, ship, &change);
            self.scope().named("galaxy.move_ship").transact::<_, Error, _>(transaction).await
        })
    }
}

fn spawn(tx: &mut Tx<'_, Galaxy>, ship: &NewShip) -> Result<i64> {
    let (player, id) = (ship.player_id, ship.ship_id);
    refuse_deleted(tx, player)?;
    let (fleet, active) = (FLEET.key(player), ACTIVE_SHIP.key(player));
    let (total, head, size, current) = tx.together(|tx| {
        (tx.get(&TOTAL_SPAWNS.key()), tx.get(&HEAD.key()), tx.scard(&fleet), tx.get(&active))
    })?;
    if size >= SHIPS_PER_PLAYER_MAX {
        return Err(Error::TooMany { what: "ships of the player", max: SHIPS_PER_PLAYER_MAX });
    }
    let number = total.unwrap_or(0) + 1;
    let pairs = ship.pairs(number, head.map_or(0, |head| head.tick))?;
    let state = ShipState { player_id: player, system_id: ship.system_id.clone(), motion: ship.motion };
    let change = Change::ShipSpawned { ship_id: id, state };
    entities::create::<ShipKind>(tx, &id, &ship.system_id, &pairs, &change)?;
    tx.incr_by(&TOTAL_SPAWNS.key(), 1)?;
    tx.sadd(&fleet, &id)?;
    if current.is_none() {
        tx.put(&active, &id)?;
    }
    Ok(number)
}

/// Removes a ship and what belongs to it.
pub(super) fn remove_with_all(tx: &mut Tx<'_, Galaxy>, ship: &ShipId) -> hot::Result<bool> {
    let player = player_of(tx, ship)?;
    if !entities::remove::<ShipKind>(tx, ship)? {
        return Ok(false);
    }
    if let Some(player) = player {
        let active = ACTIVE_SHIP.key(player);
        if tx.get(&active)? == Some(*ship) {
            tx.del(&active)?;
        }
        tx.srem(&FLEET.key(player), ship)?;
    }
    remove_rules(tx, ship)?;
    tx.del(&MANEUVER.key(ship))?;
    Ok(true)
}

/// Removes all rules of a ship.
fn remove_rules(tx: &mut Tx<'_, Galaxy>, ship: &ShipId) -> hot::Result<()> {
    let rules: Vec<RuleId> =
        tx.smembers_lossy(&RULES.key(ship))?.into_iter().filter_map(Member::known).collect();
    rules.iter().try_for_each(|rule| tx.del(&RULE.key(ship, rule)))?;
    tx.del(&RULES.key(ship))
}

/// The player of a ship; `None` if there is no such ship, or no player can be read there.
pub(super) fn player_of(tx: &mut Tx<'_, Galaxy>, ship: &ShipId) -> hot::Result<Option<PlayerId>> {
    let text = tx.hget(&SHIP.key(ship), &ship_fields::PLAYER_ID.to_owned())?;
    Ok(text.and_then(|text| PlayerId::parse(&text)))
}

/// The ship, if it is the player's.
pub(super) fn owned(tx: &mut Tx<'_, Galaxy>, ship: ShipId, player: PlayerId) -> Result<()> {
    let exists = tx.exists(&SHIP.key(ship))?;
    match player_of(tx, &ship)? {
        Some(owner) if owner == player => Ok(()),
        _ if exists => Err(Error::NotOwner { ship, player }),
        _ => Err(Error::not_found(ShipKind::WHAT, ship)),
    }
}

fn queue(tx: &mut Tx<'_, Galaxy>, ship: ShipId, change: &MotionChange) -> Result<()> {
    running(tx)?;
    let found: Option<Ship> = entities::find::<ShipKind>(tx, &ship)?;
    let found = found.ok_or_else(|| Error::not_found(ShipKind::WHAT, ship))?;
    change.check(found.fuel_capacity)?;
    if let Some(system) = change.system_id.as_ref().filter(|system| **system != found.system_id) {
        tx.srem(&ShipKind::index(&found.system_id), &ship)?;
        tx.sadd(&ShipKind::index(system), &ship)?;
        tx.hset(&SHIP.key(ship), &ship_fields::SYSTEM_ID.to_owned(), &system.to_string())?;
    }
    Ok(tx.append(&CHANGES.key(), &Change::ShipMoved { ship_id: ship, motion: change.clone() })?)
}
