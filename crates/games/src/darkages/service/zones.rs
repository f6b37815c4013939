//! Zones: who is where. A player is in at most one zone.

use super::*;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::index::{self, Listing};

impl DarkAges {
    /// Moves a player into a zone of the same shard; [`ZoneId::NONE`] leaves the present one. Returns the zone that it left.
    /// [`hand_off`](DarkAges::hand_off) moves to any zone.
    pub fn move_to(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<ZoneId>> {
        Box::pin(async move {
            if zone.0 < 0 {
                return Err(Error::invalid("zone", format!("{}, expected 0 or more", zone.0)));
            }
            let (shards, target) = (self.shards.clone(), self.partition_of(zone));
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let (mut session, mut play) = logged_in(tx, entity)?;
                let former = ZoneId(session.zone_id);
                let is_other = zone != ZoneId::NONE && *tx.partition() != target;
                if is_other || shards.are_apart(former, zone) {
                    return Err(Error::OtherShard { entity, what: format!("zone {zone}") });
                }
                if former != zone {
                    leave_zone(tx, entity, former)?;
                }
                session.zone_id = zone.0;
                put_active(tx, entity, &mut session, &mut play)?;
                enter(tx, entity, zone)?;
                Ok(former)
            };
            self.at_home(entity, "darkages.move_to", transaction).await
        })
    }

    /// The zone of a player; `None` if it is not logged in or in no zone.
    pub fn zone_of(&self, entity: EntityId) -> Pending<'_, Result<Option<ZoneId>>> {
        Box::pin(async move {
            let session = self.session(entity).await?;
            Ok(session.map(|session| ZoneId(session.zone_id)).filter(|zone| *zone != ZoneId::NONE))
        })
    }

    /// The sessions of the players in a zone. Entries of players without a living session are removed.
    pub fn members(&self, zone: ZoneId) -> Pending<'_, Result<Listing<Session>>> {
        Box::pin(async move {
            Ok(index::list::<InZone>(&self.scope_of(zone).named("darkages.members"), &ZONE_PLAYERS.key(zone))
                .await?)
        })
    }

    /// Whether a player with a living session is in a zone.
    pub fn is_in_zone(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let transaction = move |tx: &mut hot::ReadTx<'_, Shard>| {
                let (session, is_member) = tx.together(|tx| {
                    (tx.get(&SESSION.key(entity)), tx.sismember(&ZONE_PLAYERS.key(zone), &entity))
                })?;
                Ok(is_member && session.is_some_and(|session| session.zone_id == zone.0))
            };
            self.scope_of(zone).named("darkages.is_in_zone").read(transaction).await
        })
    }

    /// Keeps the members of a zone for another half hour. A zone server calls it while it serves the zone.
    pub fn heartbeat(&self, zone: ZoneId) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Shard>| tx.touch(&ZONE_PLAYERS.key(zone));
            Ok(self.scope_of(zone).named("darkages.heartbeat").transact(transaction).await?)
        })
    }
}

/// Enters a zone that the session names already.
pub(super) fn enter(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId) -> hot::Result<()> {
    if zone == ZoneId::NONE {
        return tx.del(&PLAYER_ZONE.key(entity));
    }
    tx.sadd(&ZONE_PLAYERS.key(zone), &entity)?;
    tx.put(&PLAYER_ZONE.key(entity), &zone.0)
}
