//! The operations on monsters. Each is one atomic transaction, or a loop of them that its documentation
//! describes.

mod combat;
mod cooldowns;
mod drops;
mod due;
mod effects;
mod field;
mod remove;
mod repair;
mod spawn;
mod sweep;
mod teardown;

pub use drops::{DropDue, DropTimerRequest};
pub use due::Due;
pub use effects::{AppliedEffect, EffectsRun};
pub use remove::FieldDestruction;
pub use spawn::SpawnRequest;
pub use sweep::{Sweep, SweepReport};
pub use teardown::TeardownReport;

use super::error::{Error, Result};
use super::limits::{IDS, REUSE_AFTER_MAX};
use super::model::{Monster, MonsterId};
use super::rules::PoisonRule;
use super::schema::*;
use crate::world::Tenant;
use emberkeep_hot::{self as hot, ReadTx, Scope, Store, Tx};
use emberkeep_primitives::record::Change;
use emberkeep_primitives::{DueQueue, IdPool, RestingPool};
use std::time::Duration;

/// The pool of a tenant's monster ids.
type Ids = RestingPool<MONSTER_ID_NEXT, MONSTER_ID_FREE, MONSTER_ID_RESTING>;

/// The monsters of a store. Cheap to clone.
///
/// ```
/// use emberkeep_games::monsters::{EffectRequest, Error, Monsters, SpawnRequest, rules::POISON};
/// use emberkeep_games::world::{CharacterId, Field, Tenant};
/// use emberkeep_hot::{Store, embedded::{Clock, Embedded, ManualClock}};
/// use std::{sync::Arc, time::Duration};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let clock = ManualClock::at(1_700_000_000_000);
/// let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
/// let monsters = Monsters::new(Store::new(Arc::new(engine)));
/// let tenant = Tenant(uuid::Uuid::new_v4());
/// let field = Field { world: 0, channel: 1, map: 100_000_000, instance: uuid::Uuid::nil() };
///
/// let id = monsters.spawn(tenant, SpawnRequest::new(field, 100_100, 50)).await?.id;
/// let (alice, bob) = (CharacterId(1), CharacterId(2));
/// assert_eq!(monsters.damage(tenant, id, alice, 15).await?.hp, 35);
///
/// // Bob's poison takes 10 a second.
/// let poison = EffectRequest::new(bob, POISON, 10, Duration::from_secs(60)).every(Duration::from_secs(1));
/// monsters.apply_effect(tenant, id, poison).await?;
/// clock.advance(3_000);
/// let ran = monsters.run_due_effects(tenant, 100).await?;
/// assert_eq!((ran.done[0].hp, ran.done[0].ticks[0].count), (5, 3));
/// assert!(monsters.run_due_effects(tenant, 100).await?.done.is_empty(), "handed out once");
///
/// // One hit kills. The record still knows the damage leader.
/// assert!(monsters.damage(tenant, id, alice, 999).await?.killed);
/// assert_eq!(monsters.damage(tenant, id, bob, 1).await, Err(Error::AlreadyDead { id }));
/// assert_eq!(monsters.damage_leader(tenant, id).await?, Some((bob, 30)));
/// assert!(monsters.remove(tenant, id).await?);
/// assert!(!monsters.remove(tenant, id).await?, "only one caller removes it");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Monsters {
    store: Store,
    reuse_after: Duration,
    poison: PoisonRule,
}

impl Monsters {
    /// The monsters of a store. A released id is reused at once, the latest first.
    pub fn new(store: Store) -> Monsters {
        Monsters { store, reuse_after: Duration::ZERO, poison: PoisonRule::default() }
    }

    /// Makes released ids rest before they are reused. Some clients crash if an id comes back before they
    /// have seen its previous owner disappear. Every process on a store should use the same time. Ids that
    /// another service releases, or that were released before, do not rest.
    pub fn reuse_after(mut self, rest: Duration) -> Result<Monsters> {
        if rest > REUSE_AFTER_MAX {
            return Err(Error::invalid("rest", format!("{rest:?}, expected at most {REUSE_AFTER_MAX:?}")));
        }
        self.reuse_after = rest;
        Ok(self)
    }

    /// Sets the damage rule of POISON.
    pub fn poison_rule(mut self, rule: PoisonRule) -> Monsters {
        self.poison = rule;
        self
    }

    fn scope(&self, tenant: Tenant, operation: &'static str) -> Scope<Tenant> {
        self.store.scope(tenant).named(operation)
    }

    fn ids(&self) -> Ids {
        IdPool::new(IDS, MONSTER_ID_NEXT.key(), MONSTER_ID_FREE.key())
            .resting(MONSTER_ID_RESTING.key(), self.reuse_after)
    }

    /// Applies a rule to a monster's record in a transaction.
    async fn update<T: Send + 'static>(
        &self,
        operation: &'static str,
        tenant: Tenant,
        id: MonsterId,
        rule: impl Fn(&mut Monster) -> Result<Change<T>> + Send + 'static,
    ) -> Result<T> {
        let transaction = move |tx: &mut Tx<'_, Tenant>| {
            let mut monster = existing(tx, id)?;
            Ok(match rule(&mut monster)? {
                Change::Leave(result) => result,
                Change::Put(result) => put(tx, id, &mut monster).map(|()| result)?,
            })
        };
        self.scope(tenant, operation).transact(transaction).await
    }
}

/// Reads a monster; fails if it does not exist.
fn existing(tx: &mut Tx<'_, Tenant>, id: MonsterId) -> Result<Monster> {
    tx.get(&MONSTER.key(id))?.ok_or(Error::NotFound { id })
}

/// Writes a monster under the id of its key. The id in the record may be wrong, and would overwrite another
/// monster. Adds the tenant if the record lacks it.
fn put(tx: &mut Tx<'_, Tenant>, id: MonsterId, monster: &mut Monster) -> hot::Result<()> {
    let tenant = tx.partition().0;
    monster.tenant_id.get_or_insert(tenant);
    tx.put(&MONSTER.key(id), monster)
}

/// Something of a monster, read together with whether the monster exists; fails if it does not.
fn of_present<T>(
    tx: &mut ReadTx<'_, Tenant>,
    id: MonsterId,
    read: impl FnOnce(&mut ReadTx<'_, Tenant>) -> hot::Result<T>,
) -> Result<T> {
    let (exists, found) = tx.together(|tx| (tx.exists(&MONSTER.key(id)), Ok(read(tx))))?;
    if exists { Ok(found?) } else { Err(Error::NotFound { id }) }
}

/// Fails if the monster does not exist.
fn present(tx: &mut Tx<'_, Tenant>, id: MonsterId) -> Result<()> {
    if tx.exists(&MONSTER.key(id))? { Ok(()) } else { Err(Error::NotFound { id }) }
}

/// Monsters by the next tick or expiry of their effects.
fn effects_due() -> DueQueue<MONSTER_EFFECTS> {
    DueQueue::new(MONSTER_EFFECTS.key())
}

/// Monsters by their next drop.
fn drops_due() -> DueQueue<DROP_TIMERS> {
    DueQueue::new(DROP_TIMERS.key())
}

/// Checks that an amount is at least 1.
fn positive(what: &'static str, amount: i64) -> Result<u64> {
    match u64::try_from(amount) {
        Ok(amount) if amount > 0 => Ok(amount),
        _ => Err(Error::invalid(what, format!("{amount}, expected at least 1"))),
    }
}
