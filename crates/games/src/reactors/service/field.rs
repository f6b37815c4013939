//! All reactors of a field, and of a tenant.

use super::Reactors;
use super::destroy::{leave_all, leave_field, remove};
use crate::reactors::error::{Error, Result};
use crate::reactors::indexes::{InAll, InField};
use crate::reactors::limits::DESTROYED_PER_TRANSACTION;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::schema::{REACTOR, REACTORS_ALL, field_key, spots_key};
use crate::type_guard::{self, TypeGuard};
use crate::world::{Field, Tenant};
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::MemberCursor;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::index::{self, IndexPage, Listing};
use emberkeep_schema::Key;

/// A field that was emptied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldDestruction {
    /// The reactors, as they were at their end.
    pub reactors: Vec<Reactor>,
    /// Cooldowns that were cleared.
    pub cooldowns: usize,
    /// Records that cannot be read and were left as they are; each error names its key.
    pub corrupt: Vec<hot::Error>,
    /// What kept the call from going on after it had destroyed these: call again for the rest. Nobody else is told of
    /// what it destroyed, so that must not be lost in an error.
    pub stopped: Option<Error>,
}

impl Reactors {
    /// The reactors of a field. Index entries without a reactor of this field are not returned, and are removed; a
    /// record that cannot be read hides none of the others, and is named.
    pub async fn in_field(&self, tenant: Tenant, field: Field) -> Result<Listing<Reactor>> {
        Ok(index::list::<InField>(&self.store.scope(tenant), &field_key(&field)).await?)
    }

    /// The reactors of a field that have a name.
    pub async fn named_in_field(&self, tenant: Tenant, field: Field, name: &str) -> Result<Listing<Reactor>> {
        let mut listing = self.in_field(tenant, field).await?;
        listing.living.retain(|reactor| reactor.name == name);
        Ok(listing)
    }

    /// All reactors of a tenant. On one server this looks at those of every tenant: the document's index is one for all.
    pub async fn all(&self, tenant: Tenant) -> Result<Listing<Reactor>> {
        let mut listing = index::list::<InAll>(&self.store.scope(tenant), &REACTORS_ALL.key()).await?;
        // On one server the set is one for all tenants: others belong there, but they are not this tenant's.
        listing.living.retain(|reactor| reactor.is_of(&tenant));
        Ok(listing)
    }

    /// Some reactors of a tenant: of about `count` that are looked at, those that are its own, possibly none although
    /// more follow. Over all pages, every one that is there throughout.
    pub async fn page(
        &self,
        tenant: Tenant,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Result<IndexPage<Reactor>> {
        let scope = self.store.scope(tenant);
        let mut page = index::page::<InAll>(&scope, &REACTORS_ALL.key(), from, count).await?;
        page.listing.living.retain(|reactor| reactor.is_of(&tenant));
        Ok(page)
    }

    /// Destroys every reactor of a field. No cooldown is recorded, and those of the field are cleared.
    ///
    /// A loop of transactions, each reactor whole: who reads meanwhile may see a part of the field, and a reactor that is
    /// created meanwhile may stay. What keeps it from going on after it has destroyed some is no error but
    /// [`stopped`](FieldDestruction::stopped), beside those that are gone.
    pub async fn destroy_in_field(&self, tenant: Tenant, field: Field) -> Result<FieldDestruction> {
        let mut destroyed = FieldDestruction::default();
        match self.empty(tenant, field, &mut destroyed).await {
            Err(error) if destroyed.reactors.is_empty() => Err(error),
            outcome => {
                destroyed.stopped = outcome.err();
                Ok(destroyed)
            }
        }
    }

    /// Destroys what a field lists, and clears its cooldowns.
    async fn empty(&self, tenant: Tenant, field: Field, destroyed: &mut FieldDestruction) -> Result<()> {
        let scope = self.store.scope(tenant);
        let mut from = None;
        loop {
            let page = scope.members(&field_key(&field), from, DESTROYED_PER_TRANSACTION).await?;
            for some in page.members.chunks(DESTROYED_PER_TRANSACTION) {
                let ended = self.end_some(&scope, field, some.to_vec()).await?;
                destroyed.reactors.extend(ended.reactors);
                // A page may show an entry again.
                let fresh = ended.corrupt.into_iter().filter(|error| !destroyed.corrupt.contains(error));
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

    /// Ends some entries of a field's index, in one transaction.
    async fn end_some(
        &self,
        scope: &Scope<Tenant>,
        field: Field,
        entries: Vec<Member<ReactorId>>,
    ) -> Result<FieldDestruction> {
        let ids: Vec<ReactorId> = entries.iter().filter_map(|entry| entry.clone().known()).collect();
        let prefetched =
            ids.iter().fold(scope.clone(), |scope, id| scope.prefetch(&REACTOR.key(id), Read::Get));
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
            for entry in &entries {
                if let Member::External(bytes) = entry {
                    tx.srem_raw(&field_key(&field), bytes.clone())?;
                }
            }
            end(tx, &field, &ids, guard)
        };
        Ok(type_guard::run(&prefetched, transaction).await?)
    }
}

/// Ends the reactors among some entries of a field; of those that are not here only the entry goes.
fn end(
    tx: &mut Tx<'_, Tenant>,
    field: &Field,
    ids: &[ReactorId],
    guard: TypeGuard,
) -> hot::Result<FieldDestruction> {
    let records: Vec<Key<REACTOR>> = ids.iter().map(|id| REACTOR.key(id)).collect();
    let mut ended = FieldDestruction::default();
    for (id, found) in ids.iter().zip(tx.get_each(&records)?) {
        match found {
            Ok(Some(reactor)) if reactor.is_of(tx.partition()) && reactor.field() == *field => {
                remove(tx, *id, &reactor, guard)?;
                ended.reactors.push(reactor);
            }
            Ok(elsewhere) => {
                leave_field(tx, *id, field, guard)?;
                if elsewhere.is_none() {
                    leave_all(tx, *id, guard)?;
                }
            }
            Err(error) => ended.corrupt.push(error),
        }
    }
    Ok(ended)
}

/// Forgets who stood where in a field in which nobody stands.
pub(super) fn forget_empty(tx: &mut Tx<'_, Tenant>, field: &Field) -> hot::Result<()> {
    if tx.scard(&field_key(field))? == 0 {
        tx.del(&spots_key(field))?;
    }
    Ok(())
}
