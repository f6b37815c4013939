//! A player: hits monsters until the game is over, buries and replaces those that it killed, and does other things now
//! and then.

use crate::actor::Actor;
use crate::ledger::{Ledger, Quantity};
use crate::plan::Ground;
use crate::stats::Count;
use crate::world::World;
use emberkeep::games::monsters::{Error, MonsterId};
use emberkeep::games::world::{CharacterId, Tenant};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns between two pauses: a store in this process never makes a player wait, and others want a turn too.
const TURNS_TOGETHER: u32 = 16;
/// How long a player waits that found no monster.
const PAUSE: Duration = Duration::from_millis(1);
/// Places that a player looks at before it waits.
const PLACES_TRIED: usize = 8;
/// The most damage of a hit.
const DAMAGE_MAX: usize = 100;
/// Of so many turns, some are something else than a hit: see [`Player::other_than_hit`].
const TURNS: usize = 256;

/// Plays until the game is over, and returns its ledger.
pub(super) async fn play(world: Arc<World>, who: u32) -> Ledger {
    let mut player = Player { who: CharacterId(who), actor: Actor::new(world.clone(), who as usize) };
    while !world.is_over() {
        for _ in 0..TURNS_TOGETHER {
            if let Err(error) = player.turn().await {
                world.report_violation(format!("player {who} cannot go on: {error:#}"));
                return player.actor.ledger;
            }
            if !world.plan.rest.is_zero() && !world.rest(world.plan.rest).await {
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    player.actor.ledger
}

pub(super) struct Player {
    pub(super) who: CharacterId,
    pub(super) actor: Actor,
}

/// Whom a player looks at, and where it found that one.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) ground: Ground,
    pub(super) tenant: Tenant,
    place: usize,
    pub(super) id: MonsterId,
}

impl Player {
    async fn turn(&mut self) -> anyhow::Result<()> {
        let Some(target) = self.pick_target() else {
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        };
        match self.actor.random.usize(..TURNS) {
            turn @ 0..9 => self.other_than_hit(turn, target).await,
            _ => self.hit(target).await,
        }
    }

    /// A monster in a random field; `None` if many are being replaced.
    fn pick_target(&mut self) -> Option<Target> {
        (0..PLACES_TRIED).find_map(|_| {
            let ground = self.actor.somewhere();
            let world = &self.actor.world;
            let (place, id) = world.roster(ground.number).pick(&mut self.actor.random)?;
            Some(Target { ground, tenant: world.plan.tenant(ground.tenant), place, id: MonsterId(id) })
        })
    }

    async fn hit(&mut self, target: Target) -> anyhow::Result<()> {
        let amount = 1 + self.actor.random.usize(..DAMAGE_MAX) as i64;
        let start = Instant::now();
        let outcome = self.actor.world.monsters.damage(target.tenant, target.id, self.who, amount).await;
        self.actor.took(start.elapsed());
        if let Err(Error::NotFound { .. }) = outcome {
            self.actor.world.roster(target.ground.number).remove(target.place, target.id.0);
        }
        let Some(hit) = self.actor.tolerate(outcome)? else { return Ok(()) };
        self.actor.count(Count::Hits, 1);
        let damage = Quantity::Damage(target.id.0, self.who.0);
        self.actor.ledger.report(target.ground.tenant, damage, hit.actual);
        if hit.killed { self.killed(target).await } else { Ok(()) }
    }

    /// Removes a killed monster, and spawns another one where it died.
    async fn killed(&mut self, target: Target) -> anyhow::Result<()> {
        let tenant = target.ground.tenant;
        self.actor.count(Count::Kills, 1);
        self.actor.ledger.report(tenant, Quantity::Deaths(target.id.0), 1);
        let Some(corpse) = self.actor.bury(tenant, target.id).await? else { return Ok(()) };
        // It may have walked on since it was found, and its id may belong to another monster by now: what counts is what was removed.
        let ground = self.actor.world.plan.ground_of(tenant, &corpse.field());
        let next = self.actor.spawn(ground).await?;
        let roster = self.actor.world.roster(ground.number);
        if ground == target.ground {
            roster.put(target.place, next.0);
        } else {
            roster.enter(&mut self.actor.random, next.0);
        }
        Ok(())
    }
}
