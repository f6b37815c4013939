//! An actor of the simulation: a random number generator, a ledger of its own, and what all actors have in common.

use crate::ledger::{Ledger, Quantity};
use crate::plan::Ground;
use crate::stats::Count;
use crate::world::{Retryable, World, retry_transient};
use emberkeep::games::monsters::{self, Monster, MonsterId, SpawnRequest};
use emberkeep::games::reactors;
use fastrand::Rng;
use std::sync::Arc;

/// Health of a monster: about twenty hits.
const HP_MIN: usize = 500;
const HP_SPREAD: usize = 1_000;
/// Mana of a monster.
const MP: u32 = 100;
/// One of so many is a friend: it stands much, and may drop something every now and then.
const FRIEND_ONE_IN: usize = 32;
const FRIEND_HP_TIMES: u32 = 10;
/// The templates of hostile and of friendly monsters.
const FOE: u32 = 100_100;
const FRIEND: u32 = 9_300_061;

/// A player, or one of those who keep the world alive.
pub(super) struct Actor {
    pub(super) world: Arc<World>,
    pub(super) random: Rng,
    pub(super) ledger: Ledger,
    number: usize,
}

impl Actor {
    pub(super) fn new(world: Arc<World>, number: usize) -> Actor {
        let seed = world.plan.tenants[0].as_u64_pair().1 ^ (number as u64) ^ u64::from(world.process) << 32;
        Actor { random: Rng::with_seed(seed), ledger: Ledger::default(), number, world }
    }

    pub(super) fn count(&self, what: Count, amount: u64) {
        self.world.counters(self.number).add(what, amount);
    }

    pub(super) fn took(&self, latency: std::time::Duration) {
        self.world.counters(self.number).took(latency);
    }

    /// A field of this actor's tenants, at random.
    pub(super) fn somewhere(&mut self) -> Ground {
        let number = self.random.usize(..self.world.plan.grounds());
        self.world.plan.ground(number)
    }

    /// The result of a call about a monster: `None` if it is gone or dead, or if the store refused for now.
    pub(super) fn tolerate<T>(&self, outcome: monsters::Result<T>) -> anyhow::Result<Option<T>> {
        use monsters::Error::{AlreadyDead, NoDropTimer, NotFound};
        match outcome {
            Ok(said) => Ok(Some(said)),
            Err(NotFound { .. } | AlreadyDead { .. } | NoDropTimer { .. }) => {
                self.count(Count::Late, 1);
                Ok(None)
            }
            Err(error) => self.refused(error),
        }
    }

    /// The same of a call about a reactor.
    pub(super) fn tolerate_reactor<T>(&self, outcome: reactors::Result<T>) -> anyhow::Result<Option<T>> {
        match outcome {
            Ok(said) => Ok(Some(said)),
            Err(reactors::Error::NotFound { .. }) => {
                self.count(Count::Late, 1);
                Ok(None)
            }
            Err(error) => self.refused(error),
        }
    }

    /// Counts what the store refused for now.
    pub(super) fn refused<T>(&self, error: impl Retryable) -> anyhow::Result<Option<T>> {
        if !error.is_transient() {
            return Err(error.into());
        }
        self.count(Count::Refused, 1);
        Ok(None)
    }

    /// Handles the error that stopped a call of several transactions. What it did before is entered already.
    pub(super) fn stopped(&self, why: Option<impl Retryable>) -> anyhow::Result<()> {
        why.map_or(Ok(()), |error| self.refused::<()>(error).map(drop))
    }

    /// Brings a new monster into a field, and gives its id.
    pub(super) async fn spawn(&mut self, ground: Ground) -> anyhow::Result<MonsterId> {
        let mut hp = (HP_MIN + self.random.usize(..HP_SPREAD)) as u32;
        let friendly = self.random.usize(..FRIEND_ONE_IN) == 0;
        if friendly {
            hp *= FRIEND_HP_TIMES;
        }
        let mut request = SpawnRequest::new(ground.field, if friendly { FRIEND } else { FOE }, hp);
        request.max_mp = MP;
        let (world, tenant) = (self.world.clone(), self.world.plan.tenant(ground.tenant));
        let monster = retry_transient(|| world.monsters.spawn(tenant, request.clone())).await?;
        self.ledger.report(ground.tenant, Quantity::Lives(monster.id.0), 1);
        self.count(Count::Spawns, 1);
        if friendly {
            world.roster(ground.number).add_friend(&mut self.random, monster.id.0);
        }
        Ok(monster.id)
    }

    /// Removes a monster that this actor killed, enters what its record says, and gives it. `None` if another actor tore down
    /// the field meanwhile: then the corpse was theirs, and so is its successor.
    pub(super) async fn bury(&mut self, tenant: u16, id: MonsterId) -> anyhow::Result<Option<Monster>> {
        let world = self.world.clone();
        let removed = retry_transient(|| world.monsters.take(world.plan.tenant(tenant), id)).await?;
        if let Some(monster) = &removed {
            self.removed(tenant, monster);
        }
        Ok(removed)
    }

    /// Enters a record that this actor removed.
    pub(super) fn removed(&mut self, tenant: u16, monster: &Monster) {
        self.ledger.monster_over(tenant, monster);
        self.count(Count::Removals, 1);
    }
}
