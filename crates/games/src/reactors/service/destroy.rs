//! Hits, and the end of reactors.

use super::{Reactors, own, spots};
use crate::reactors::error::Result;
use crate::reactors::model::{Reactor, ReactorId};
use crate::reactors::rules::{self, Transition};
use crate::reactors::schema::{REACTOR, REACTORS_ALL, cooldowns, field_key};
use crate::type_guard::{self, TypeGuard};
use crate::world::{CharacterId, Field, Tenant};
use emberkeep_hot::command::Read;
use emberkeep_hot::{self as hot, Tx};
use std::time::Duration;

/// A hit that counted, with all that a game server needs to tell others of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Who hit.
    pub character: CharacterId,
    /// With which skill; 0 is none.
    pub skill: u32,
    /// The reactor after the hit; as it was at its end, if it triggered.
    pub reactor: Reactor,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a reactor that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in another state, or in the same one again.
    Advanced {
        /// The state it was in.
        from: i8,
    },
    /// It triggered and is destroyed. Exactly one hit on a reactor does this.
    Triggered {
        /// How long its spot cools down; `None` = not at all.
        cooldown: Option<Duration>,
    },
    /// It triggered and stays in its last state, see [`HitRules::item_reactors_stay`](rules::HitRules).
    Stayed {
        /// The state it was in.
        from: i8,
    },
}

/// A reactor that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destruction {
    /// As it was at its end.
    pub reactor: Reactor,
    /// How long its spot cools down; `None` = not at all.
    pub cooldown: Option<Duration>,
}

impl Reactors {
    /// Hits a reactor: it goes on to its next state, or triggers and is destroyed, with its cooldown, in one transaction.
    ///
    /// Hits at the same time follow one another: each sees the state that the one before it left, and what comes after
    /// the last one is `NotFound`.
    pub async fn hit(
        &self,
        tenant: Tenant,
        id: ReactorId,
        character: CharacterId,
        skill: u32,
    ) -> Result<Hit> {
        let scope = self.store.scope(tenant).prefetch(&REACTOR.key(id), Read::Get);
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
                Transition::Triggered => Outcome::Triggered { cooldown: end(tx, id, &reactor, guard)? },
            };
            Ok(Hit { character, skill, reactor, outcome })
        };
        type_guard::run(&scope, transaction).await
    }

    /// Destroys a reactor: record, both indexes and the start of its spot's cooldown in one transaction. Of several callers
    /// one destroys it, the others get `NotFound`. An index or a hint that an external client corrupt keeps no reactor from
    /// its end: it is left as it is, and nothing is taken out of it.
    pub async fn destroy(&self, tenant: Tenant, id: ReactorId) -> Result<Destruction> {
        let scope = self.store.scope(tenant).prefetch(&REACTOR.key(id), Read::Get);
        let transaction = move |tx: &mut Tx<'_, Tenant>, guard| {
            let reactor = own(tx, id)?;
            let cooldown = end(tx, id, &reactor, guard)?;
            Ok(Destruction { reactor, cooldown })
        };
        type_guard::run(&scope, transaction).await
    }
}

/// Ends a reactor and lets its spot cool down.
fn end(
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

/// Takes a reactor out of everything that knows it.
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

/// Takes an id out of what a field knows.
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

/// Takes an id out of the index of all.
pub(super) fn leave_all(tx: &mut Tx<'_, Tenant>, id: ReactorId, guard: TypeGuard) -> hot::Result<()> {
    if guard.allows(|| tx.sismember(&REACTORS_ALL.key(), &id))? {
        tx.srem(&REACTORS_ALL.key(), &id)?;
    }
    Ok(())
}
