//! The end of everything of a tenant, or of all: found by paged scans, each monster whole.
//!
//! Budget: one page of about [`SWEEP_KEYS`] keys, then the transactions that end what was found in it. It stops at the end of the
//! walk. What was ended before an error, or before the future was dropped, is whole and stays ended; call again for the
//! rest.

use super::cooldowns::cooldowns;
use super::sweep::SweepReport;
use super::*;
use crate::family_scan::{FamilyScan, by_tenant, with_tenant};
use crate::monsters::limits::SWEEP_KEYS;
use crate::monsters::schema::ByField;
use crate::type_guard::{self, TypeGuard};
use emberkeep_primitives::index;
use emberkeep_schema::{Family, Key};
use std::collections::{BTreeMap, BTreeSet};

/// What a teardown removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeardownReport {
    /// Monsters, and records that could not be read.
    pub monsters: usize,
    /// Cooldowns.
    pub cooldowns: usize,
    /// Keys that held something else than an index, a counter or a list of ids, and were deleted with it; each error
    /// names its key and what it held.
    pub discarded: Vec<hot::Error>,
    /// What could not be read and was left as it is; each error names its key.
    pub corrupt: Vec<hot::Error>,
}

impl Monsters {
    /// Removes everything of a tenant's monsters, also what other services left: records, indexes, cooldowns, timers,
    /// deadlines.
    ///
    /// Bounded transactions, each monster whole. Who is spawned meanwhile may stay, whole too. What says which ids are in use
    /// stays: a service that goes on counting must not meet the id of a monster that was spawned since.
    pub async fn teardown(&self, tenant: Tenant) -> Result<TeardownReport> {
        let mut torn = self.tear_down(Some(tenant)).await?;
        self.drop_shared(tenant, &mut torn).await?;
        Ok(torn)
    }

    /// Does the same for all tenants.
    pub async fn teardown_all(&self) -> Result<TeardownReport> {
        let mut torn = self.tear_down(None).await?;
        let mut tenants = BTreeSet::new();
        self.tenants_of::<MONSTER_ID_NEXT>(&mut tenants).await?;
        self.tenants_of::<MONSTER_ID_FREE>(&mut tenants).await?;
        self.tenants_of::<MONSTER_ID_RESTING>(&mut tenants).await?;
        self.tenants_of::<MONSTER_EFFECTS>(&mut tenants).await?;
        self.tenants_of::<DROP_TIMERS>(&mut tenants).await?;
        for tenant in tenants {
            self.drop_shared(tenant, &mut torn).await?;
        }
        Ok(torn)
    }

