//! Changes of a reactor by whoever knows better than a rule.

use super::{Reactors, own};
use crate::reactors::error::{Error, Result};
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::rules;
use crate::reactors::schema::REACTOR;
use crate::reactors::timestamp::Timestamp;
use crate::world::Tenant;
use emberkeep_hot::Tx;
use emberkeep_hot::command::Read;

impl Reactors {
    /// Replaces a reactor by `next` if it is still as it was `seen`, and stamps the time. Otherwise
    /// [`Conflict`](Error::Conflict), with the reactor as it is.
    ///
    /// Id, tenant, field and spot do not change.
    pub async fn update(&self, tenant: Tenant, seen: &Reactor, next: Reactor) -> Result<Reactor> {
        rules::check_change(seen, &next)?;
        let (id, seen) = (seen.id, seen.clone());
        let scope = self.store.scope(tenant).prefetch(&REACTOR.key(id), Read::Get);
        scope
            .transact(move |tx| {
                let current = own(tx, id)?;
                if current != seen {
                    return Err(Error::Conflict { current: Box::new(current) });
                }
                put(tx, id, next.clone())
            })
            .await
    }

    /// Changes a reactor as it is when the transaction commits, and stamps the time. The closure may run several times, each
    /// time on a fresh copy.
    ///
    /// Id, tenant, field and spot do not change.
    pub async fn update_with<F>(&self, tenant: Tenant, id: ReactorId, mut change: F) -> Result<Reactor>
    where
        F: FnMut(&mut Reactor) + Send + 'static,
    {
        let scope = self.store.scope(tenant).prefetch(&REACTOR.key(id), Read::Get);
        scope
            .transact(move |tx| {
                let before = own(tx, id)?;
                let mut after = before.clone();
                change(&mut after);
                rules::check_change(&before, &after)?;
                put(tx, id, after)
            })
            .await
    }
}

/// Stamps and writes.
fn put(tx: &mut Tx<'_, Tenant>, id: ReactorId, mut reactor: Reactor) -> Result<Reactor> {
    reactor.update_time = Timestamp::at(tx.now());
    tx.put(&REACTOR.key(id), &reactor)?;
    Ok(reactor)
}
