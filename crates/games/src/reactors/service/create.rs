//! New reactors and their ids.

use super::{Reactors, spots};
use crate::reactors::error::{Error, Result};
use crate::reactors::limits::FORESEEN_IDS;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::request::CreateRequest;
use crate::reactors::schema::{REACTOR, REACTORS_ALL, cooldown_key, cooldowns, field_key, ids};
use crate::world::Tenant;
use emberkeep_hot::command::Read;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::{IdResult, sequence::SearchProgress};
use std::sync::atomic::Ordering;

impl Reactors {
    /// Takes the next free id. It stays the caller's until ids have come round once, or is used by
    /// [`CreateRequest::id`].
    pub async fn allocate_id(&self, tenant: Tenant) -> Result<ReactorId> {
        let scope = ids().prefetched(self.foreseeing(tenant));
        let mut search = ids().search();
        loop {
            match scope.transact(|tx| ids().take(tx, lives)).await? {
                IdResult::Id(id) => return Ok(self.seen(id)),
                IdResult::NotYet(looked) => search.go_on(looked)?,
            }
        }
    }

    /// Brings a reactor into a field: the look at the spot, id, record and both indexes in one transaction.
    ///
    /// [`OnCooldown`](Error::OnCooldown) while the spot cools down, [`SpotTaken`](Error::SpotTaken) while a living
    /// reactor of the same classification stands there, also one that an external service created.
    /// [`FieldFull`](Error::FieldFull) is said of the living only: where the index is full, its ghosts go first.
    pub async fn create(&self, tenant: Tenant, request: CreateRequest) -> Result<Reactor> {
        request.check()?;
        let scope = self.prefetched(tenant, &request);
        let (field, mut search, mut pruned) = (request.field, ids().search(), false);
        loop {
            let request = request.clone();
            match scope.transact(move |tx| create(tx, &request)).await {
                Ok(Created::Reactor(reactor)) => {
                    self.seen(reactor.id);
                    return Ok(*reactor);
                }
                Ok(Created::NotYet(looked)) => search.go_on(looked)?,
                Err(full @ Error::FieldFull { .. }) if !pruned => {
                    if self.in_field(tenant, field).await?.pruned == 0 {
                        return Err(full);
                    }
                    pruned = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The scope, told all that a creation reads where nobody else is at work: one round trip before its commit.
    fn prefetched(&self, tenant: Tenant, request: &CreateRequest) -> Scope<Tenant> {
        let marker = cooldown_key(&request.field, &request.spot());
        let scope = match request.id {
            Some(id) => self.store.scope(tenant).prefetch(&REACTOR.key(id), Read::Exists),
            None => ids().prefetched(self.foreseeing(tenant)),
        };
        let scope = scope.prefetch(&marker, Read::Exists).prefetch(&marker, Read::ExpireTime);
        spots::prefetched(scope, &request.field)
    }

    /// The scope, told that ids after the last one may be asked for.
    fn foreseeing(&self, tenant: Tenant) -> Scope<Tenant> {
        let last = self.last_id.load(Ordering::Relaxed);
        let foreseen = (1..=FORESEEN_IDS).filter_map(|ahead| last.checked_add(ahead));
        let scope = self.store.scope(tenant);
        foreseen.fold(scope, |scope, id| scope.prefetch(&REACTOR.key(ReactorId(id)), Read::Exists))
    }

    fn seen(&self, id: ReactorId) -> ReactorId {
        self.last_id.store(id.0, Ordering::Relaxed);
        id
    }
}

/// What one transaction of a creation came to.
enum Created {
    Reactor(Box<Reactor>),
    NotYet(SearchProgress),
}

/// Looks at the spot, takes an id, writes the reactor under it.
fn create(tx: &mut Tx<'_, Tenant>, request: &CreateRequest) -> Result<Created> {
    let (field, spot) = (request.field, request.spot());
    if let Some(remaining) = cooldowns(field).remaining(tx, &spot)? {
        return Err(Error::OnCooldown { remaining });
    }
    spots::claim(tx, &field, &spot)?;
    let id = match id_for(tx, request)? {
        IdResult::Id(id) => id,
        IdResult::NotYet(looked) => return Ok(Created::NotYet(looked)),
    };
    let now = tx.now();
    let reactor = request.born(*tx.partition(), id, now)?;
    tx.put(&REACTOR.key(id), &reactor)?;
    tx.sadd(&field_key(&field), &id)?;
    tx.sadd(&REACTORS_ALL.key(), &id)?;
    spots::enter(tx, &id, &reactor)?;
    Ok(Created::Reactor(Box::new(reactor)))
}

/// The id that the request brings, or the next one.
fn id_for(tx: &mut Tx<'_, Tenant>, request: &CreateRequest) -> Result<IdResult<ReactorId>> {
    match request.id {
        None => Ok(ids().take(tx, lives)?),
        Some(id) if lives(tx, &id)? => {
            let problem = format!("{id} is in use, expected one that was allocated for this reactor");
            Err(Error::Invalid { what: "id", problem })
        }
        Some(id) => Ok(IdResult::Id(id)),
    }
}

/// Whether a reactor has this id, whosever it is: on one server ids are shared.
fn lives(tx: &mut Tx<'_, Tenant>, id: &ReactorId) -> hot::Result<bool> {
    tx.exists(&REACTOR.key(id))
}
