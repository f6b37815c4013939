//! Hits: the damage they do, the damage entries, and the damage leader.

use crate::monsters::error::{Error, Result};
use crate::monsters::limits::{DAMAGE_ENTRIES_KEPT, DAMAGE_ENTRIES_MAX};
use crate::monsters::model::{DamageEntries, DamageEntry, Monster};
use crate::world::CharacterId;
use std::collections::HashMap;

/// The result of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Health that was taken: never more than was left.
    pub actual: u32,
    /// Health that is left; 0 is dead.
    pub hp: u32,
    /// Whether this hit killed. Exactly one hit on a monster does.
    pub killed: bool,
}

/// Takes `min(hp, amount)` health and adds a damage entry. Fails on a dead monster.
pub fn strike(monster: &mut Monster, character: CharacterId, amount: u64) -> Result<Hit> {
    if monster.hp == 0 {
        return Err(Error::AlreadyDead { id: monster.id });
    }
    let actual = u32::try_from(amount).unwrap_or(u32::MAX).min(monster.hp);
    monster.hp -= actual;
    remember(monster, character, actual);
    Ok(Hit { actual, hp: monster.hp, killed: monster.hp == 0 })
}

/// Takes health like poison: never the last point. Damage of an effect without a caster is credited to
/// [`CharacterId`] 0, so that the entries always sum up to the lost health.
pub fn drain(monster: &mut Monster, character: CharacterId, amount: u64) -> Result<Hit> {
    if monster.hp == 0 {
        return Err(Error::AlreadyDead { id: monster.id });
    }
    let actual = u32::try_from(amount).unwrap_or(u32::MAX).min(monster.hp - 1);
    if actual > 0 {
        monster.hp -= actual;
        remember(monster, character, actual);
    }
    Ok(Hit { actual, hp: monster.hp, killed: false })
}

/// Appends an entry, and merges the oldest entries beyond the limit.
fn remember(monster: &mut Monster, character: CharacterId, damage: u32) {
    monster.damage.push(DamageEntry::new(character, damage));
    let entries = monster.damage.len();
    if entries <= DAMAGE_ENTRIES_MAX {
        return;
    }
    merge_oldest(&mut monster.damage, entries - DAMAGE_ENTRIES_KEPT);
    // Each of the oldest entries belongs to another character, so the later entries must be merged too.
    if monster.damage.len() > DAMAGE_ENTRIES_MAX {
        merge_oldest(&mut monster.damage, entries);
    }
}

/// Merges the first `count` entries into one per character, in the order of first appearance. Totals stay
/// exact: a sum beyond 32 bits becomes several consecutive entries. If there are more characters than the
/// limit, each keeps one entry.
pub fn merge_oldest(entries: &mut Vec<DamageEntry>, count: usize) {
    let kept = entries.split_off(count.min(entries.len()));
    let mut place: HashMap<CharacterId, usize> = HashMap::new();
    let mut sums: Vec<(DamageEntry, u64)> = Vec::new();
    for entry in entries.drain(..) {
        let damage = u64::from(entry.damage);
        let at = *place.entry(entry.character).or_insert(sums.len());
        match sums.get_mut(at) {
            Some((_, sum)) => *sum += damage,
            None => sums.push((entry, damage)),
        }
    }
    for (first, sum) in sums {
        DamageEntries::add(entries, first.character, sum, first.extra);
    }
    entries.extend(kept);
}

/// Total damage by character, in the order of their first hits.
pub fn totals(entries: &[DamageEntry]) -> Vec<(CharacterId, u64)> {
    let mut place: HashMap<CharacterId, usize> = HashMap::new();
    let mut totals: Vec<(CharacterId, u64)> = Vec::new();
    for entry in entries {
        let at = *place.entry(entry.character).or_insert(totals.len());
        match totals.get_mut(at) {
            Some((_, total)) => *total += u64::from(entry.damage),
            None => totals.push((entry.character, u64::from(entry.damage))),
        }
    }
    totals
}

