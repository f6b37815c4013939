//! Teardown: removes everything of one tenant or of all, found by paged scans.
//!
//! Budget: one page of about [`SWEEP_KEYS`] keys at a time, and the transactions that remove what it
//! contains. It ends with the scan. After an error or a dropped future, every removed monster is removed
//! completely. Call again for the rest.

use super::cooldowns::cooldowns;
use super::sweep::SweepReport;
use super::*;
use crate::family_scan::{FamilyScan, by_tenant, with_tenant};
use crate::monsters::limits::SWEEP_KEYS;
use crate::monsters::schema::ByField;
use crate::type_guard::{self, TypeGuard};
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::index;
use emberkeep_schema::{Family, Key};
use std::collections::{BTreeMap, BTreeSet};

/// What a teardown removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeardownReport {
    /// Monsters, including corrupt records.
    pub monsters: usize,
    /// Cooldowns of skills.
    pub cooldowns: usize,
    /// Keys that held something else than an index, a counter or a list of ids, and were deleted. Each error
    /// names its key and what it held.
    pub discarded: Vec<hot::Error>,
    /// Corrupt values that are unchanged. Each error names its key.
    pub corrupt: Vec<hot::Error>,
}

impl Monsters {
    /// Removes everything of a tenant's monsters, including what other services left: records, indexes,
    /// cooldowns, timers, deadlines.
    ///
    /// Uses bounded transactions, and removes each monster atomically. Monsters that are spawned meanwhile
    /// may stay. The id counter and the free ids stay, so that a service that goes on counting cannot assign
    /// the id of a monster that was spawned since.
    pub fn teardown(&self, tenant: Tenant) -> Pending<'_, Result<TeardownReport>> {
        Box::pin(async move {
            let mut report = self.remove_keys(Some(tenant)).await?;
            self.remove_shared(tenant, &mut report).await?;
            Ok(report)
        })
    }

    /// Does the same for all tenants.
    pub fn teardown_all(&self) -> Pending<'_, Result<TeardownReport>> {
        Box::pin(async move {
            let mut report = self.remove_keys(None).await?;
            let mut tenants = BTreeSet::new();
            self.tenants_of::<MONSTER_ID_NEXT>(&mut tenants).await?;
            self.tenants_of::<MONSTER_ID_FREE>(&mut tenants).await?;
            self.tenants_of::<MONSTER_ID_RESTING>(&mut tenants).await?;
            self.tenants_of::<MONSTER_EFFECTS>(&mut tenants).await?;
            self.tenants_of::<DROP_TIMERS>(&mut tenants).await?;
            for tenant in tenants {
                self.remove_shared(tenant, &mut report).await?;
            }
            Ok(report)
        })
    }

    /// Removes everything that has a key of its own.
    async fn remove_keys(&self, only: Option<Tenant>) -> Result<TeardownReport> {
        let mut report = TeardownReport::default();
        self.discard_corrupt(only, &mut report).await?;
        let mut pages = self.pages::<MONSTER>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in group(page, |key| MONSTER.parts(key).0) {
                self.remove_every(tenant, ids, &mut report).await?;
            }
        }
        let mut pages = self.pages::<MONSTER_MAP>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, field) in with_tenant(page) {
                // Removes stale entries. An index without members no longer exists.
                index::list::<ByField>(&self.scope(tenant, "monsters.teardown"), &field).await?;
            }
        }
        self.clear_leftovers(only, &mut report).await?;
        Ok(report)
    }

    /// Deletes keys of a wrong type in the place of a field's index. They list no monster, and would prevent
    /// the removal of those that say that they are in the field.
    async fn discard_corrupt(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<()> {
        let mut pages = self.pages::<MONSTER_MAP>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, field) in with_tenant(page) {
                let scope = self.scope(tenant, "monsters.teardown");
                if let Err(error @ hot::Error::WrongType { .. }) = scope.scard(&field).await {
                    report.discarded.extend(type_guard::discard_set(&scope, &field).await?.then_some(error));
                }
            }
        }
        Ok(())
    }

    /// Removes timers and cooldowns without a monster.
    async fn clear_leftovers(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<()> {
        let mut repaired = SweepReport::default();
        let mut pages = self.pages::<DROP_TIMER>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in group(page, |key| DROP_TIMER.parts(key).0) {
                repair::timers(&self.scope(tenant, "monsters.teardown"), &ids, &mut repaired).await?;
            }
        }
        let mut pages = self.pages::<MONSTER_COOLDOWNS>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, ids) in group(page, |key| MONSTER_COOLDOWNS.parts(key).0) {
                repair::indexed_markers(&self.scope(tenant, "monsters.teardown"), &ids, &mut repaired)
                    .await?;
            }
        }
        let mut pages = self.pages::<MONSTER_COOLDOWN>(only);
        while let Some(page) = pages.next().await? {
            for (tenant, markers) in group(page, |key| MONSTER_COOLDOWN.parts(key)) {
                repair::markers(&self.scope(tenant, "monsters.teardown"), &markers, &mut repaired).await?;
            }
        }
        report.cooldowns += repaired.cooldowns;
        report.corrupt.extend(repaired.corrupt);
        Ok(())
    }

    /// Removes monsters, including those with corrupt records.
    async fn remove_every(
        &self,
        tenant: Tenant,
        ids: Vec<MonsterId>,
        report: &mut TeardownReport,
    ) -> Result<()> {
        let destroyed = self.remove_all(tenant, ids.clone(), None).await?;
        report.monsters += destroyed.ids.len();
        report.cooldowns += destroyed.cooldowns;
        if let Some(error) = destroyed.stopped {
            return Err(error);
        }
        if destroyed.corrupt.is_empty() {
            return Ok(());
        }
        let removed: BTreeSet<_> = destroyed.ids.into_iter().collect();
        for id in ids.into_iter().filter(|id| !removed.contains(id)) {
            let pool = self.ids();
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| remove_corrupt(tx, &pool, id, guard);
            report.monsters +=
                usize::from(type_guard::run(&self.scope(tenant, "monsters.teardown"), transaction).await?);
        }
        Ok(())
    }

    /// Removes the due queues of a tenant, and those of its id keys that cannot be read: they contain no
    /// information and would make every spawn fail.
    async fn remove_shared(&self, tenant: Tenant, report: &mut TeardownReport) -> Result<()> {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            // Auxiliary indexes: if a monster is spawned meanwhile, the sweep enters it again.
            tx.del(&MONSTER_EFFECTS.key())?;
            tx.del(&DROP_TIMERS.key())?;
            let (next, free) = (MONSTER_ID_NEXT.key(), MONSTER_ID_FREE.key());
            let resting = MONSTER_ID_RESTING.key();
            let (counter, list, set) = (tx.get(&next), tx.llen(&free), tx.zcard(&resting));
            let mut discarded = delete_if_corrupt(tx, &next, counter)?;
            discarded.extend(delete_if_corrupt(tx, &free, list)?);
            discarded.extend(delete_if_corrupt(tx, &resting, set)?);
            Ok::<_, hot::Error>(discarded)
        };
        report.discarded.extend(self.scope(tenant, "monsters.teardown").transact(transaction).await?);
        Ok(())
    }

    async fn tenants_of<F: Family<Partition = Tenant>>(&self, tenants: &mut BTreeSet<Tenant>) -> Result<()> {
        let mut pages = self.pages::<F>(None);
        while let Some(page) = pages.next().await? {
            tenants.extend(with_tenant(page).map(|(tenant, _)| tenant));
        }
        Ok(())
    }

    fn pages<F: Family<Partition = Tenant>>(&self, only: Option<Tenant>) -> FamilyScan<F> {
        FamilyScan::new(&self.store, only, SWEEP_KEYS)
    }
}

