//! Due ticks of status effects, their damage, and expiry.
//!
//! The n-th tick of an effect is due `n` intervals after its start, the last one at its expiry at the latest.
//! `lastTickMs` is the time of the last tick that was run. It advances by whole intervals, so that a late
//! caller runs exactly the missing ticks and no tick runs twice.

use super::damage::drain;
use super::effects::{POISON, VENOM};
use crate::monsters::limits::POISON_DIVISOR;
use crate::monsters::model::{Monster, StatusEffect};

/// How much damage a tick of [`POISON`] does. Every process on a store should use the same rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoisonRule {
    /// The value of the status.
    #[default]
    Value,
    /// A share of the full health that grows with the level of the skill: `maxHp / (70 - level)`, rounded up.
    /// The value of the status is ignored.
    ShareOfMaxHp,
}

/// Ticks of one effect that became due together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The effect after these ticks.
    pub effect: StatusEffect,
    /// Number of ticks: more than one if no process ran them for a while.
    pub count: u64,
    /// Health that they took, credited to the caster.
    pub damage: u32,
}

/// What became due on a monster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Due ticks, in the order of the effects.
    pub ticks: Vec<Tick>,
    /// Effects that expired, which were removed.
    pub expired: Vec<StatusEffect>,
    /// Whether the record must be written.
    pub changed: bool,
}

/// Runs the due ticks and removes expired effects. Does nothing on a dead monster.
pub fn advance(monster: &mut Monster, now_ms: i64, poison: PoisonRule) -> Advance {
    let mut advance = Advance::default();
    if !monster.is_alive() {
        return advance;
    }
    let mut effects = std::mem::take(&mut monster.effects.0);
    for effect in &mut effects {
        advance.changed |= begin(effect, now_ms);
        let count = run(effect, now_ms);
        if count > 0 {
            let amount = damage_per_tick(effect, monster.max_hp, poison).saturating_mul(count);
            let damage = drain(monster, effect.source_character, amount).map_or(0, |hit| hit.actual);
            advance.ticks.push(Tick { effect: effect.clone(), count, damage });
        }
    }
    let ended = |effect: &StatusEffect| effect.ends_at().is_some_and(|end| end <= now_ms);
    let (expired, kept) = effects.into_iter().partition(ended);
    (advance.expired, monster.effects.0) = (expired, kept);
    advance.changed |= !advance.ticks.is_empty() || !advance.expired.is_empty();
    advance
}

/// The next tick or expiry among the effects of a monster; `None` if there is none.
pub fn next_due_ms(monster: &Monster) -> Option<i64> {
    if !monster.is_alive() {
        return None;
    }
    monster.effects.iter().filter_map(next_of).min()
}

fn next_of(effect: &StatusEffect) -> Option<i64> {
    let end = effect.ends_at();
    let tick = ticks_since(effect).map(|since| since.saturating_add(effect.tick_interval_ms));
    match (tick, end) {
        (Some(tick), Some(end)) => Some(tick.min(end)),
        (tick, end) => tick.or(end),
    }
}

/// The time from which the next tick is counted; `None` if the effect does not tick.
fn ticks_since(effect: &StatusEffect) -> Option<i64> {
    (effect.tick_interval_ms > 0).then(|| effect.last_tick_ms.max(effect.created_at_ms).max(0))
}

/// Sets the start of an effect that another service wrote without one. Counted from 1970, it would have
/// ticked a billion times. `true` if it changed the effect.
fn begin(effect: &mut StatusEffect, now_ms: i64) -> bool {
    let unknown = ticks_since(effect) == Some(0);
    if unknown {
        effect.last_tick_ms = now_ms;
    }
    unknown
}

/// Advances the last tick to now or to the expiry, and returns the number of ticks.
fn run(effect: &mut StatusEffect, now_ms: i64) -> u64 {
    let Some(since) = ticks_since(effect) else { return 0 };
    let until = effect.ends_at().map_or(now_ms, |end| end.min(now_ms));
    let count = until.saturating_sub(since).max(0) / effect.tick_interval_ms;
    if count > 0 {
        effect.last_tick_ms = since + count * effect.tick_interval_ms;
    }
    count.unsigned_abs()
}

/// The damage of one tick. Statuses other than POISON and VENOM do none.
fn damage_per_tick(effect: &StatusEffect, max_hp: u32, rule: PoisonRule) -> u64 {
    let value = |name| effect.statuses.0.get(name).copied().unwrap_or(0).max(0).unsigned_abs();
    let poison = match rule {
        PoisonRule::ShareOfMaxHp if effect.has(POISON) => {
            max_hp.div_ceil(POISON_DIVISOR.saturating_sub(effect.source_skill_level).max(1))
        }
        PoisonRule::ShareOfMaxHp | PoisonRule::Value => value(POISON),
    };
    u64::from(poison) + u64::from(value(VENOM))
}

#[cfg(test)]
mod tests {
    use super::super::{EffectRequest, apply, damage_leader, fixture::monster};
    use super::*;

    fn advance(monster: &mut Monster, now_ms: i64) -> Advance {
        super::advance(monster, now_ms, PoisonRule::Value)
    }

    use crate::world::CharacterId;
    use proptest::prelude::*;
    use std::time::Duration;
    use uuid::Uuid;

    const START: i64 = 1_700_000_000_000;

    fn suffer(monster: &mut Monster, status: &str, value: i32, duration_ms: u64, interval_ms: u64) {
        let request = EffectRequest::new(CharacterId(7), status, value, Duration::from_millis(duration_ms));
        let effect = request.every(Duration::from_millis(interval_ms)).effect(Uuid::from_u128(1), START);
        apply(monster, effect).unwrap();
    }

