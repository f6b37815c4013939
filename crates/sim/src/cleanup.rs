//! After the simulation: removes everything of its tenants, except what all tenants share.

use crate::check::keys_left;
use crate::view::group_digits;
use crate::world::{World, retry_transient};
use anyhow::Context;
use emberkeep::games::monsters::{MONSTER_ID_FREE, MONSTER_ID_NEXT, MONSTER_ID_RESTING};
use emberkeep::games::reactors::{REACTOR_ID_NEXT, REACTORS_ALL};
use emberkeep::games::world::Tenant;
use emberkeep::hot::{Error, Tx};
use emberkeep::schema::{Family, Topology};

/// What the teardown came to.
pub(super) struct CleanupReport {
    /// Describes what was removed and what stays.
    pub(super) summary: String,
    /// Describes keys that should be gone.
    pub(super) left: Vec<String>,
}

/// Tears the game's tenants down, and looks whether anything is left.
///
/// What stays: on one server the counter of the reactors' ids and, if other tenants have reactors, the index of all of them,
/// because both are one for all tenants; and for a minute the receipts of the Redis engine, which end by themselves.
pub(super) async fn clean_up(world: &World) -> anyhow::Result<CleanupReport> {
    let (mut monsters, mut reactors) = (0, 0);
    let topology = world.store.key_layout().topology();
    for (_, tenant) in world.plan.tenants() {
        let torn = retry_transient(|| world.monsters.teardown(tenant))
            .await
            .context("cannot tear down the monsters")?;
        monsters += torn.monsters;
        let torn = retry_transient(|| world.reactors.teardown(tenant))
            .await
            .context("cannot tear down the reactors")?;
        reactors += torn.reactors;
        // A tenant's counters outlive what they counted, for services and clients that know its ids. These have none.
        let scope = world.store.scope(tenant);
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            tx.del(&MONSTER_ID_NEXT.key())?;
            tx.del(&MONSTER_ID_FREE.key())?;
            tx.del(&MONSTER_ID_RESTING.key())?;
            if topology == Topology::Cluster { tx.del(&REACTOR_ID_NEXT.key()) } else { Ok(()) }
        };
        scope.transact::<(), Error, _>(transaction).await.context("cannot remove the counters")?;
    }
    let (keys, receipts) = keys_left(world).await?;
    let shared = [REACTOR_ID_NEXT::DECLARATION.name, REACTORS_ALL::DECLARATION.name];
    let is_shared = |(family, _): &(&str, String)| topology == Topology::Single && shared.contains(family);
    let (stay, left): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_shared);
    Ok(CleanupReport {
        summary: format!(
            "removed {} monsters and {} reactors; what stays: {}",
            group_digits(monsters as u64),
            group_digits(reactors as u64),
            stays(stay, receipts),
        ),
        left: left.into_iter().map(|(_, key)| format!("{key} was left behind by the teardown")).collect(),
    })
}

fn stays(shared: Vec<(&str, String)>, receipts: usize) -> String {
    let mut stays: Vec<String> =
        shared.into_iter().map(|(_, key)| format!("{key}, which is one for all tenants")).collect();
    if receipts > 0 {
        stays.push(format!("{receipts} receipts of the engine, for a minute"));
    }
    if stays.is_empty() { "nothing".to_owned() } else { stays.join("; ") }
}
