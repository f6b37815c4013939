//! Hits, and destruction of reactors.

use super::{Reactors, own, spots};
use crate::reactors::error::Result;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::rules::{self, Transition};
use crate::reactors::schema::{REACTOR, REACTORS_ALL, cooldowns, field_key};
use crate::type_guard::{self, TypeGuard};
use crate::world::{CharacterId, Field, Tenant};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};
use std::time::Duration;

/// The result of a hit, with everything that a game server needs to notify clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The character that hit.
    pub character: CharacterId,
    /// The skill; 0 means none.
    pub skill: u32,
    /// The reactor after the hit; if it triggered, as it was last.
    pub reactor: Reactor,
    /// What the hit did.
    pub outcome: Outcome,
}

/// What a hit did to a reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It advanced to another state, or to the same one again.
    Advanced {
        /// The state before the hit.
        from: i8,
    },
    /// It triggered and was destroyed. Exactly one hit on a reactor does this.
    Triggered {
        /// How long its spot cools down; `None` means no cooldown.
        cooldown: Option<Duration>,
    },
    /// It triggered and stays in its last state, see [`HitRules::item_reactors_stay`](rules::HitRules).
    Stayed {
        /// The state before the hit.
        from: i8,
    },
}

/// What the destruction of a reactor leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destruction {
    /// The reactor as it was last.
    pub reactor: Reactor,
    /// How long its spot cools down; `None` = not at all.
    pub cooldown: Option<Duration>,
}

impl Reactors {
    /// Hits a reactor: it advances to its next state, or triggers and is destroyed with the start of its
    /// cooldown, in one transaction.
    ///
    /// Concurrent hits are serialized: each starts from the state that the previous one left. Hits after the
    /// last one fail with `NotFound`.
    pub fn hit(
        &self,
        tenant: Tenant,
        id: ReactorId,
        character: CharacterId,
        skill: u32,
    ) -> Pending<'_, Result<Hit>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.hit");
            let rules = self.hit_rules;
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
                let mut reactor = own(tx, id)?;
                let now = tx.now();
                let outcome = match rules::strike(&mut reactor, skill, now, rules) {
                    Transition::Advanced { from } => {
                        tx.put(&REACTOR.key(id), &reactor)?;
                        Outcome::Advanced { from }
                    }
                    Transition::Stayed { from } => {
                        if from != reactor.state {
                            tx.put(&REACTOR.key(id), &reactor)?;
                        }
                        Outcome::Stayed { from }
                    }
                    Transition::Triggered => {
                        Outcome::Triggered { cooldown: remove_and_cool_down(tx, id, &reactor, guard)? }
                    }
                };
                Ok(Hit { character, skill, reactor, outcome })
            };
            type_guard::run(&scope, transaction).await
        })
    }

    /// Destroys a reactor: record, both indexes and the start of its spot's cooldown in one transaction. One
    /// of several callers destroys it, the others get `NotFound`. An index of a wrong type does not prevent
    /// the destruction: it is left as it is.
    pub fn destroy(&self, tenant: Tenant, id: ReactorId) -> Pending<'_, Result<Destruction>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.destroy");
            let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
                let reactor = own(tx, id)?;
                let cooldown = remove_and_cool_down(tx, id, &reactor, guard)?;
                Ok(Destruction { reactor, cooldown })
            };
            type_guard::run(&scope, transaction).await
        })
    }
}

/// Removes a reactor and starts the cooldown of its spot.
fn remove_and_cool_down(
    tx: &mut Tx<'_, Tenant>,
    id: ReactorId,
    reactor: &Reactor,
    guard: TypeGuard,
) -> hot::Result<Option<Duration>> {
    remove(tx, id, reactor, guard)?;
    let cooldown = rules::cooldown_after(reactor);
    if let Some(time) = cooldown {
        cooldowns(reactor.field()).start(tx, &reactor.spot(), time)?;
    }
    Ok(cooldown)
}

/// Removes a reactor and its index entries.
pub(super) fn remove(
    tx: &mut Tx<'_, Tenant>,
    id: ReactorId,
    reactor: &Reactor,
    guard: TypeGuard,
) -> hot::Result<()> {
    tx.del(&REACTOR.key(id))?;
    leave_field(tx, id, &reactor.field(), guard)?;
    leave_all(tx, id, guard)
}

/// Removes an id from the indexes of a field.
pub(super) fn leave_field(
    tx: &mut Tx<'_, Tenant>,
    id: ReactorId,
    field: &Field,
    guard: TypeGuard,
) -> hot::Result<()> {
    if guard.allows(|| tx.sismember(&field_key(field), &id))? {
        tx.srem(&field_key(field), &id)?;
    }
    spots::leave(tx, &id, field, guard)
}

/// Removes an id from the index of all.
pub(super) fn leave_all(tx: &mut Tx<'_, Tenant>, id: ReactorId, guard: TypeGuard) -> hot::Result<()> {
    if guard.allows(|| tx.sismember(&REACTORS_ALL.key(), &id))? {
        tx.srem(&REACTORS_ALL.key(), &id)?;
    }
    Ok(())
}
