//! Status effects: applying, replacing and cancelling them.

use super::life::living;
use crate::monsters::error::{Error, Result};
use crate::monsters::limits::*;
use crate::monsters::model::{Monster, SourceType, StatusEffect, Statuses};
use crate::world::{CharacterId, word_problem};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// A status whose value is the damage per tick.
pub const POISON: &str = "POISON";
/// The same, but [`VENOMS_MAX`] of them can be on a monster at the same time.
pub const VENOM: &str = "VENOM";

/// A status effect to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRequest {
    /// The kind of source: 1 to [`SOURCE_TYPE_BYTES_MAX`] bytes.
    pub source: SourceType,
    /// The character that casts it; 0 if none does.
    pub source_character: CharacterId,
    /// The skill. That of a [`MONSTER_SKILL`](SourceType::MONSTER_SKILL) has 16 bits, as a
    /// [`SkillId`](crate::monsters::SkillId).
    pub source_skill: u32,
    /// The level of that skill.
    pub source_skill_level: u32,
    /// Values by status name: at least one.
    pub statuses: BTreeMap<String, i32>,
    /// Duration in whole milliseconds, at least one.
    pub duration: Duration,
    /// Time between two ticks; zero means no ticks.
    pub tick_interval: Duration,
}

impl EffectRequest {
    /// One status from a character's skill, without ticks. The other fields can be set afterwards.
    pub fn new(caster: CharacterId, status: &str, value: i32, duration: Duration) -> EffectRequest {
        EffectRequest {
            source: SourceType::PLAYER_SKILL,
            source_character: caster,
            source_skill: 0,
            source_skill_level: 0,
            statuses: BTreeMap::from([(status.to_owned(), value)]),
            duration,
            tick_interval: Duration::ZERO,
        }
    }

    /// The same effect with ticks.
    pub fn every(mut self, tick_interval: Duration) -> EffectRequest {
        self.tick_interval = tick_interval;
        self
    }

    /// Checks the fields against the limits.
    pub fn check(&self) -> Result<()> {
        self.check_source()?;
        self.check_statuses()?;
        let limit = EFFECT_DURATION_MAX;
        if self.duration.as_millis() == 0 || self.duration > limit {
            let problem = format!("{} ms, expected 1 to {} ms", self.duration.as_millis(), limit.as_millis());
            return Err(Error::invalid("duration", problem));
        }
        let ticks = self.tick_interval;
        if ticks > limit || (!ticks.is_zero() && ticks.as_millis() == 0) {
            let problem = format!("{} ms, expected none or 1 to {} ms", ticks.as_millis(), limit.as_millis());
            return Err(Error::invalid("tick interval", problem));
        }
        Ok(())
    }

    fn check_source(&self) -> Result<()> {
        let text = self.source.as_str();
        if text.trim().is_empty() {
            return Err(Error::invalid("source type", "empty, expected a text such as PLAYER_SKILL"));
        }
        if let Some(problem) = word_problem(text, SOURCE_TYPE_BYTES_MAX) {
            return Err(Error::invalid("source type", problem));
        }
        if self.source == SourceType::MONSTER_SKILL && self.source_skill > u32::from(u16::MAX) {
            let problem = format!("{}, expected at most {} for a MONSTER_SKILL", self.source_skill, u16::MAX);
            return Err(Error::invalid("source skill", problem));
        }
        Ok(())
    }

    fn check_statuses(&self) -> Result<()> {
        let count = self.statuses.len();
        if !(1..=STATUSES_MAX).contains(&count) {
            return Err(Error::invalid(
                "statuses",
                format!("{count} statuses, expected 1 to {STATUSES_MAX}"),
            ));
        }
        match self.statuses.keys().find(|name| name.trim().is_empty() || name.len() > STATUS_NAME_BYTES_MAX) {
            None => Ok(()),
            Some(name) => {
                let problem =
                    format!("a name of {} bytes, expected 1 to {STATUS_NAME_BYTES_MAX}", name.trim().len());
                Err(Error::invalid("status", problem))
            }
        }
    }

    /// The effect, starting now.
    pub fn effect(&self, id: Uuid, now_ms: i64) -> StatusEffect {
        // In range: `check` limits both to days.
        let (duration_ms, tick_interval_ms) =
            (self.duration.as_millis() as i64, self.tick_interval.as_millis() as i64);
        StatusEffect {
            source: self.source.clone(),
            source_character: self.source_character,
            source_skill: self.source_skill,
            source_skill_level: self.source_skill_level,
            statuses: Statuses(self.statuses.clone()),
            duration_ms,
            tick_interval_ms,
            // Other services count the first interval from here.
            last_tick_ms: now_ms,
            created_at_ms: now_ms,
            expires_at_ms: now_ms + duration_ms,
            ..StatusEffect::new(id)
        }
    }
}

