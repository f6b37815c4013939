//! The end of everything of a tenant, or of all: found by paged scans, each monster whole.

use super::sweep::Swept;
use super::tidy::{self, by_tenant};
use super::*;
use crate::monsters::limits::SWEEP_KEYS;
use crate::monsters::schema::ByField;
use emberkeep_primitives::index;
use emberkeep_schema::{Family, Key};
use std::collections::BTreeSet;

impl Monsters {
    /// Removes everything of a tenant's monsters, also what other services left: records, indexes, cooldowns, timers,
    /// deadlines, ids. Says how many monsters there were.
    ///
    /// Bounded steps, each monster whole. Who is spawned meanwhile may stay, whole too. Where ids rest before they are
    /// used again ([`Monsters::reuse_after`]), the ids stay: their rest is not over because their monsters are gone.
    pub async fn teardown(&self, tenant: Tenant) -> Result<usize> {
        let monsters = self.tear_down(Some(tenant)).await?;
        self.drop_shared(tenant).await?;
        Ok(monsters)
    }

    /// Does the same for all tenants.
    pub async fn teardown_all(&self) -> Result<usize> {
        let monsters = self.tear_down(None).await?;
        let mut tenants = BTreeSet::new();
        self.tenants_of::<MONSTER_ID_NEXT>(&mut tenants).await?;
        self.tenants_of::<MONSTER_ID_FREE>(&mut tenants).await?;
        self.tenants_of::<MONSTER_ID_RESTING>(&mut tenants).await?;
        self.tenants_of::<MONSTER_EFFECTS>(&mut tenants).await?;
        self.tenants_of::<DROP_TIMERS>(&mut tenants).await?;
        for tenant in tenants {
            self.drop_shared(tenant).await?;
        }
        Ok(monsters)
    }

    /// Removes all that has a key of its own.
    async fn tear_down(&self, only: Option<Tenant>) -> Result<usize> {
        let mut monsters = 0;
        let mut pages = Pages::<MONSTER>::new(self, only);
        while let Some(page) = pages.next(|key| MONSTER.parts(key).0).await? {
            for (tenant, ids) in page {
                monsters += self.remove_every(tenant, ids).await?;
            }
        }
        let mut pages = Pages::<MONSTER_MAP>::new(self, only);
        while let Some(page) = pages.next(Key::clone).await? {
            for (tenant, fields) in page {
                self.empty(tenant, fields).await?;
            }
        }
        self.clear_leftovers(only).await?;
        Ok(monsters)
    }

    /// Removes timers and cooldowns without a monster.
    async fn clear_leftovers(&self, only: Option<Tenant>) -> Result<()> {
        let mut swept = Swept::default();
        let mut pages = Pages::<DROP_TIMER>::new(self, only);
        while let Some(page) = pages.next(|key| DROP_TIMER.parts(key).0).await? {
            for (tenant, ids) in page {
                tidy::timers(&self.scope(tenant), &ids, &mut swept).await?;
            }
        }
        // The indexes first: a spoiled one would keep its markers.
        let mut pages = Pages::<MONSTER_COOLDOWNS>::new(self, only);
        while let Some(page) = pages.next(|key| MONSTER_COOLDOWNS.parts(key).0).await? {
            for (tenant, ids) in page {
                tidy::known_markers(&self.scope(tenant), &ids, &mut swept).await?;
            }
        }
        let mut pages = Pages::<MONSTER_COOLDOWN>::new(self, only);
        while let Some(page) = pages.next(|key| MONSTER_COOLDOWN.parts(key)).await? {
            for (tenant, markers) in page {
                tidy::markers(&self.scope(tenant), &markers, &mut swept).await?;
            }
        }
        Ok(())
    }

    /// Removes monsters, also those whose record nobody can read.
    async fn remove_every(&self, tenant: Tenant, ids: Vec<MonsterId>) -> Result<usize> {
        let destroyed = self.remove_all(tenant, ids.clone(), None).await?;
        if let Some(error) = destroyed.stopped {
            return Err(error);
        }
        let mut count = destroyed.removed.len();
        if destroyed.corrupt.is_empty() {
            return Ok(count);
        }
        let removed: BTreeSet<_> = destroyed.removed.into_iter().collect();
        for id in ids.into_iter().filter(|id| !removed.contains(id)) {
            let pool = self.ids();
            count += usize::from(self.scope(tenant).transact(move |tx| raze(tx, &pool, id)).await?);
        }
        Ok(count)
    }

    /// Takes what is no monster's out of some indexes. One that holds nothing more is gone.
    async fn empty(&self, tenant: Tenant, fields: Vec<Key<MONSTER_MAP>>) -> Result<()> {
        let scope = self.scope(tenant);
        for field in fields {
            match index::list::<ByField>(&scope, &field).await {
                Ok(_) => {}
                // No set at all: nobody's index.
                Err(hot::Error::WrongType { .. }) => drop(scope.del(&field).await?),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes the keys that all monsters of a tenant share.
    async fn drop_shared(&self, tenant: Tenant) -> Result<()> {
        let ids_too = self.reuse_after.is_zero();
        let step = move |tx: &mut Tx<'_, Tenant>| {
            // Hints: should somebody be spawned meanwhile, the sweep enters it again.
            tx.del(&MONSTER_EFFECTS.key())?;
            tx.del(&DROP_TIMERS.key())?;
            if ids_too {
                tx.del(&MONSTER_ID_NEXT.key())?;
                tx.del(&MONSTER_ID_FREE.key())?;
                tx.del(&MONSTER_ID_RESTING.key())?;
            }
            Ok(())
        };
        self.scope(tenant).transact(step).await
    }

    async fn tenants_of<F: Family<Partition = Tenant>>(&self, tenants: &mut BTreeSet<Tenant>) -> Result<()> {
        let mut pages = Pages::<F>::new(self, None);
        while let Some(page) = pages.next(|_| ()).await? {
            tenants.extend(page.into_iter().map(|(tenant, _)| tenant));
        }
        Ok(())
    }
}

/// Removes a monster of whose record nothing but its key is known.
fn raze(tx: &mut Tx<'_, Tenant>, ids: &Ids, id: MonsterId) -> hot::Result<bool> {
    if !tx.exists(&MONSTER.key(id))? {
        return Ok(false);
    }
    // What is more than a step may clear is found by the scan of the cooldowns.
    tidy::clear_known(tx, id)?;
    remove::bury(tx, ids, id)?;
    Ok(true)
}

/// The keys of a family, page by page, by tenant.
struct Pages<F> {
    store: Store,
    only: Option<Tenant>,
    from: Option<hot::engine::Cursor>,
    over: bool,
    family: std::marker::PhantomData<F>,
}

impl<F: Family<Partition = Tenant>> Pages<F> {
    fn new(monsters: &Monsters, only: Option<Tenant>) -> Pages<F> {
        let family = std::marker::PhantomData;
        Pages { store: monsters.store.clone(), only, from: None, over: false, family }
    }

    async fn next<T>(&mut self, part: impl Fn(&Key<F>) -> T) -> Result<Option<Vec<(Tenant, Vec<T>)>>> {
        if self.over {
            return Ok(None);
        }
        let page = self.store.scan::<F>(self.from, SWEEP_KEYS).await?;
        (self.from, self.over) = (page.next, page.next.is_none());
        Ok(Some(by_tenant(page.keys, self.only, part)))
    }
}
