//! The end of all reactors of a tenant, or of all there are.
//!
//! What has to go is found by walking the keyspace in pages, not by the indexes alone: what fell out of every index,
//! and cooldowns that an external service started, must go too.
//!
//! Budget: one page of [`TEARDOWN_KEYS`] keys, then the transactions that end what was found in it; nobody waits for longer than one
//! of them. It stops at the end of the walk. What was ended before an error, or before the future was dropped, is
//! whole and stays ended; call again for the rest. What others create meanwhile may stay.

use super::Reactors;
use super::destroy::{leave_all, remove};
use super::field::forget_empty;
use crate::family_scan::{FamilyScan, by_tenant, with_tenant};
use crate::reactors::error::{Error, Result};
use crate::reactors::indexes::{ANYWHERE, InAll};
use crate::reactors::limits::TEARDOWN_KEYS;
use crate::reactors::model::ReactorId;
use crate::reactors::schema::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_COOLDOWNS, REACTOR_MAP, REACTOR_SPOTS, REACTORS_ALL, cooldowned_field,
    cooling, field_of, spotted_field,
};
use crate::type_guard::{self, TypeGuard};
use crate::world::Tenant;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::index;
use emberkeep_schema::{Family, Id, Key, Set};

/// What a teardown removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeardownReport {
    /// Reactors, and records that could not be read.
    pub reactors: usize,
    /// Cooldowns.
    pub cooldowns: usize,
    /// Keys that held something else than an index, and were deleted with it; each error names its key and what it held.
    pub discarded: Vec<hot::Error>,
    /// Records that cannot be read, do not say whose they are, and were therefore left; each error names its key.
    pub corrupt: Vec<hot::Error>,
}

impl Reactors {
    /// Removes every reactor and every cooldown of a tenant. The counter of ids stays: an id should not come back
    /// while clients still know its last owner.
    pub async fn teardown(&self, tenant: Tenant) -> Result<TeardownReport> {
        self.tear_down(Some(tenant)).await
    }

    /// Removes every reactor and every cooldown of all tenants; records that cannot be read go too. The counters of ids
    /// stay.
    pub async fn teardown_all(&self) -> Result<TeardownReport> {
        self.tear_down(None).await
    }

    async fn tear_down(&self, whose: Option<Tenant>) -> Result<TeardownReport> {
        let mut torn = TeardownReport::default();
        self.empty_fields(whose, &mut torn).await?;
        if self.end_unlisted(whose, &mut torn).await? {
            // Their entries in the fields are ghosts now.
            self.empty_fields(whose, &mut torn).await?;
        }
        self.end_cooldowns(whose, &mut torn).await?;
        self.end_hints(whose, &mut torn).await?;
        Ok(torn)
    }

