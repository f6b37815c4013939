//! A player: hits random monsters until the game is over, buries and replaces those that it killed.

use super::arena::{Arena, is_transient};
use super::random::Random;
use super::tally::{Ledger, Tally};
use emberkeep::games::monsters::{Error, MonsterId};
use emberkeep::games::world::CharacterId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Hits between two pauses: a store in this process never makes a player wait, and others want a turn too.
const HITS_PER_TURN: u32 = 16;
/// How long a player waits that found nobody.
const PAUSE: Duration = Duration::from_millis(1);
/// Strongest hit.
const DAMAGE_MAX: usize = 100;

/// Plays until the game is over, and gives what was counted.
pub(super) async fn play(arena: Arc<Arena>, number: usize) -> Ledger {
    let mut player = Player {
        who: CharacterId(number as u32 + 1),
        random: Random(number as u64 ^ arena.tenant.0.as_u64_pair().1),
        ledger: Ledger::default(),
        arena,
    };
    while !player.arena.is_over() {
        for _ in 0..HITS_PER_TURN {
            if let Err(error) = player.turn().await {
                let who = player.who;
                player.arena.violations.tell(format!("player {who} cannot go on: {error}"));
                return player.ledger;
            }
        }
        tokio::task::yield_now().await;
    }
    player.ledger
}

struct Player {
    who: CharacterId,
    random: Random,
    ledger: Ledger,
    arena: Arc<Arena>,
}

impl Player {
    fn tally(&self) -> &Tally {
        &self.arena.tallies[self.who.0 as usize % self.arena.tallies.len()]
    }

    /// One hit, and what follows from it.
    async fn turn(&mut self) -> Result<(), Error> {
        let Some(id) = self.arena.somebody(&mut self.random) else {
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        };
        let amount = 1 + self.random.below(DAMAGE_MAX) as i64;
        let start = Instant::now();
        let outcome = self.arena.monsters.damage(self.arena.tenant, id, self.who, amount).await;
        self.tally().latency.add(start.elapsed());
        match outcome {
            Ok(hit) => {
                self.tally().hits.fetch_add(1, Relaxed);
                *self.ledger.struck.entry((id.0, self.who.0)).or_default() += u64::from(hit.actual);
                if hit.killed { self.killed(id).await } else { Ok(()) }
            }
            Err(Error::AlreadyDead(_) | Error::NotFound(_)) => {
                self.tally().late.fetch_add(1, Relaxed);
                Ok(())
            }
            Err(error) if is_transient(&error) => {
                self.tally().refused.fetch_add(1, Relaxed);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn killed(&mut self, id: MonsterId) -> Result<(), Error> {
        self.tally().kills.fetch_add(1, Relaxed);
        let Some((corpse, place)) = self.arena.bury(id).await? else { return Ok(()) };
        let mut sum = 0;
        for entry in &corpse.damage {
            sum += entry.damage;
            *self.ledger.buried.entry((id.0, entry.character.0)).or_default() += entry.damage;
        }
        if sum != u64::from(corpse.max_hp) {
            let max = corpse.max_hp;
            self.arena.violations.tell(format!("monster {id} died of {sum} damage and had {max} health"));
        }
        self.arena.spawn(place, &mut self.random).await
    }
}
