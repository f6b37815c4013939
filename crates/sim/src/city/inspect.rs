//! Looks at all zones while the game goes on, those of a shard at once: no player is in two of them. Beside that it sweeps:
//! players whose hand-off was not delivered at once arrive.
//!
//! Budget: one transaction for each shard, three for a player seen in two of them, and one sweep every [`EVERY`]. Stops when the game is over.

use super::ledger::CityLedger;
use crate::world::{Retryable, World};
use emberkeep::games::darkages::{EntityId, Error, PLAY, Shard, ZONE_PLAYERS, ZoneId};
use emberkeep::hot::{self, ReadTx, Scope};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(100);
/// Arrivals of one sweep.
const ARRIVALS_PER_SWEEP: usize = 100;

pub(crate) async fn serve(world: Arc<World>) -> CityLedger {
    let mut ledger = CityLedger::default();
    while world.rest(EVERY).await {
        match inspect(&world).await {
            Ok(None) => ledger.inspections += 1,
            Ok(Some(violation)) => world.report_violation(violation),
            Err(error) if error.is_transient() => {}
            Err(error) => {
                world.report_violation(format!("the zones of the city cannot be inspected: {error}"))
            }
        }
    }
    ledger
}

async fn inspect(world: &World) -> Result<Option<String>, Error> {
    let Some(city) = &world.city else { return Ok(None) };
    city.game.sweep_hand_offs(ARRIVALS_PER_SWEEP).await?;
    let mut seats = BTreeMap::new();
    for scope in city.game.scopes() {
        let zones = city.plan.all_zones().into_iter();
        let zones = zones.filter(|zone| city.game.scope_of(*zone).partition() == scope.partition()).collect();
        for (entity, zone) in members_of(&scope, zones).await? {
            let seat = Seat { scope: scope.clone(), entity, zone };
            let Some(other) = seats.insert(entity.0, seat.clone()) else { continue };
            if is_in_both(&other, &seat).await? {
                let (other, zone) = (other.zone, seat.zone);
                return Ok(Some(format!("player {entity} of the city is in the zones {other} and {zone}")));
            }
        }
    }
    Ok(None)
}

/// A player in a zone.
#[derive(Clone)]
struct Seat {
    scope: Scope<Shard>,
    entity: EntityId,
    zone: ZoneId,
}

/// The members of a shard's zones, at one moment.
async fn members_of(scope: &Scope<Shard>, zones: Vec<ZoneId>) -> hot::Result<Vec<(EntityId, ZoneId)>> {
    let read = move |tx: &mut ReadTx<'_, Shard>| {
        zones.iter().map(|zone| Ok((*zone, tx.smembers(&ZONE_PLAYERS.key(*zone))?))).collect()
    };
    let members: Vec<(_, Vec<EntityId>)> = scope.read(read).await?;
    let of_zone =
        |(zone, entities): (ZoneId, Vec<EntityId>)| entities.into_iter().map(move |entity| (entity, zone));
    Ok(members.into_iter().flat_map(of_zone).collect())
}

/// Whether a player who was seen in two zones is in both. Two shards were not read at the same moment, and it may have gone from
/// one to the other in between. If it is in one of them under the same number before and after a look at the other, it did not.
async fn is_in_both(one: &Seat, other: &Seat) -> hot::Result<bool> {
    if one.scope.partition() == other.scope.partition() {
        return Ok(true);
    }
    let (before, in_other, after) = (number_in(one).await?, number_in(other).await?, number_in(one).await?);
    Ok(before.is_some() && before == after && in_other.is_some())
}

/// The number of the hand-off by which a player came to its shard, while it is in the zone.
async fn number_in(seat: &Seat) -> hot::Result<Option<i64>> {
    let (entity, zone) = (seat.entity, seat.zone);
    let read = move |tx: &mut ReadTx<'_, Shard>| {
        let is_there = tx.sismember(&ZONE_PLAYERS.key(zone), &entity)?;
        let play = tx.get(&PLAY.key(entity))?;
        Ok(play.filter(|_| is_there).map(|play| play.number))
    };
    seat.scope.read(read).await
}
