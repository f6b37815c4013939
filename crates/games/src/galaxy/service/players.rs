//! Registration, and the deletion of players.

use super::entities::refuse_deleted;
use super::fleets::owned_ships;
use super::notice::GatewayNotice;
use super::ships::{player_of, remove_with_all};
use super::{ApiGateway, Players};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::ENTITIES_PER_TRANSACTION;
use crate::galaxy::model::{PlayerId, ShipId, check_name};
use crate::galaxy::schema::{
    ACTIVE_SHIP, DELETED, FLEET, GATEWAY_NOTICES, Galaxy, ONLINE, PLAYER_SOCKETS, REGISTRATION_OPEN,
};
use crate::galaxy::services::DELETE_PLAYER;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::pubsub::Subscription;
use emberkeep_hot::{self as hot, Scope, Tx};

/// What the deletion of a player removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayerDeletion {
    /// Its ships, with their rules and maneuvers.
    pub ships: usize,
    /// Whether the player was online.
    pub was_online: bool,
}

impl ApiGateway {
    /// Opens or closes registration.
    pub fn set_registration_open(&self, open: bool) -> Pending<'_, Result<()>> {
        Box::pin(async move { Ok(self.scope().put(&REGISTRATION_OPEN.key(), open).await?) })
    }

    /// Notices for gateways, such as the deletion of a player.
    pub fn notices(&self) -> Pending<'_, Result<Subscription>> {
        Box::pin(async move { Ok(self.scope().subscribe(&GATEWAY_NOTICES.key()).await?) })
    }
}

impl Players {
    /// Whether a player of this id and name may register. Accounts are the caller's: nothing is stored.
    pub fn register(&self, player: PlayerId, name: String) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            check_name("player name", &name)?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                refuse_deleted(tx, player)?;
                match tx.get(&REGISTRATION_OPEN.key())?.unwrap_or(true) {
                    true => Ok(()),
                    false => Err(Error::RegistrationClosed),
                }
            };
            self.scope().named("galaxy.register").transact::<_, Error, _>(transaction).await
        })
    }

    /// Deletes a player: it is marked as deleted and gateways are asked to close its connections; then its ships with their
    /// rules and maneuvers, its fleet and its presence are removed. Its id is not used again. After an error call it again.
    pub fn delete_player(&self, player: PlayerId) -> Pending<'_, Result<PlayerDeletion>> {
        Box::pin(async move {
            let scope = self.scope().for_operation(&DELETE_PLAYER).named("galaxy.delete_player");
            let of_tick = owned_ships(&*self.tick().await?, player);
            let mark = move |tx: &mut Tx<'_, Galaxy>| {
                let now = tx.now();
                tx.hset(&DELETED.key(), &player, &now)?;
                tx.publish(&GATEWAY_NOTICES.key(), &GatewayNotice::PlayerDeleted { player_id: player })?;
                tx.smembers_lossy(&FLEET.key(player))
            };
            let members = scope.transact::<_, hot::Error, _>(mark).await?;
            let mut ships: Vec<ShipId> = members.into_iter().filter_map(|member| member.known()).collect();
            ships.extend(of_tick);
            ships.sort_unstable();
            ships.dedup();
            let removed = remove_ships(&scope, player, ships).await?;
            let end = move |tx: &mut Tx<'_, Galaxy>| {
                let was_online = tx.sismember(&ONLINE.key(), &player)?;
                tx.srem(&ONLINE.key(), &player)?;
                tx.del(&PLAYER_SOCKETS.key(player))?;
                tx.del(&FLEET.key(player))?;
                tx.del(&ACTIVE_SHIP.key(player))?;
                Ok(was_online)
            };
            let was_online = scope.transact::<_, hot::Error, _>(end).await?;
            Ok(PlayerDeletion { ships: removed, was_online })
        })
    }

    /// When a player was deleted, in milliseconds since 1970; `None` if it was not.
    pub fn deleted_at(&self, player: PlayerId) -> Pending<'_, Result<Option<i64>>> {
        Box::pin(async move { Ok(self.scope().hget(&DELETED.key(), &player).await?) })
    }
}

/// Removes those of the ships that are the player's.
async fn remove_ships(scope: &Scope<Galaxy>, player: PlayerId, ships: Vec<ShipId>) -> Result<usize> {
    let mut removed = 0;
    for some in ships.chunks(ENTITIES_PER_TRANSACTION) {
        let some = some.to_vec();
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            let mut removed = 0;
            for ship in &some {
                if player_of(tx, ship)? == Some(player) {
                    removed += usize::from(remove_with_all(tx, ship)?);
                }
            }
            Ok(removed)
        };
        removed += scope.transact::<usize, hot::Error, _>(transaction).await?;
    }
    Ok(removed)
}