/// Applies an effect to a monster and returns the effects that it replaces. Pending ticks of replaced effects
/// are lost.
///
/// - An effect replaces every effect with a status of the same name.
/// - [`VENOM`] stacks: beyond [`VENOMS_MAX`], the one that expires soonest is replaced.
/// - A monster with [`EFFECTS_MAX`] effects loses one that has expired, or the call fails.
pub fn apply(monster: &mut Monster, effect: StatusEffect) -> Result<Vec<StatusEffect>> {
    living(monster)?;
    let same = |other: &StatusEffect| effect.statuses.0.keys().any(|name| name != VENOM && other.has(name));
    let (mut out, mut kept): (Vec<_>, Vec<_>) = monster.effects.0.iter().cloned().partition(same);
    if effect.has(VENOM) {
        while kept.iter().filter(|other| other.has(VENOM)).count() >= VENOMS_MAX {
            out.push(take_soonest_venom(&mut kept));
        }
    }
    while kept.len() >= EFFECTS_MAX {
        let ended = take_ended(&mut kept, effect.created_at_ms);
        let full = Error::TooMany { id: monster.id, what: "status effects", max: EFFECTS_MAX };
        out.push(ended.ok_or(full)?);
    }
    kept.push(effect);
    monster.effects.0 = kept;
    Ok(out)
}

/// Removes the VENOM that expires first; of equals, the oldest.
fn take_soonest_venom(effects: &mut Vec<StatusEffect>) -> StatusEffect {
    let venoms = effects.iter().enumerate().filter(|(_, effect)| effect.has(VENOM));
    let soonest = venoms.min_by_key(|(_, effect)| effect.ends_at().unwrap_or(i64::MAX));
    effects.remove(soonest.expect("the caller counted several").0)
}

/// Removes the first effect that has expired.
fn take_ended(effects: &mut Vec<StatusEffect>, now_ms: i64) -> Option<StatusEffect> {
    let ended = effects.iter().position(|effect| effect.ends_at().is_some_and(|end| end <= now_ms))?;
    Some(effects.remove(ended))
}

/// Selects the effects to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectSelector {
    /// The effect with this id.
    Effect(Uuid),
    /// Effects with a status of this name.
    Status(String),
    /// Every effect of the monster.
    All,
}

/// Removes and returns effects of a monster, dead or alive.
pub fn cancel(monster: &mut Monster, which: &EffectSelector) -> Vec<StatusEffect> {
    let goes = |effect: &StatusEffect| match which {
        EffectSelector::Effect(id) => effect.id == *id,
        EffectSelector::Status(name) => effect.has(name),
        EffectSelector::All => true,
    };
    let (out, kept) = std::mem::take(&mut monster.effects.0).into_iter().partition(goes);
    monster.effects.0 = kept;
    out
}

#[cfg(test)]
mod tests {
    use super::super::fixture::monster;
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn effect(id: u128, status: &str, seconds: u64) -> StatusEffect {
        let request = EffectRequest::new(CharacterId(7), status, 5, Duration::from_secs(seconds));
        request.check().unwrap();
        request.effect(Uuid::from_u128(id), 1_000_000)
    }

    fn borne(monster: &Monster) -> Vec<u128> {
        monster.effects.iter().map(|effect| effect.id.as_u128()).collect()
    }

    fn ids(effects: Vec<StatusEffect>) -> Vec<u128> {
        effects.iter().map(|effect| effect.id.as_u128()).collect()
    }

    #[test]
    fn the_same_status_replaces_and_others_stay() {
        let mut monster = monster(10);
        apply(&mut monster, effect(1, "STUN", 9)).unwrap();
        apply(&mut monster, effect(2, "SEAL", 9)).unwrap();
        assert_eq!(ids(apply(&mut monster, effect(3, "STUN", 1)).unwrap()), [1]);
        assert_eq!(borne(&monster), [2, 3]);
        let mut both = effect(4, "STUN", 5);
        both.statuses.0.insert("SEAL".into(), 1);
        assert_eq!(ids(apply(&mut monster, both).unwrap()), [2, 3]);
        assert_eq!(borne(&monster), [4]);
    }

