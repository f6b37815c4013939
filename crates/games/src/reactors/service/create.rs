//! Creation of reactors, and their ids.

use super::{Reactors, spots};
use crate::reactors::error::{Error, Result};
use crate::reactors::limits::PREFETCHED_IDS;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::request::CreateRequest;
use crate::reactors::schema::{REACTOR, REACTORS_ALL, cooldown_key, cooldowns, field_key, ids};
use crate::world::Tenant;
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::{IdResult, sequence::SearchProgress};
use std::sync::atomic::Ordering;

impl Reactors {
    /// Takes the next free id. The caller can use it in [`CreateRequest::id`] until the counter has wrapped
    /// once.
    pub fn allocate_id(&self, tenant: Tenant) -> Pending<'_, Result<ReactorId>> {
        Box::pin(async move {
            let scope = ids().prefetched(self.prefetching_ids(tenant));
            let mut search = ids().search();
            loop {
                match scope.transact(|tx| ids().take(tx, is_in_use)).await? {
                    IdResult::Id(id) => return Ok(self.note_last(id)),
                    IdResult::NotYet(looked) => search.go_on(looked)?,
                }
            }
        })
    }

    /// Creates a reactor: the check of the spot, id, record and both indexes in one transaction.
    ///
    /// Fails with [`OnCooldown`](Error::OnCooldown) while the spot cools down, and with
    /// [`SpotTaken`](Error::SpotTaken) while a living reactor of the same classification occupies it, even
    /// one that an external service created. [`FieldFull`](Error::FieldFull) counts living reactors only:
    /// stale entries of a full index are removed first.
    pub fn create(&self, tenant: Tenant, request: CreateRequest) -> Pending<'_, Result<Reactor>> {
        Box::pin(async move {
            request.check()?;
            let scope = self.prefetched(tenant, &request);
            let (field, mut search, mut pruned) = (request.field, ids().search(), false);
            loop {
                let request = request.clone();
                match scope.transact(move |tx| create(tx, &request)).await {
                    Ok(CreateAttempt::Done(reactor)) => {
                        self.note_last(reactor.id);
                        return Ok(*reactor);
                    }
                    Ok(CreateAttempt::NotYet(looked)) => search.go_on(looked)?,
                    Err(full @ Error::FieldFull { .. }) if !pruned => {
                        if self.in_field(tenant, field).await?.pruned == 0 {
                            return Err(full);
                        }
                        pruned = true;
                    }
                    Err(error) => return Err(error),
                }
            }
        })
    }

    /// A scope that prefetches what a creation reads if no other process interferes: one round trip before
    /// its commit.
    fn prefetched(&self, tenant: Tenant, request: &CreateRequest) -> Scope<Tenant> {
        let marker = cooldown_key(&request.field, &request.spot());
        let scope = match request.id {
            Some(id) => self.scope(tenant, "reactors.create").prefetch_exists(&REACTOR.key(id)),
            None => ids().prefetched(self.prefetching_ids(tenant)),
        };
        let scope = scope.prefetch_exists(&marker).prefetch(&marker, Read::ExpireTime);
        spots::prefetched(scope, &request.field)
    }

    /// A scope that prefetches the ids after the last one.
    fn prefetching_ids(&self, tenant: Tenant) -> Scope<Tenant> {
        let last = self.last_id.load(Ordering::Relaxed);
        let next_ids = (1..=PREFETCHED_IDS).filter_map(|ahead| last.checked_add(ahead));
        let scope = self.scope(tenant, "reactors.create");
        next_ids.fold(scope, |scope, id| scope.prefetch_exists(&REACTOR.key(ReactorId(id))))
    }

    fn note_last(&self, id: ReactorId) -> ReactorId {
        self.last_id.store(id.0, Ordering::Relaxed);
        id
    }
}

/// The result of one transaction of a creation.
enum CreateAttempt {
    Done(Box<Reactor>),
    NotYet(SearchProgress),
}

/// Checks the spot, takes an id, and writes the reactor.
fn create(tx: &mut Tx<'_, Tenant>, request: &CreateRequest) -> Result<CreateAttempt> {
    let (field, spot) = (request.field, request.spot());
    if let Some(remaining) = cooldowns(field).remaining(tx, &spot)? {
        return Err(Error::OnCooldown { remaining });
    }
    spots::claim(tx, &field, &spot)?;
    let id = match id_for(tx, request)? {
        IdResult::Id(id) => id,
        IdResult::NotYet(looked) => return Ok(CreateAttempt::NotYet(looked)),
    };
    let now = tx.now();
    let reactor = request.build(*tx.partition(), id, now)?;
    tx.put(&REACTOR.key(id), &reactor)?;
    tx.sadd(&field_key(&field), &id)?;
    tx.sadd(&REACTORS_ALL.key(), &id)?;
    spots::enter(tx, &id, &reactor)?;
    Ok(CreateAttempt::Done(Box::new(reactor)))
}

/// The id of the request, or the next one.
fn id_for(tx: &mut Tx<'_, Tenant>, request: &CreateRequest) -> Result<IdResult<ReactorId>> {
    match request.id {
        None => Ok(ids().take(tx, is_in_use)?),
        Some(id) if is_in_use(tx, &id)? => {
            let problem = format!("{id} is in use, expected an id that was allocated for this reactor");
            Err(Error::Invalid { what: "id", problem })
        }
        Some(id) => Ok(IdResult::Id(id)),
    }
}

/// Whether a reactor of any tenant has this id. On one server all tenants share the ids.
fn is_in_use(tx: &mut Tx<'_, Tenant>, id: &ReactorId) -> hot::Result<bool> {
    tx.exists(&REACTOR.key(id))
}
