//! Teardown: removes all reactors of one tenant or of all.
//!
//! The keys are found by paged scans, not only by the indexes, because records without index entries and
//! cooldowns of external services must be removed too.
//!
//! Budget: one page of [`TEARDOWN_KEYS`] keys at a time, and the transactions that remove what it contains.
//! It ends with the scans. After an error or a dropped future, every removed reactor is removed completely.
//! Call again for the rest. Reactors that are created meanwhile may stay.

use super::Reactors;
use super::destroy::{leave_all, remove};
use super::field::forget_empty;
use crate::family_scan::{FamilyScan, by_tenant, with_tenant};
use crate::reactors::error::{Error, Result};
use crate::reactors::indexes::{ANYWHERE, AllIndex};
use crate::reactors::limits::TEARDOWN_KEYS;
use crate::reactors::schema::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_COOLDOWNS, REACTOR_MAP, REACTOR_SPOTS, REACTORS_ALL, cooldown_parts,
    cooldowns_field, field_of, spots_field,
};
use crate::type_guard::{self, TypeGuard};
use crate::world::Tenant;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::index;
use emberkeep_schema::Key;

/// What a teardown removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeardownReport {
    /// Reactors, including corrupt records.
    pub reactors: usize,
    /// Cooldowns of spots.
    pub cooldowns: usize,
    /// Keys that held something else than an index, and were deleted. Each error names its key and what it
    /// held.
    pub discarded: Vec<hot::Error>,
    /// Corrupt records without a tenant, which are unchanged. Each error names its key.
    pub corrupt: Vec<hot::Error>,
}

