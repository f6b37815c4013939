//! Looks at all zones at once while the game goes on: no player is in two of them.
//!
//! Budget: one transaction every [`EVERY`]. Stops when the game is over.

use super::ledger::CityLedger;
use crate::world::World;
use emberkeep::games::darkages::{EntityId, Shard, ZONE_PLAYERS};
use emberkeep::hot::{self, ReadTx};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn serve(world: Arc<World>) -> CityLedger {
    let mut ledger = CityLedger::default();
    while world.rest(EVERY).await {
        match in_two_zones(&world).await {
            Ok(None) => ledger.inspections += 1,
            Ok(Some(violation)) => world.report_violation(violation),
            Err(error) if error.is_transient() => {}
            Err(error) => world.report_violation(format!("the zones of the city cannot be read: {error}")),
        }
    }
    ledger
}

async fn in_two_zones(world: &World) -> hot::Result<Option<String>> {
    let Some(city) = &world.city else { return Ok(None) };
    let zones = city.plan.all_zones();
    let read = move |tx: &mut ReadTx<'_, Shard>| {
        zones.iter().map(|zone| Ok((*zone, tx.smembers(&ZONE_PLAYERS.key(*zone))?))).collect()
    };
    let members: Vec<(_, Vec<EntityId>)> = city.game.scope().read(read).await?;
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
