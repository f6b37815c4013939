//! Looks at all zones of a shard at once while the game goes on: no player is in two of them. Beside that it sweeps: players
//! whose hand-off was not delivered at once arrive.
//!
//! Budget: one transaction for each shard and one sweep every [`EVERY`]. Stops when the game is over.

use super::ledger::CityLedger;
use crate::world::{Retryable, World};
use emberkeep::games::darkages::{EntityId, Error, Shard, ZONE_PLAYERS, ZoneId};
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
    for scope in city.game.scopes() {
        let zones = city.plan.all_zones().into_iter();
        let zones = zones.filter(|zone| city.game.scope_of(*zone).partition() == scope.partition()).collect();
        if let Some(violation) = in_two_zones(&scope, zones).await? {
            return Ok(Some(violation));
        }
    }
    Ok(None)
}

async fn in_two_zones(scope: &Scope<Shard>, zones: Vec<ZoneId>) -> hot::Result<Option<String>> {
    let read = move |tx: &mut ReadTx<'_, Shard>| {
        zones.iter().map(|zone| Ok((*zone, tx.smembers(&ZONE_PLAYERS.key(*zone))?))).collect()
    };
    let members: Vec<(_, Vec<EntityId>)> = scope.read(read).await?;
    let mut found = BTreeMap::new();
    for (zone, entities) in members {
        for entity in entities {
            if let Some(other) = found.insert(entity.0, zone) {
                return Ok(Some(format!("player {entity} of the city is in the zones {other} and {zone}")));
            }
        }
    }
    Ok(None)
}