    fn counts(advance: &Advance) -> Vec<(u64, u32)> {
        advance.ticks.iter().map(|tick| (tick.count, tick.damage)).collect()
    }

    #[test]
    fn each_tick_is_run_once_and_the_last_one_at_the_end() {
        let mut monster = monster(100);
        suffer(&mut monster, POISON, 3, 1_000, 300);
        assert_eq!(next_due_ms(&monster), Some(START + 300));
        assert_eq!(advance(&mut monster, START + 299), Advance::default());
        assert_eq!(counts(&advance(&mut monster, START + 310)), [(1, 3)]);
        // By whole intervals, not from the time of the call.
        assert_eq!(next_due_ms(&monster), Some(START + 600));
        assert_eq!(advance(&mut monster, START + 310), Advance::default());
        let late = advance(&mut monster, START + 5_000);
        assert_eq!((counts(&late), late.expired.len()), (vec![(2, 6)], 1));
        assert_eq!((monster.hp, monster.effects.len(), next_due_ms(&monster)), (91, 0, None));
        assert_eq!(damage_leader(&monster.damage), Some((CharacterId(7), 9)));
    }

    #[test]
    fn a_tick_at_the_very_end_counts() {
        let mut monster = monster(100);
        suffer(&mut monster, VENOM, 3, 900, 300);
        let all = advance(&mut monster, START + 900);
        assert_eq!((counts(&all), all.expired.len()), (vec![(3, 9)], 1));
    }

    #[test]
    fn poison_does_not_kill_and_other_statuses_take_nothing() {
        let mut monster = monster(10);
        suffer(&mut monster, POISON, i32::MAX, 10_000, 1);
        suffer(&mut monster, "SHOWDOWN", 50, 10_000, 1_000);
        suffer(&mut monster, VENOM, -5, 10_000, 1_000);
        let all = advance(&mut monster, START + 2_000);
        assert_eq!(counts(&all), [(2_000, 9), (2, 0), (2, 0)]);
        assert_eq!(monster.hp, 1);
    }

    #[test]
    fn poison_may_take_a_share_of_the_full_health_by_the_level_of_its_skill() {
        for (level, max_hp, taken) in [(30, 15_200, 380), (1, 15_200, 221), (0, 14_000, 200), (99, 500, 499)]
        {
            let mut monster = monster(max_hp);
            suffer(&mut monster, POISON, 7, 10_000, 1_000);
            monster.effects[0].source_skill_level = level;
            let ran = super::advance(&mut monster, START + 1_000, PoisonRule::ShareOfMaxHp);
            assert_eq!(counts(&ran), [(1, taken)], "level {level}");
        }
        let mut monster = monster(15_200);
        suffer(&mut monster, VENOM, 7, 10_000, 1_000);
        let ran = super::advance(&mut monster, START + 1_000, PoisonRule::ShareOfMaxHp);
        assert_eq!(counts(&ran), [(1, 7)], "VENOM keeps its value");
    }

    #[test]
    fn a_corpse_suffers_no_more() {
        let mut corpse = monster(10);
        suffer(&mut corpse, POISON, 1, 1_000, 100);
        corpse.hp = 0;
        let before = corpse.clone();
        assert_eq!((advance(&mut corpse, START + 500), next_due_ms(&corpse)), (Advance::default(), None));
        assert_eq!(corpse, before);
    }

    #[test]
    fn an_effect_without_times_of_another_service_ticks_from_now_and_stays() {
        let mut monster = monster(1_000);
        suffer(&mut monster, POISON, 2, 1_000, 100);
        let effect = &mut monster.effects[0];
        (effect.created_at_ms, effect.expires_at_ms, effect.last_tick_ms) = (0, 0, 0);
        let first = advance(&mut monster, START);
        assert!(first.changed && first.ticks.is_empty() && first.expired.is_empty(), "{first:?}");
        assert_eq!(next_due_ms(&monster), Some(START + 100));
        assert_eq!(counts(&advance(&mut monster, START + 250)), [(2, 4)]);
        assert_eq!(monster.effects.len(), 1);
    }

    proptest! {
        /// However often and however late it is called, the same ticks are run.
        #[test]
        fn ticks_do_not_depend_on_who_comes_when(
            duration in 1u64..5_000, interval in 1u64..700, pauses in prop::collection::vec(0i64..900, 1..40),
        ) {
            let (mut often, mut once) = (monster(1_000_000), monster(1_000_000));
            suffer(&mut often, POISON, 3, duration, interval);
            suffer(&mut once, POISON, 3, duration, interval);
            let (mut now, mut ran) = (START, 0);
            for pause in pauses {
                now += pause;
                ran += advance(&mut often, now).ticks.iter().map(|tick| tick.count).sum::<u64>();
            }
            let all: u64 = advance(&mut once, now).ticks.iter().map(|tick| tick.count).sum();
            prop_assert_eq!(ran, all);
            prop_assert_eq!(all, duration.min((now - START) as u64) / interval);
            prop_assert_eq!((often.hp, &often.effects), (once.hp, &once.effects));
        }

        /// Whatever is stored: what is due is over after it was run, and nothing panics.
        #[test]
        fn time_always_goes_on(times: [i64; 5], value: i32, now in 1i64..1 << 48) {
            let mut monster = monster(50);
            suffer(&mut monster, VENOM, value, 1_000, 100);
            let effect = &mut monster.effects[0];
            [effect.duration_ms, effect.tick_interval_ms, effect.last_tick_ms, effect.created_at_ms, effect.expires_at_ms] = times;
            advance(&mut monster, now);
            prop_assert!(next_due_ms(&monster).is_none_or(|next| next > now));
            prop_assert!(monster.hp >= 1);
        }
    }
}
