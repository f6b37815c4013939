//! What a player does now and then instead of hitting a monster.

use crate::background;
use crate::ledger::Quantity;
use crate::player::{Player, Target};
use crate::stats::Count;
use emberkeep::games::monsters::rules::{POISON, VENOM};
use emberkeep::games::monsters::{EffectRequest, Position, SkillId};
use std::time::Duration;

/// Longest effect. Shorter than a slow store needs to kill a monster, longer than a fast one.
const EFFECT_MS_MAX: usize = 600;
/// Longest time between two ticks.
const TICK_MS_MAX: usize = 50;
/// The most damage of a tick.
const TICK_DAMAGE_MAX: usize = 8;
/// The most health that one healing gives.
const HEALING_MAX: usize = 60;
/// Most mana that a spell takes.
const MANA_MAX: usize = 20;
/// Skills that monsters have.
const SKILLS: usize = 4;
/// Longest cooldown of a skill.
pub(super) const SKILL_COOLDOWN_MAX: Duration = Duration::from_millis(400);

impl Player {
    /// One of nine things, by the number of the turn.
    pub(super) async fn other_than_hit(&mut self, turn: usize, target: Target) -> anyhow::Result<()> {
        match turn {
            0 | 1 => self.apply_effect(target).await,
            2 => self.heal(target).await,
            3 => self.cast(target).await,
            4 => self.control(target).await,
            5 => self.walk(target).await,
            6 if self.actor.random.usize(..4) == 0 => self.cure(target).await,
            6 => self.wander(target).await,
            _ => background::hit_reactor(&mut self.actor, target.ground, self.who).await,
        }
    }

    /// Puts an effect on a monster; most of them tick.
    async fn apply_effect(&mut self, target: Target) -> anyhow::Result<()> {
        let random = &mut self.actor.random;
        let status = [POISON, VENOM, VENOM, "STUN"][random.usize(..4)];
        let value = 1 + random.usize(..TICK_DAMAGE_MAX) as i32;
        let duration = Duration::from_millis(1 + random.usize(..EFFECT_MS_MAX) as u64);
        let mut request = EffectRequest::new(self.who, status, value, duration);
        if status != "STUN" {
            request = request.every(Duration::from_millis(10 + random.usize(..TICK_MS_MAX) as u64));
        }
        let outcome = self.actor.world.monsters.apply_effect(target.tenant, target.id, request).await;
        let Some(applied) = self.actor.tolerate(outcome)? else { return Ok(()) };
        self.actor.count(Count::Effects, 1);
        let tenant = target.ground.tenant;
        self.actor.ledger.report(tenant, Quantity::Effects(target.id.0), 1);
        for effect in &applied.replaced {
            self.actor.ledger.effect_over(tenant, target.id, effect);
        }
        Ok(())
    }

    /// Takes all effects off a monster.
    async fn cure(&mut self, target: Target) -> anyhow::Result<()> {
        let outcome = self.actor.world.monsters.cancel_effects(target.tenant, target.id).await;
        for effect in self.actor.tolerate(outcome)?.unwrap_or_default() {
            self.actor.ledger.effect_over(target.ground.tenant, target.id, &effect);
        }
        Ok(())
    }

    async fn heal(&mut self, target: Target) -> anyhow::Result<()> {
        let amount = 1 + self.actor.random.usize(..HEALING_MAX) as i64;
        let outcome = self.actor.world.monsters.heal(target.tenant, target.id, amount).await;
        if let Some(healed) = self.actor.tolerate(outcome)? {
            self.actor.ledger.report(target.ground.tenant, Quantity::Healing(target.id.0), healed.actual);
        }
        Ok(())
    }

    /// Lets a monster use a skill, if that has cooled down.
    async fn cast(&mut self, target: Target) -> anyhow::Result<()> {
        let (tenant, id) = (target.tenant, target.id);
        let skill = SkillId(1 + self.actor.random.usize(..SKILLS) as u16);
        let world = self.actor.world.clone();
        if self.actor.tolerate(world.monsters.is_cooling(tenant, id, skill).await)? != Some(false) {
            if self.actor.random.usize(..8) == 0 {
                self.actor.tolerate(world.monsters.clear_cooldown(tenant, id, skill).await)?;
            }
            return Ok(());
        }
        let mana = 1 + self.actor.random.usize(..MANA_MAX) as i64;
        let used = world.monsters.use_mp(tenant, id, mana).await;
        if let Some(used) = self.actor.tolerate(used)? {
            self.actor.ledger.report(target.ground.tenant, Quantity::Mana(id.0), used.actual);
        }
        let time = 1 + self.actor.random.usize(..SKILL_COOLDOWN_MAX.as_millis() as usize) as u64;
        let started = world.monsters.start_cooldown(tenant, id, skill, Duration::from_millis(time)).await;
        self.actor.tolerate(started).map(drop)
    }

    /// Takes control of a monster, or gives it up.
    async fn control(&mut self, target: Target) -> anyhow::Result<()> {
        let monsters = &self.actor.world.monsters;
        if self.actor.random.usize(..2) == 0 {
            let outcome = monsters.control(target.tenant, target.id, self.who).await;
            self.actor.tolerate(outcome).map(drop)
        } else {
            let outcome = monsters.release_control(target.tenant, target.id, self.who).await;
            self.actor.tolerate(outcome).map(drop)
        }
    }

    async fn walk(&mut self, target: Target) -> anyhow::Result<()> {
        let to = self.position();
        let outcome = self.actor.world.monsters.move_to(target.tenant, target.id, to).await;
        self.actor.tolerate(outcome).map(drop)
    }

    /// Leads a monster into another field of its tenant.
    async fn wander(&mut self, target: Target) -> anyhow::Result<()> {
        let (to, plan) = (self.position(), &self.actor.world.plan);
        let fields = plan.fields as usize;
        let number = usize::from(target.ground.tenant) * fields + self.actor.random.usize(..fields);
        let ground = plan.ground(number);
        let outcome =
            self.actor.world.monsters.move_to_field(target.tenant, target.id, ground.field, to).await;
        self.actor.tolerate(outcome).map(drop)
    }

    fn position(&mut self) -> Position {
        let x = self.actor.random.usize(..2_000) as i16 - 1_000;
        Position { x, y: -x / 2, fh: Some(x % 7), stance: Some((x & 7) as u8) }
    }
}
