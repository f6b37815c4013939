//! Healing, mana, movement and control of a living monster.

use crate::monsters::error::{Error, Result};
use crate::monsters::model::Monster;
use crate::world::{CharacterId, Field};

/// The result of a healing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Healing {
    /// Health that was restored: never more than was missing.
    pub actual: u32,
    /// Health after the healing, at most full health.
    pub hp: u32,
}

/// The result of using mana.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManaUse {
    /// Mana that was used: never more than was left.
    pub actual: u32,
    /// Mana that is left.
    pub mp: u32,
}

/// The new position of a monster in its field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The horizontal position in the field.
    pub x: i16,
    /// The vertical position in the field.
    pub y: i16,
    /// Foothold; `None` keeps the present one.
    pub fh: Option<i16>,
    /// Stance; `None` keeps the present one.
    pub stance: Option<u8>,
}

/// Fails if the monster is dead.
pub fn living(monster: &Monster) -> Result<()> {
    if monster.is_alive() { Ok(()) } else { Err(Error::AlreadyDead { id: monster.id }) }
}

/// Restores health, up to the full health. Fails on a dead monster.
pub fn heal(monster: &mut Monster, amount: u64) -> Result<Healing> {
    living(monster)?;
    // An external service may have set more than the full health. Healing does not take it away.
    let missing = monster.max_hp.saturating_sub(monster.hp);
    let actual = u32::try_from(amount).unwrap_or(u32::MAX).min(missing);
    monster.hp += actual;
    Ok(Healing { actual, hp: monster.hp })
}

/// Takes `min(mp, amount)` mana.
pub fn use_mp(monster: &mut Monster, amount: u64) -> Result<ManaUse> {
    living(monster)?;
    let actual = u32::try_from(amount).unwrap_or(u32::MAX).min(monster.mp);
    monster.mp -= actual;
    Ok(ManaUse { actual, mp: monster.mp })
}

/// Moves a monster within its field.
pub fn walk(monster: &mut Monster, to: Position) -> Result<()> {
    living(monster)?;
    stand(monster, to);
    Ok(())
}

/// Moves a monster to another field and returns the previous field. Its control ends, because the controller
/// is not in the new field.
pub fn relocate(monster: &mut Monster, field: Field, to: Position) -> Result<Field> {
    living(monster)?;
    let former = monster.field();
    monster.set_field(field);
    stand(monster, to);
    if former != field {
        monster.controller = CharacterId::default();
    }
    Ok(former)
}

fn stand(monster: &mut Monster, at: Position) {
    (monster.x, monster.y) = (at.x, at.y);
    (monster.fh, monster.stance) = (at.fh.unwrap_or(monster.fh), at.stance.unwrap_or(monster.stance));
}

/// Gives control to a character and returns the previous controller (0 if none). The server decides who
/// controls, so the previous controller need not agree.
pub fn control(monster: &mut Monster, character: CharacterId) -> Result<CharacterId> {
    if character == CharacterId::default() {
        return Err(Error::invalid("controller", "0, expected a character; to end the control, release it"));
    }
    living(monster)?;
    Ok(std::mem::replace(&mut monster.controller, character))
}

/// Ends a character's control; `false` if it was not the controller. A late release must not end the control
/// of a newer controller. Works on dead monsters too.
pub fn release_control(monster: &mut Monster, character: CharacterId) -> bool {
    let controls = monster.controller == character && character != CharacterId::default();
    if controls {
        monster.controller = CharacterId::default();
    }
    controls
}

#[cfg(test)]
mod tests {
    use super::super::fixture::monster;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn healing_stops_at_the_full_health_and_takes_none_away() {
        let mut hurt = monster(10);
        hurt.hp = 4;
        assert_eq!(heal(&mut hurt, 5), Ok(Healing { actual: 5, hp: 9 }));
        assert_eq!(heal(&mut hurt, u64::MAX), Ok(Healing { actual: 1, hp: 10 }));
        hurt.hp = 15;
        assert_eq!(heal(&mut hurt, 1), Ok(Healing { actual: 0, hp: 15 }));
    }