    #[test]
    fn venom_stacks_to_three_and_the_one_that_ends_soonest_leaves() {
        let mut monster = monster(10);
        for (id, seconds) in [(1, 30), (2, 10), (3, 20)] {
            assert!(apply(&mut monster, effect(id, VENOM, seconds)).unwrap().is_empty());
        }
        // The new one stays although it ends before all others.
        assert_eq!(ids(apply(&mut monster, effect(4, VENOM, 1)).unwrap()), [2]);
        assert_eq!(ids(apply(&mut monster, effect(5, VENOM, 40)).unwrap()), [4]);
        assert_eq!(borne(&monster), [1, 3, 5]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let fine = EffectRequest::new(CharacterId(1), POISON, 5, SECOND).every(SECOND);
        assert_eq!(fine.check(), Ok(()));
        let wrong = |change: &dyn Fn(&mut EffectRequest)| {
            let mut request = fine.clone();
            change(&mut request);
            match request.check() {
                Err(Error::Invalid { what, .. }) => what,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wrong(&|r| r.source = SourceType::new(" ")), "source type");
        assert_eq!(wrong(&|r| r.source = SourceType::new("x".repeat(65))), "source type");
        assert_eq!(wrong(&|r| r.source = SourceType::new("a\nb")), "source type");
        let monsters_own =
            |skill| EffectRequest { source: SourceType::MONSTER_SKILL, source_skill: skill, ..fine.clone() };
        assert_eq!(monsters_own(65_535).check(), Ok(()));
        assert!(monsters_own(65_536).check().unwrap_err().to_string().contains("65535"));
        assert_eq!(EffectRequest { source_skill: 2_101_005, ..fine.clone() }.check(), Ok(()));
        assert_eq!(wrong(&|r| r.statuses.clear()), "statuses");
        assert_eq!(wrong(&|r| r.statuses.extend([(String::new(), 1)])), "status");
        assert_eq!(wrong(&|r| r.statuses.extend([("  ".into(), 1)])), "status");
        assert_eq!(wrong(&|r| r.statuses.extend([("x".repeat(65), 1)])), "status");
        assert_eq!(wrong(&|r| r.statuses = (0..17).map(|n| (n.to_string(), 1)).collect()), "statuses");
        assert_eq!(wrong(&|r| r.duration = Duration::ZERO), "duration");
        assert_eq!(wrong(&|r| r.duration = Duration::from_nanos(1)), "duration");
        assert_eq!(wrong(&|r| r.duration = Duration::MAX), "duration");
        assert_eq!(wrong(&|r| r.tick_interval = Duration::from_nanos(1)), "tick interval");
        assert_eq!(wrong(&|r| r.tick_interval = Duration::MAX), "tick interval");
    }

    #[test]
    fn a_monster_bears_no_more_than_the_bound_and_the_dead_bear_nothing_new() {
        let mut monster = monster(10);
        for n in 0..EFFECTS_MAX {
            apply(&mut monster, effect(n as u128, &format!("S{n}"), 5)).unwrap();
        }
        let before = monster.clone();
        let refused = apply(&mut monster, effect(999, "ONE MORE", 5)).unwrap_err();
        assert!(matches!(refused, Error::TooMany { max: EFFECTS_MAX, .. }), "{refused:?}");
        assert_eq!(monster, before);
        assert_eq!(ids(apply(&mut monster, effect(1_000, "S3", 5)).unwrap()), [3]);
        monster.hp = 0;
        assert_eq!(apply(&mut monster, effect(1_001, "S3", 5)), Err(Error::AlreadyDead { id: monster.id }));
    }

    #[test]
    fn an_effect_that_has_ended_makes_room() {
        let mut monster = monster(10);
        for n in 0..EFFECTS_MAX {
            let seconds = if n == 7 { 1 } else { 5 };
            apply(&mut monster, effect(n as u128, &format!("S{n}"), seconds)).unwrap();
        }
        // What is due was not run yet: one of them ended a second ago.
        let mut late = effect(999, "ONE MORE", 5);
        late.created_at_ms += 2_000;
        assert_eq!(ids(apply(&mut monster, late.clone()).unwrap()), [7]);
        assert_eq!(monster.effects.len(), EFFECTS_MAX);
        late.statuses.0 = BTreeMap::from([("AND ONE".into(), 1)]);
        assert!(matches!(apply(&mut monster, late), Err(Error::TooMany { .. })));
    }

    #[test]
    fn effects_are_cancelled_by_id_by_name_or_all() {
        let mut monster = monster(10);
        for (id, status) in [(1, "STUN"), (2, VENOM), (3, VENOM), (4, "SEAL")] {
            apply(&mut monster, effect(id, status, 5)).unwrap();
        }
        assert_eq!(ids(cancel(&mut monster, &EffectSelector::Effect(Uuid::from_u128(4)))), [4]);
        assert!(cancel(&mut monster, &EffectSelector::Effect(Uuid::from_u128(4))).is_empty());
        assert_eq!(ids(cancel(&mut monster, &EffectSelector::Status(VENOM.into()))), [2, 3]);
        assert_eq!(ids(cancel(&mut monster, &EffectSelector::All)), [1]);
        assert!(monster.effects.is_empty());
    }

    proptest! {
        #[test]
        fn no_status_but_venom_stands_twice(applied in prop::collection::vec((0usize..5, 0usize..5, 1u64..100), 0..60)) {
            let names = [VENOM, POISON, "STUN", "SEAL", "WEAPON_ATTACK"];
            let mut monster = monster(10);
            let mut left = 0;
            for (n, (one, other, seconds)) in applied.iter().enumerate() {
                let mut new = effect(n as u128, names[*one], *seconds);
                new.statuses.0.insert(names[*other].into(), 1);
                left += apply(&mut monster, new).unwrap().len();
                for name in names {
                    let count = monster.effects.iter().filter(|effect| effect.has(name)).count();
                    prop_assert!(count <= if name == VENOM { VENOMS_MAX } else { 1 }, "{} x {}", count, name);
                }
                prop_assert_eq!(monster.effects.last().map(|effect| effect.id.as_u128()), Some(n as u128));
            }
            prop_assert_eq!(monster.effects.len() + left, applied.len());
        }
    }
}
