//! Updates of a reactor by the caller.

use super::{Reactors, own};
use crate::reactors::error::{Error, Result};
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::rules;
use crate::reactors::schema::REACTOR;
use crate::reactors::timestamp::Timestamp;
use crate::world::Tenant;
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;

impl Reactors {
    /// Replaces a reactor by `next` if it still equals `read`, and sets the time of the change. Otherwise
    /// fails with [`Conflict`](Error::Conflict), which contains the present reactor.
    ///
    /// Id, tenant, field and spot cannot change.
    pub fn update<'a>(
        &'a self,
        tenant: Tenant,
        read: &'a Reactor,
        next: Reactor,
    ) -> Pending<'a, Result<Reactor>> {
        Box::pin(async move {
            rules::check_change(read, &next)?;
            let (id, read) = (read.id, read.clone());
            let scope = self.scope(tenant, "reactors.update");
            scope
                .transact(move |tx| {
                    let current = own(tx, id)?;
                    if current != read {
                        return Err(Error::Conflict { current: Box::new(current) });
                    }
                    put(tx, id, next.clone())
                })
                .await
        })
    }

    /// Applies a closure to the present reactor, and sets the time of the change. The closure can run several
    /// times, each time on a fresh copy.
    ///
    /// Id, tenant, field and spot cannot change.
    pub fn update_with<F>(&self, tenant: Tenant, id: ReactorId, mut change: F) -> Pending<'_, Result<Reactor>>
    where
        F: FnMut(&mut Reactor) + Send + 'static,
    {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.update_with");
            scope
                .transact(move |tx| {
                    let before = own(tx, id)?;
                    let mut after = before.clone();
                    change(&mut after);
                    rules::check_change(&before, &after)?;
                    put(tx, id, after)
                })
                .await
        })
    }
}

/// Sets the time of the change, and writes.
fn put(tx: &mut Tx<'_, Tenant>, id: ReactorId, mut reactor: Reactor) -> Result<Reactor> {
    reactor.update_time = Timestamp::at(tx.now());
    tx.put(&REACTOR.key(id), &reactor)?;
    Ok(reactor)
}