/// A part of each key of a page, by tenant.
fn group<F: Family, T>(
    page: Vec<(Option<Tenant>, Key<F>)>,
    part: impl Fn(&Key<F>) -> T,
) -> BTreeMap<Tenant, Vec<T>> {
    by_tenant(with_tenant(page).map(|(tenant, key)| (tenant, part(&key))))
}

/// Deletes a key that could not be read, and returns the error.
fn delete_if_corrupt<F: Family<Partition = Tenant>, T>(
    tx: &mut Tx<'_, Tenant>,
    key: &Key<F>,
    read: hot::Result<T>,
) -> hot::Result<Vec<hot::Error>> {
    match read {
        Err(error) if error.is_corrupt() => tx.del(key).map(|()| vec![error]),
        read => read.map(|_| Vec::new()),
    }
}

/// Removes a monster only record cannot be decoded.
fn remove_corrupt(tx: &mut Tx<'_, Tenant>, ids: &Ids, id: MonsterId, guard: TypeGuard) -> hot::Result<bool> {
    if !tx.exists(&MONSTER.key(id))? {
        return Ok(false);
    }
    // The scan of the cooldowns finds those that one transaction cannot clear.
    cooldowns(id).clear_all(tx)?;
    remove::delete_record(tx, ids, id, guard)?;
    Ok(true)
}
