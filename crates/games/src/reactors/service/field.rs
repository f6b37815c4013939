//! The reactors of a field, and of a tenant.

use super::Reactors;
use super::destroy::{leave_all, leave_field, remove};
use crate::reactors::error::{Error, Result};
use crate::reactors::indexes::{AllIndex, FieldIndex};
use crate::reactors::limits::DESTROYED_PER_TRANSACTION;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::schema::{REACTOR, REACTORS_ALL, field_key, spots_key};
use crate::type_guard::{self, TypeGuard};
use crate::world::{Field, Tenant};
use emberkeep_hot::engine::MemberCursor;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::index::{self, IndexPage, Listing};
use emberkeep_schema::Key;

/// The result of emptying a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldDestruction {
    /// The destroyed reactors, as they were last.
    pub reactors: Vec<Reactor>,
    /// Cooldowns that were cleared.
    pub cooldowns: usize,
    /// Errors for corrupt records, each with its key. The records are unchanged.
    pub corrupt: Vec<hot::Error>,
    /// Why the call stopped early. Call again for the rest. It is not an `Err`, because the destroyed
    /// reactors must not be lost.
    pub stopped: Option<Error>,
}

impl Reactors {
    /// The reactors of a field. Stale index entries are left out and removed. A corrupt record is reported
    /// and does not hide the others.
    pub fn in_field(&self, tenant: Tenant, field: Field) -> Pending<'_, Result<Listing<Reactor>>> {
        Box::pin(async move {
            Ok(index::list::<FieldIndex>(&self.scope(tenant, "reactors.in_field"), &field_key(&field))
                .await?)
        })
    }

    /// The reactors of a field with this name.
    pub fn named_in_field<'a>(
        &'a self,
        tenant: Tenant,
        field: Field,
        name: &'a str,
    ) -> Pending<'a, Result<Listing<Reactor>>> {
        Box::pin(async move {
            let mut listing = self.in_field(tenant, field).await?;
            listing.living.retain(|reactor| reactor.name == name);
            Ok(listing)
        })
    }

    /// All reactors of a tenant. On one server this reads those of every tenant, because they share the
    /// index.
    pub fn all(&self, tenant: Tenant) -> Pending<'_, Result<Listing<Reactor>>> {
        Box::pin(async move {
            let mut listing =
                index::list::<AllIndex>(&self.scope(tenant, "reactors.all"), &REACTORS_ALL.key()).await?;
            // On one server the tenants share the set. Entries of other tenants are valid, but not in this list.
            listing.living.retain(|reactor| reactor.is_of(&tenant));
            Ok(listing)
        })
    }

    /// A page of a tenant's reactors: those among about `count` index entries. It can be empty although more
    /// follow. All pages together contain every reactor that was there throughout.
    pub fn page(
        &self,
        tenant: Tenant,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'_, Result<IndexPage<Reactor>>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.page");
            let mut page = index::page::<AllIndex>(&scope, &REACTORS_ALL.key(), from, count).await?;
            page.listing.living.retain(|reactor| reactor.is_of(&tenant));
            Ok(page)
        })
    }

    /// Destroys every reactor of a field. Starts no cooldowns, and clears those of the field.
    ///
    /// A loop of transactions, each reactor atomically. Readers may see a part of the field meanwhile, and
    /// reactors that are created meanwhile may stay. A failure after the first destructions is reported in
    /// [`stopped`](FieldDestruction::stopped).
    pub fn destroy_in_field(&self, tenant: Tenant, field: Field) -> Pending<'_, Result<FieldDestruction>> {
        Box::pin(async move {
            let mut destroyed = FieldDestruction::default();
            match self.empty(tenant, field, &mut destroyed).await {
                Err(error) if destroyed.reactors.is_empty() => Err(error),
                outcome => {
                    destroyed.stopped = outcome.err();
                    Ok(destroyed)
                }
            }
        })
    }

    /// Destroys what a field lists, and clears its cooldowns.
    async fn empty(&self, tenant: Tenant, field: Field, destroyed: &mut FieldDestruction) -> Result<()> {
        let scope = self.scope(tenant, "reactors.destroy_in_field");
        let mut from = None;
        loop {
            let page = scope.members(&field_key(&field), from, DESTROYED_PER_TRANSACTION).await?;
            for some in page.members.chunks(DESTROYED_PER_TRANSACTION) {
                let batch = self.destroy_some(&scope, field, some.to_vec()).await?;
                destroyed.reactors.extend(batch.reactors);
                // Pages may repeat members.
                let fresh = batch.corrupt.into_iter().filter(|error| !destroyed.corrupt.contains(error));
                let fresh: Vec<_> = fresh.collect();
                destroyed.corrupt.extend(fresh);
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        scope.transact(move |tx| forget_empty(tx, &field)).await?;
        destroyed.cooldowns = self.clear_cooldowns(tenant, field).await?;
        Ok(())
    }

    /// Destroys some members of a field's index in one transaction.
    async fn destroy_some(
        &self,
        scope: &Scope<Tenant>,
        field: Field,
        entries: Vec<Member<ReactorId>>,
    ) -> Result<FieldDestruction> {
        let ids: Vec<ReactorId> = entries.iter().filter_map(|entry| entry.clone().known()).collect();
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
            for entry in &entries {
                if let Member::External(bytes) = entry {
                    tx.srem_raw(&field_key(&field), bytes.clone())?;
                }
            }
            destroy_members(tx, &field, &ids, guard)
        };
        Ok(type_guard::run(scope, transaction).await?)
    }
}

/// Destroys the reactors among some members of a field's index. Stale entries are removed.
fn destroy_members(
    tx: &mut Tx<'_, Tenant>,
    field: &Field,
    ids: &[ReactorId],
    guard: TypeGuard,
) -> hot::Result<FieldDestruction> {
    let records: Vec<Key<REACTOR>> = ids.iter().map(|id| REACTOR.key(id)).collect();
    let mut batch = FieldDestruction::default();
    for (id, found) in ids.iter().zip(tx.get_each(&records)?) {
        match found {
            Ok(Some(reactor)) if reactor.is_of(tx.partition()) && reactor.field() == *field => {
                remove(tx, *id, &reactor, guard)?;
                batch.reactors.push(reactor);
            }
            Ok(elsewhere) => {
                leave_field(tx, *id, field, guard)?;
                if elsewhere.is_none() {
                    leave_all(tx, *id, guard)?;
                }
            }
            Err(error) => batch.corrupt.push(error),
        }
    }
    Ok(batch)
}

/// Removes the index of spots if the field has no reactors.
pub(super) fn forget_empty(tx: &mut Tx<'_, Tenant>, field: &Field) -> hot::Result<()> {
    if tx.scard(&field_key(field))? == 0 {
        tx.del(&spots_key(field))?;
    }
    Ok(())
}
