//! Where the players meet the monsters: a fixed number of places, each with a living monster's id.

use super::random::Random;
use super::tally::{Tally, Violations};
use emberkeep::games::monsters::{Error, Monster, MonsterId, Monsters, SpawnRequest};
use emberkeep::games::world::{Field, Tenant};
use emberkeep::hot::{Scope, Store};
use std::collections::HashSet;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Monsters of one field: far below what one read of an index may return.
const MONSTERS_PER_FIELD: usize = 200;
/// Health of a monster: about twenty hits.
const HP_MIN: usize = 500;
const HP_SPREAD: usize = 1_000;
/// Sets of counters that the players share.
const TALLIES: usize = 16;
/// How long a killer keeps trying when the store refuses for now.
const PATIENCE: Duration = Duration::from_secs(30);

/// The places, and what is known about who stands there.
pub(super) struct Arena {
    pub(super) monsters: Monsters,
    pub(super) scope: Scope<Tenant>,
    pub(super) tenant: Tenant,
    places: Vec<AtomicU32>,
    /// Ids that were handed out and not given back: a second one of these is a violation.
    living: Mutex<HashSet<u32>>,
    pub(super) tallies: Vec<Tally>,
    pub(super) violations: Violations,
    over: AtomicBool,
}

impl Arena {
    /// A tenant of its own, so that the counts are exact whatever else the store holds.
    pub(super) async fn populate(store: &Store, monsters: usize) -> Result<Arena, Error> {
        let tenant = Tenant(Uuid::new_v4());
        let arena = Arena {
            monsters: Monsters::new(store.clone()),
            scope: store.scope(tenant),
            tenant,
            places: (0..monsters).map(|_| AtomicU32::new(0)).collect(),
            living: Mutex::default(),
            tallies: (0..TALLIES).map(|_| Tally::new()).collect(),
            violations: Violations::default(),
            over: AtomicBool::new(false),
        };
        let mut random = Random(tenant.0.as_u64_pair().0);
        for place in 0..monsters {
            arena.spawn(place, &mut random).await?;
        }
        Ok(arena)
    }

    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Who stands at a place.
    pub(super) fn at(&self, place: usize) -> MonsterId {
        MonsterId(self.places[place].load(Relaxed))
    }

    /// Ids at all places.
    pub(super) fn expected(&self) -> HashSet<u32> {
        self.places.iter().map(|id| id.load(Relaxed)).collect()
    }

    /// Tells all players to finish what they are doing.
    pub(super) fn end(&self) {
        self.over.store(true, Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed) || self.violations.any()
    }

    /// Puts a new monster at a place.
    pub(super) async fn spawn(&self, place: usize, random: &mut Random) -> Result<(), Error> {
        let map = 100_000_000 + (place / MONSTERS_PER_FIELD) as u32;
        let field = Field { world: 0, channel: 1, map, instance: Uuid::nil() };
        let hp = (HP_MIN + random.below(HP_SPREAD)) as u32;
        let request = SpawnRequest::new(field, 100_100, hp);
        let monster = patiently(|| self.monsters.spawn(self.tenant, request.clone())).await?;
        if !self.living().insert(monster.id.0) {
            self.violations.tell(format!("id {} was handed out while its monster lived", monster.id));
        }
        self.places[place].store(monster.id.0, Relaxed);
        Ok(())
    }

    /// Buries a monster for the one player who killed it. Gives the corpse, which nobody changes any more.
    pub(super) async fn bury(&self, id: MonsterId) -> Result<Option<Monster>, Error> {
        let corpse = patiently(|| self.monsters.get(self.tenant, id)).await?;
        if corpse.as_ref().is_none_or(|corpse| corpse.hp != 0) {
            self.violations.tell(format!("monster {id} was killed and is no corpse: {corpse:?}"));
            return Ok(None);
        }
        // Before the removal: from its commit on, the id may be handed out again.
        self.living().remove(&id.0);
        if !patiently(|| self.monsters.remove(self.tenant, id)).await? {
            self.violations.tell(format!("monster {id} had two killers: another one removed it"));
        }
        Ok(corpse)
    }

    fn living(&self) -> std::sync::MutexGuard<'_, HashSet<u32>> {
        self.living.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Whether calling again may help.
pub(super) fn is_transient(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_transient())
}

/// Calls again while the store refuses for now: a corpse must not be left lying about.
pub(super) async fn patiently<T, F>(mut call: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let start = Instant::now();
    loop {
        match call().await {
            Err(error) if is_transient(&error) && start.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outcome => return outcome,
        }
    }
}