    /// Removes all that has a key of its own.
    async fn tear_down(&self, whose: Option<Tenant>) -> Result<TeardownReport> {
        let mut torn = TeardownReport::default();
        self.discard_corrupt(whose, &mut torn).await?;
        let mut pages = self.pages::<MONSTER>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in sorted(page, |key| MONSTER.parts(key).0) {
                self.remove_every(tenant, ids, &mut torn).await?;
            }
        }
        let mut pages = self.pages::<MONSTER_MAP>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, field) in with_tenant(page) {
                // Takes out what is no monster's. An index that holds nothing more is gone.
                index::list::<ByField>(&self.scope(tenant), &field).await?;
            }
        }
        self.clear_leftovers(whose, &mut torn).await?;
        Ok(torn)
    }

    /// Deletes what stands in the place of a field's index and is none. It lists nobody, and would be in the way of all
    /// who say that they are there.
    async fn discard_corrupt(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<()> {
        let mut pages = self.pages::<MONSTER_MAP>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, field) in with_tenant(page) {
                let scope = self.scope(tenant);
                if let Err(error @ hot::Error::WrongType { .. }) = scope.scard(&field).await {
                    let transaction = move |tx: &mut Tx<'_, Tenant>| discard(tx, &field);
                    torn.discarded.extend(scope.transact(transaction).await?.then_some(error));
                }
            }
        }
        Ok(())
    }

    /// Removes timers and cooldowns without a monster.
    async fn clear_leftovers(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<()> {
        let mut swept = SweepReport::default();
        let mut pages = self.pages::<DROP_TIMER>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in sorted(page, |key| DROP_TIMER.parts(key).0) {
                repair::timers(&self.scope(tenant), &ids, &mut swept).await?;
            }
        }
        let mut pages = self.pages::<MONSTER_COOLDOWNS>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in sorted(page, |key| MONSTER_COOLDOWNS.parts(key).0) {
                repair::known_markers(&self.scope(tenant), &ids, &mut swept).await?;
            }
        }
        let mut pages = self.pages::<MONSTER_COOLDOWN>(whose);
        while let Some(page) = pages.next().await? {
            for (tenant, markers) in sorted(page, |key| MONSTER_COOLDOWN.parts(key)) {
                repair::markers(&self.scope(tenant), &markers, &mut swept).await?;
            }
        }
        torn.cooldowns += swept.cooldowns;
        torn.corrupt.extend(swept.corrupt);
        Ok(())
    }

    /// Removes monsters, also those whose record nobody can read.
    async fn remove_every(
        &self,
        tenant: Tenant,
        ids: Vec<MonsterId>,
        torn: &mut TeardownReport,
    ) -> Result<()> {
        let destroyed = self.remove_all(tenant, ids.clone(), None).await?;
        torn.monsters += destroyed.ids.len();
        torn.cooldowns += destroyed.cooldowns;
        if let Some(error) = destroyed.stopped {
            return Err(error);
        }
        if destroyed.corrupt.is_empty() {
            return Ok(());
        }
        let removed: BTreeSet<_> = destroyed.ids.into_iter().collect();
        for id in ids.into_iter().filter(|id| !removed.contains(id)) {
            let pool = self.ids();
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| raze(tx, &pool, id, guard);
            torn.monsters += usize::from(type_guard::run(&self.scope(tenant), transaction).await?);
        }
        Ok(())
    }

    /// Removes the deadlines that all monsters of a tenant share, and of what says which ids are in use only what cannot
    /// be read: it says nothing, and would stop every spawn.
    async fn drop_shared(&self, tenant: Tenant, torn: &mut TeardownReport) -> Result<()> {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            // Hints: should somebody be spawned meanwhile, the sweep enters it again.
            tx.del(&MONSTER_EFFECTS.key())?;
            tx.del(&DROP_TIMERS.key())?;
            let (next, free) = (MONSTER_ID_NEXT.key(), MONSTER_ID_FREE.key());
            let resting = MONSTER_ID_RESTING.key();
            let (counter, list, set) = (tx.get(&next), tx.llen(&free), tx.zcard(&resting));
            let mut discarded = unreadable(tx, &next, counter)?;
            discarded.extend(unreadable(tx, &free, list)?);
            discarded.extend(unreadable(tx, &resting, set)?);
            Ok::<_, hot::Error>(discarded)
        };
        torn.discarded.extend(self.scope(tenant).transact(transaction).await?);
        Ok(())
    }

    async fn tenants_of<F: Family<Partition = Tenant>>(&self, tenants: &mut BTreeSet<Tenant>) -> Result<()> {
        let mut pages = self.pages::<F>(None);
        while let Some(page) = pages.next().await? {
            tenants.extend(with_tenant(page).map(|(tenant, _)| tenant));
        }
        Ok(())
    }

    fn pages<F: Family<Partition = Tenant>>(&self, whose: Option<Tenant>) -> FamilyScan<F> {
        FamilyScan::new(&self.store, whose, SWEEP_KEYS)
    }
}

/// What the keys of a page speak of, by tenant.
fn sorted<F: Family, T>(
    page: Vec<(Option<Tenant>, Key<F>)>,
    part: impl Fn(&Key<F>) -> T,
) -> BTreeMap<Tenant, Vec<T>> {
    by_tenant(with_tenant(page).map(|(tenant, key)| (tenant, part(&key))))
}

/// Deletes a field's index if it is none; `true` if it did.
fn discard(tx: &mut Tx<'_, Tenant>, field: &Key<MONSTER_MAP>) -> hot::Result<bool> {
    let corrupt = type_guard::is_wrong_type(tx.scard(field))?;
    if corrupt {
        tx.del(field)?;
    }
    Ok(corrupt)
}

/// Deletes a key that could not be read; its error, if it did.
fn unreadable<F: Family<Partition = Tenant>, T>(
    tx: &mut Tx<'_, Tenant>,
    key: &Key<F>,
    read: hot::Result<T>,
) -> hot::Result<Vec<hot::Error>> {
    match read {
        Err(error) if error.is_corrupt() => tx.del(key).map(|()| vec![error]),
        read => read.map(|_| Vec::new()),
    }
}

/// Removes a monster of whose record nothing but its key is known.
fn raze(tx: &mut Tx<'_, Tenant>, ids: &Ids, id: MonsterId, guard: TypeGuard) -> hot::Result<bool> {
    if !tx.exists(&MONSTER.key(id))? {
        return Ok(false);
    }
    // What is more than a transaction may clear is found by the scan of the cooldowns.
    cooldowns(id).clear_all(tx)?;
    remove::bury(tx, ids, id, guard)?;
    Ok(true)
}