    #[test]
    fn a_corpse_does_nothing() {
        let mut corpse = monster(10);
        corpse.hp = 0;
        let (before, dead) = (corpse.clone(), Error::AlreadyDead { id: corpse.id });
        assert_eq!(heal(&mut corpse, 5), Err(dead.clone()));
        assert_eq!(use_mp(&mut corpse, 5), Err(dead.clone()));
        assert_eq!(walk(&mut corpse, Position { x: 3, ..Position::default() }), Err(dead.clone()));
        assert_eq!(control(&mut corpse, CharacterId(1)), Err(dead.clone()));
        let elsewhere = Field { map: 7, ..corpse.field() };
        assert_eq!(relocate(&mut corpse, elsewhere, Position::default()), Err(dead));
        assert_eq!(corpse, before);
    }

    #[test]
    fn control_is_released_by_who_has_it_only() {
        let mut monster = monster(10);
        assert_eq!(control(&mut monster, CharacterId(1)), Ok(CharacterId(0)));
        assert_eq!(control(&mut monster, CharacterId(2)), Ok(CharacterId(1)));
        assert!(!release_control(&mut monster, CharacterId(1)));
        assert_eq!(monster.controller, CharacterId(2));
        assert!(release_control(&mut monster, CharacterId(2)));
        assert!(!release_control(&mut monster, CharacterId(2)));
        assert!(!release_control(&mut monster, CharacterId(0)));
        let refused = control(&mut monster, CharacterId(0)).unwrap_err();
        assert!(matches!(refused, Error::Invalid { what: "controller", .. }), "{refused:?}");
    }

    #[test]
    fn control_stays_behind_in_the_former_field() {
        let mut monster = monster(10);
        control(&mut monster, CharacterId(1)).unwrap();
        let here = monster.field();
        assert_eq!(relocate(&mut monster, here, Position::default()), Ok(here));
        assert_eq!(monster.controller, CharacterId(1));
        let there = Field { channel: 9, ..here };
        let at = Position { x: -3, y: 4, fh: Some(5), stance: Some(6) };
        assert_eq!(relocate(&mut monster, there, at), Ok(here));
        assert_eq!((monster.field(), monster.controller), (there, CharacterId(0)));
        assert_eq!((monster.x, monster.y, monster.fh, monster.stance), (-3, 4, 5, 6));
        walk(&mut monster, Position { x: 7, y: 8, fh: None, stance: Some(9) }).unwrap();
        assert_eq!((monster.x, monster.y, monster.fh, monster.stance), (7, 8, 5, 9));
        relocate(&mut monster, here, Position::default()).unwrap();
        assert_eq!((monster.x, monster.y, monster.fh, monster.stance), (0, 0, 5, 9));
    }

    proptest! {
        #[test]
        fn health_and_mana_stay_within_their_bounds(
            full in 1u32..1_000,
            acts in prop::collection::vec((any::<bool>(), 1u64..400), 0..50),
        ) {
            let mut monster = monster(full);
            (monster.hp, monster.max_mp, monster.mp) = (1, full, full);
            for (heals, amount) in acts {
                let (hp, mp) = (monster.hp, monster.mp);
                if heals {
                    let healed = heal(&mut monster, amount).unwrap();
                    prop_assert_eq!(healed, Healing { actual: monster.hp - hp, hp: monster.hp });
                } else {
                    let used = use_mp(&mut monster, amount).unwrap();
                    prop_assert_eq!(used, ManaUse { actual: mp - monster.mp, mp: monster.mp });
                    prop_assert!(u64::from(used.actual) == amount.min(u64::from(mp)));
                }
                prop_assert!(monster.hp <= full && monster.mp <= full);
            }
        }
    }
}