impl Reactors {
    /// Removes every reactor and every cooldown of a tenant. The id counter stays, so that ids are not reused
    /// while clients still know their last owner.
    pub fn teardown(&self, tenant: Tenant) -> Pending<'_, Result<TeardownReport>> {
        Box::pin(async move { self.remove_keys(Some(tenant)).await })
    }

    /// Removes every reactor and every cooldown of all tenants, including corrupt records. The id counters
    /// stay.
    pub fn teardown_all(&self) -> Pending<'_, Result<TeardownReport>> {
        Box::pin(async move { self.remove_keys(None).await })
    }

    async fn remove_keys(&self, only: Option<Tenant>) -> Result<TeardownReport> {
        let mut report = TeardownReport::default();
        self.empty_fields(only, &mut report).await?;
        if self.remove_unlisted(only, &mut report).await? {
            // Their entries in the fields are stale now.
            self.empty_fields(only, &mut report).await?;
        }
        self.clear_all_cooldowns(only, &mut report).await?;
        self.remove_auxiliary(only, &mut report).await?;
        Ok(report)
    }

    /// Destroys what the fields list.
    async fn empty_fields(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<()> {
        let mut pages = FamilyScan::<REACTOR_MAP>::new(&self.store, only, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            for (tenant, index) in with_tenant(page) {
                let destroyed = match self.destroy_in_field(tenant, field_of(&index)).await {
                    // A key of a wrong type: it lists nothing, and would prevent the removal of reactors that
                    // say that they are in the field.
                    Err(Error::Store(error @ hot::Error::WrongType { .. })) => {
                        let scope = self.scope(tenant, "reactors.teardown");
                        report
                            .discarded
                            .extend(type_guard::discard_set(&scope, &index).await?.then_some(error));
                        continue;
                    }
                    destroyed => destroyed?,
                };
                report.reactors += destroyed.reactors.len();
                report.cooldowns += destroyed.cooldowns;
                if let Some(error) = destroyed.stopped {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Removes records that no field lists; `true` if some of them were corrupt.
    async fn remove_unlisted(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<bool> {
        let mut pages = FamilyScan::<REACTOR>::new(&self.store, only, TEARDOWN_KEYS);
        let mut corrupt = false;
        while let Some(page) = pages.next().await? {
            for (tenant, keys) in by_tenant(page) {
                let scope = self.scope(tenant.unwrap_or(ANYWHERE), "reactors.teardown");
                for (key, found) in keys.iter().zip(scope.get_each(&keys).await?) {
                    match found {
                        Ok(Some(reactor)) if only.is_none_or(|tenant| reactor.is_of(&tenant)) => {
                            let owner = self.scope(Tenant(reactor.tenant.id), "reactors.teardown");
                            report.reactors += usize::from(remove_one(&owner, key).await?);
                        }
                        Ok(_) => {}
                        Err(_) if only.is_none() || tenant.is_some() => {
                            discard(&scope, key).await?;
                            report.reactors += 1;
                            corrupt = true;
                        }
                        Err(error) => report.corrupt.push(error),
                    }
                }
            }
        }
        Ok(corrupt)
    }

    /// Clears cooldowns: first the indexed ones, then markers without an index entry.
    async fn clear_all_cooldowns(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<()> {
        let mut indexes = FamilyScan::<REACTOR_COOLDOWNS>::new(&self.store, only, TEARDOWN_KEYS);
        while let Some(page) = indexes.next().await? {
            for (tenant, index) in with_tenant(page) {
                report.cooldowns += self.clear_cooldowns(tenant, cooldowns_field(&index)).await?;
            }
        }
        let mut markers = FamilyScan::<REACTOR_COOLDOWN>::new(&self.store, only, TEARDOWN_KEYS);
        while let Some(page) = markers.next().await? {
            for (tenant, marker) in with_tenant(page) {
                let (field, spot) = cooldown_parts(&marker);
                report.cooldowns += usize::from(self.clear_cooldown(tenant, field, spot).await?);
            }
        }
        Ok(())
    }

    /// Removes the hashes of empty fields, and stale entries of the index of all.
    async fn remove_auxiliary(&self, only: Option<Tenant>, report: &mut TeardownReport) -> Result<()> {
        let mut pages = FamilyScan::<REACTOR_SPOTS>::new(&self.store, only, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            for (tenant, key) in with_tenant(page) {
                let field = spots_field(&key);
                self.scope(tenant, "reactors.teardown").transact(move |tx| forget_empty(tx, &field)).await?;
            }
        }
        let mut pages = FamilyScan::<REACTORS_ALL>::new(&self.store, only, TEARDOWN_KEYS);
        while let Some(page) = pages.next().await? {
            // Where all tenants share the set, its stale entries do not belong to this tenant.
            for (tenant, key) in page.into_iter().filter(|(tenant, _)| tenant.is_some() || only.is_none()) {
                let scope = self.scope(tenant.unwrap_or(ANYWHERE), "reactors.teardown");
                match index::list::<AllIndex>(&scope, &key).await {
                    Err(error @ hot::Error::WrongType { .. }) => {
                        report
                            .discarded
                            .extend(type_guard::discard_set(&scope, &key).await?.then_some(error));
                    }
                    listed => drop(listed?),
                }
            }
        }
        Ok(())
    }
}

/// Removes one record, if it still belongs to this tenant.
async fn remove_one(owner: &Scope<Tenant>, key: &Key<REACTOR>) -> Result<bool> {
    let (key, id) = (key.clone(), REACTOR.parts(key).0);
    let transaction = move |tx: &mut Tx<'_, Tenant>, guard| match tx.get(&key)? {
        Some(reactor) if reactor.is_of(tx.partition()) => remove(tx, id, &reactor, guard).map(|()| true),
        _ => Ok(false),
    };
    Ok(type_guard::run(owner, transaction).await?)
}

/// Removes a corrupt record.
async fn discard(scope: &Scope<Tenant>, key: &Key<REACTOR>) -> Result<()> {
    let (key, id) = (key.clone(), REACTOR.parts(key).0);
    let transaction = move |tx: &mut Tx<'_, Tenant>, guard: TypeGuard| {
        tx.del(&key)?;
        leave_all(tx, id, guard)
    };
    Ok(type_guard::run(scope, transaction).await?)
}