/// The character with the most total damage; of equals, the one that hit first. Character 0 never leads.
pub fn damage_leader(entries: &[DamageEntry]) -> Option<(CharacterId, u64)> {
    let most = |best: (CharacterId, u64), next: (CharacterId, u64)| if next.1 > best.1 { next } else { best };
    totals(entries).into_iter().filter(|(who, _)| *who != CharacterId::default()).reduce(most)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::monster;
    use super::*;
    use proptest::prelude::*;

    fn entry(character: u32, damage: u32) -> DamageEntry {
        DamageEntry::new(CharacterId(character), damage)
    }

    fn sum(monster: &Monster) -> u64 {
        monster.damage.iter().map(|entry| u64::from(entry.damage)).sum()
    }

    #[test]
    fn a_hit_takes_no_more_than_what_is_left_and_the_last_one_kills() {
        let mut monster = monster(10);
        let first = strike(&mut monster, CharacterId(1), 7);
        assert_eq!(first, Ok(Hit { actual: 7, hp: 3, killed: false }));
        let last = strike(&mut monster, CharacterId(2), u64::MAX);
        assert_eq!(last, Ok(Hit { actual: 3, hp: 0, killed: true }));
        assert_eq!(*monster.damage, [entry(1, 7), entry(2, 3)]);
    }

    #[test]
    fn a_corpse_is_not_changed_by_a_hit() {
        let mut monster = monster(1);
        strike(&mut monster, CharacterId(1), 1).unwrap();
        let corpse = monster.clone();
        assert_eq!(strike(&mut monster, CharacterId(2), 5), Err(Error::AlreadyDead { id: corpse.id }));
        assert_eq!(drain(&mut monster, CharacterId(2), 5), Err(Error::AlreadyDead { id: corpse.id }));
        assert_eq!(monster, corpse);
    }

    #[test]
    fn damage_over_time_leaves_the_last_point_of_health() {
        let mut monster = monster(10);
        assert_eq!(drain(&mut monster, CharacterId(1), 4), Ok(Hit { actual: 4, hp: 6, killed: false }));
        assert_eq!(
            drain(&mut monster, CharacterId(1), u64::MAX),
            Ok(Hit { actual: 5, hp: 1, killed: false })
        );
        let before = monster.clone();
        assert_eq!(drain(&mut monster, CharacterId(2), 9), Ok(Hit { actual: 0, hp: 1, killed: false }));
        assert_eq!((&monster, sum(&monster)), (&before, 9));
    }

    #[test]
    fn the_leader_is_who_did_most_in_sum_not_in_one_hit() {
        let entries = [entry(1, 90), entry(2, 60), entry(3, 100), entry(2, 50)];
        assert_eq!(damage_leader(&entries), Some((CharacterId(2), 110)));
        assert_eq!(damage_leader(&[entry(5, 10), entry(4, 10)]), Some((CharacterId(5), 10)));
        assert_eq!(damage_leader(&[entry(0, 99), entry(4, 1)]), Some((CharacterId(4), 1)));
        assert_eq!(damage_leader(&[entry(0, 99)]), None);
        assert_eq!(damage_leader(&[]), None);
    }

    #[test]
    fn the_entries_stay_bounded_and_the_newest_stay_single() {
        let mut monster = monster(1_000_000);
        for hit in 0..5_000_u32 {
            strike(&mut monster, CharacterId(hit % 7), 3).unwrap();
            assert!(monster.damage.len() <= DAMAGE_ENTRIES_MAX);
        }
        assert_eq!(sum(&monster), 15_000);
        assert_eq!(monster.damage.last().unwrap(), &entry(4_999 % 7, 3));
    }

    #[test]
    fn more_characters_than_the_bound_lose_no_total() {
        let mut monster = monster(1_000_000);
        for hit in 0..2_000_u32 {
            strike(&mut monster, CharacterId(hit % 600), 2).unwrap();
        }
        assert_eq!(monster.damage.len(), 600);
        assert_eq!(sum(&monster), 4_000);
    }

    #[test]
    fn a_sum_above_32_bits_becomes_several_entries_of_one_character() {
        let mut entries = vec![entry(1, u32::MAX), entry(2, 5), entry(1, u32::MAX), entry(1, 3), entry(3, 9)];
        merge_oldest(&mut entries, 4);
        assert_eq!(entries, [entry(1, u32::MAX), entry(1, u32::MAX), entry(1, 3), entry(2, 5), entry(3, 9)]);
        assert_eq!(damage_leader(&entries), Some((CharacterId(1), 2 * u64::from(u32::MAX) + 3)));
        merge_oldest(&mut entries, 5);
        assert_eq!(entries.len(), 5, "what is split already stays as it is");
    }

    proptest! {
        #[test]
        fn merging_keeps_every_total(hits in prop::collection::vec((0u32..20, 1u32..=u32::MAX), 0..300), count in 0usize..400) {
            let before: Vec<DamageEntry> = hits.iter().map(|(who, damage)| entry(*who, *damage)).collect();
            let mut after = before.clone();
            merge_oldest(&mut after, count);
            let (mut before, mut after) = (totals(&before), totals(&after));
            before.sort();
            after.sort();
            prop_assert_eq!(before, after);
        }

        #[test]
        fn what_was_taken_is_what_is_remembered(
            max_hp in 1u32..2_000,
            hits in prop::collection::vec((0u32..5, 1u64..50, any::<bool>()), 0..900),
        ) {
            let mut monster = monster(max_hp);
            let mut kills = 0;
            for (who, amount, over_time) in hits {
                let rule = if over_time { drain } else { strike };
                kills += u32::from(rule(&mut monster, CharacterId(who), amount).is_ok_and(|hit| hit.killed));
                prop_assert!(!over_time || monster.hp > 0 || kills == 1);
            }
            prop_assert_eq!(sum(&monster), u64::from(max_hp - monster.hp));
            prop_assert_eq!(kills, u32::from(monster.hp == 0));
        }
    }
}