    /// Destroys what the fields list.
    async fn empty_fields(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<()> {
        let mut pages = FamilyScan::<REACTOR_MAP>::new(&self.store, whose, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            for (tenant, index) in with_tenant(page) {
                let destroyed = match self.destroy_in_field(tenant, field_of(&index)).await {
                    // Something in the place of an index: it lists nothing, and would be in the way of all who say
                    // that they are there.
                    Err(Error::Store(error @ hot::Error::WrongType { .. })) => {
                        let scope = self.store.scope(tenant);
                        torn.discarded.extend(discard_index(&scope, &index).await?.then_some(error));
                        continue;
                    }
                    destroyed => destroyed?,
                };
                torn.reactors += destroyed.reactors.len();
                torn.cooldowns += destroyed.cooldowns;
                if let Some(error) = destroyed.stopped {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Removes records that no field lists; `true` if some of them could not be read.
    async fn end_unlisted(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<bool> {
        let mut pages = FamilyScan::<REACTOR>::new(&self.store, whose, TEARDOWN_KEYS);
        let mut unread = false;
        while let Some(page) = pages.next().await? {
            for (tenant, keys) in by_tenant(page) {
                let scope = self.store.scope(tenant.unwrap_or(ANYWHERE));
                for (key, found) in keys.iter().zip(scope.get_each(&keys).await?) {
                    match found {
                        Ok(Some(reactor)) if whose.is_none_or(|tenant| reactor.is_of(&tenant)) => {
                            let owner = self.store.scope(Tenant(reactor.tenant.id));
                            torn.reactors += usize::from(end_one(&owner, key).await?);
                        }
                        Ok(_) => {}
                        Err(_) if whose.is_none() || tenant.is_some() => {
                            discard(&scope, key).await?;
                            torn.reactors += 1;
                            unread = true;
                        }
                        Err(error) => torn.corrupt.push(error),
                    }
                }
            }
        }
        Ok(unread)
    }

    /// Clears cooldowns: those that the fields list, then those that only have a marker.
    async fn end_cooldowns(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<()> {
        let mut indexes = FamilyScan::<REACTOR_COOLDOWNS>::new(&self.store, whose, TEARDOWN_KEYS);
        while let Some(page) = indexes.next().await? {
            for (tenant, index) in with_tenant(page) {
                torn.cooldowns += self.clear_cooldowns(tenant, cooldowned_field(&index)).await?;
            }
        }
        let mut markers = FamilyScan::<REACTOR_COOLDOWN>::new(&self.store, whose, TEARDOWN_KEYS);
        while let Some(page) = markers.next().await? {
            for (tenant, marker) in with_tenant(page) {
                let (field, spot) = cooling(&marker);
                torn.cooldowns += usize::from(self.clear_cooldown(tenant, field, spot).await?);
            }
        }
        Ok(())
    }

    /// Removes what is remembered of empty fields, and ghosts from the set of all.
    async fn end_hints(&self, whose: Option<Tenant>, torn: &mut TeardownReport) -> Result<()> {
        let mut pages = FamilyScan::<REACTOR_SPOTS>::new(&self.store, whose, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            for (tenant, key) in with_tenant(page) {
                let field = spotted_field(&key);
                self.store.scope(tenant).transact(move |tx| forget_empty(tx, &field)).await?;
            }
        }
        let mut pages = FamilyScan::<REACTORS_ALL>::new(&self.store, whose, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            // Where the set is one for all tenants, its ghosts are not this tenant's business.
            for (tenant, key) in page.into_iter().filter(|(tenant, _)| tenant.is_some() || whose.is_none()) {
                let scope = self.store.scope(tenant.unwrap_or(ANYWHERE));
                match index::list::<InAll>(&scope, &key).await {
                    Err(error @ hot::Error::WrongType { .. }) => {
                        torn.discarded.extend(discard_index(&scope, &key).await?.then_some(error));
                    }
                    listed => drop(listed?),
                }
            }
        }
        Ok(())
    }
}

/// Removes one record, if it is still this tenant's when the transaction commits.
async fn end_one(owner: &Scope<Tenant>, key: &Key<REACTOR>) -> Result<bool> {
    let (key, id) = (key.clone(), REACTOR.parts(key).0);
    let transaction = move |tx: &mut Tx<'_, Tenant>, guard| match tx.get(&key)? {
        Some(reactor) if reactor.is_of(tx.partition()) => remove(tx, id, &reactor, guard).map(|()| true),
        _ => Ok(false),
    };
    Ok(type_guard::run(owner, transaction).await?)
}

/// Removes a record that says nothing of itself.
async fn discard(scope: &Scope<Tenant>, key: &Key<REACTOR>) -> Result<()> {
    let (key, id) = (key.clone(), REACTOR.parts(key).0);
    let transaction = move |tx: &mut Tx<'_, Tenant>, guard: TypeGuard| {
        tx.del(&key)?;
        leave_all(tx, id, guard)
    };
    Ok(type_guard::run(scope, transaction).await?)
}

/// Deletes an index if it is none; `true` if it did.
async fn discard_index<F>(scope: &Scope<Tenant>, index: &Key<F>) -> Result<bool>
where
    F: Family<Partition = Tenant, Kind = Set<Id<ReactorId>>>,
{
    let index = index.clone();
    let transaction = move |tx: &mut Tx<'_, Tenant>| {
        let corrupt = type_guard::is_wrong_type(tx.scard(&index))?;
        if corrupt {
            tx.del(&index)?;
        }
        Ok::<_, hot::Error>(corrupt)
    };
    Ok(scope.transact(transaction).await?)
}
