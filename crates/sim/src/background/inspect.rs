//! Looks at whole fields while the game goes on: an index and its records, of one moment. An entry without a record is stale,
//! however soon a sweep would remove it.

use crate::actor::Actor;
use crate::plan::Ground;
use crate::stats::Count;
use emberkeep::games::monsters::{self, MONSTER, MonsterId};
use emberkeep::games::reactors::{self, REACTOR, ReactorId};
use emberkeep::games::world::Tenant;
use emberkeep::hot::{Error, Result, Tx};
use emberkeep::schema::{Family, Id, Key, Part, Set};
use std::fmt::Display;
use std::time::Duration;

/// Pause between two looks of all processes together: one asks for each monster of a field.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn serve(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    while world.rest(PAUSE * world.plan.processes).await {
        let ground = actor.somewhere();
        let index = monsters::field_key(&ground.field);
        let stale = stale(actor, ground, index, |id: &MonsterId| MONSTER.key(id)).await;
        report(actor, ground, "monster", stale)?;
        let index = reactors::field_key(&ground.field);
        let stale = self::stale(actor, ground, index, |id: &ReactorId| REACTOR.key(id)).await;
        report(actor, ground, "reactor", stale)?;
        actor.count(Count::Looks, 1);
    }
    Ok(())
}

/// The entries of an index that have no record, all of one moment.
async fn stale<I, R, M>(
    actor: &Actor,
    ground: Ground,
    index: Key<I>,
    record: fn(&M) -> Key<R>,
) -> Result<Vec<M>>
where
    I: Family<Partition = Tenant, Kind = Set<Id<M>>>,
    R: Family<Partition = Tenant>,
    M: Part + Send + 'static,
{
    let world = &actor.world;
    let scope = world.store.scope(world.plan.tenant(ground.tenant));
    let transaction = move |tx: &mut Tx<'_, Tenant>| {
        let ids = tx.smembers(&index)?;
        let there = tx.exists_many(&ids.iter().map(record).collect::<Vec<_>>())?;
        let absent = ids.into_iter().zip(there).filter(|(_, there)| !there);
        Ok::<_, Error>(absent.map(|(id, _)| id).collect())
    };
    scope.transact(transaction).await
}

fn report(actor: &Actor, ground: Ground, what: &str, stale: Result<Vec<impl Display>>) -> anyhow::Result<()> {
    match stale {
        Ok(stale) => {
            for id in stale {
                let (map, tenant) = (ground.field.map, ground.tenant);
                let entry = format!(
                    "stale entry: map {map} of tenant {tenant} listed {what} {id}, which had no record"
                );
                actor.world.report_violation(entry);
            }
            Ok(())
        }
        // A field of more than a transaction reads is left to the end of the game.
        Err(Error::TooLarge { .. }) => Ok(()),
        Err(error) => actor.stopped(Some(error)),
    }
}
