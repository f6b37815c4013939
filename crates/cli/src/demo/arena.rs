//! Where the players meet the monsters: a fixed number of places, each with a living monster's id.
//!
//! Ids are used again at once: a player who read an id a moment ago may hit, and kill, another monster that stands
//! at another place by now. So the place of a killed monster is where its id lives, not where the id was read.

use super::random::Random;
use super::tally::{Tally, Violations};
use emberkeep::games::monsters::{Error, Monster, MonsterId, Monsters, SpawnRequest};
use emberkeep::games::world::{Field, Tenant};
use emberkeep::hot::{Scope, Store};
use std::collections::{HashMap, HashSet};
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
/// Places that a player looks at before it waits.
const PLACES_TRIED: usize = 8;
/// Sets of counters that the players share.
const TALLIES: usize = 16;
/// How long a killer keeps trying when the store refuses for now.
const PATIENCE: Duration = Duration::from_secs(30);

/// The places, and what is known about who stands there.
pub(super) struct Arena {
    pub(super) monsters: Monsters,
    pub(super) scope: Scope<Tenant>,
    pub(super) tenant: Tenant,
    /// Ids of those who stand there; 0 while one is replaced.
    places: Vec<AtomicU32>,
    /// Ids that were handed out and not given back, with their places: a second one of these is a violation.
    living: Mutex<HashMap<u32, usize>>,
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

    /// Somebody at a random place; nobody if many are being replaced.
    pub(super) fn somebody(&self, random: &mut Random) -> Option<MonsterId> {
        let id = |_| self.places[random.below(self.places.len())].load(Relaxed);
        (0..PLACES_TRIED).map(id).find(|id| *id != 0).map(MonsterId)
    }

    /// Ids at all places.
    pub(super) fn expected(&self) -> HashSet<u32> {
        self.places.iter().map(|id| id.load(Relaxed)).filter(|id| *id != 0).collect()
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
        self.places[place].store(monster.id.0, Relaxed);
        if self.living().insert(monster.id.0, place).is_some() {
            self.violations.tell(format!("id {} was handed out while its monster lived", monster.id));
        }
        Ok(())
    }

    /// Buries a monster for the one player who killed it. Gives the corpse, which nobody changes any more, and the
    /// place that it leaves empty. `None` if the game is over because of it.
    pub(super) async fn bury(&self, id: MonsterId) -> Result<Option<(Monster, usize)>, Error> {
        let corpse = patiently(|| self.monsters.get(self.tenant, id)).await?;
        let Some(corpse) = corpse.filter(|corpse| !corpse.is_alive()) else {
            self.violations
                .tell(format!("monster {id} was killed and there is no corpse: it had two killers"));
            return Ok(None);
        };
        // Before the removal: from its commit on, the id may be handed out again.
        let Some(place) = self.vacate(id).await else { return Ok(None) };
        if !patiently(|| self.monsters.remove(self.tenant, id)).await? {
            self.violations.tell(format!("monster {id} had two killers: another one removed it"));
        }
        Ok(Some((corpse, place)))
    }

    /// Takes a monster off its place. Who spawned it may be about to write down where it stands: wait for that.
    async fn vacate(&self, id: MonsterId) -> Option<usize> {
        loop {
            if let Some(place) = self.living().remove(&id.0) {
                self.places[place].store(0, Relaxed);
                return Some(place);
            }
            if self.violations.any() {
                return None;
            }
            tokio::task::yield_now().await;
        }
    }

    fn living(&self) -> std::sync::MutexGuard<'_, HashMap<u32, usize>> {
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
