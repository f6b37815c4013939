//! The judgement: what the players counted against what the store holds.

use super::arena::Arena;
use super::tally::{Damage, Ledger};
use emberkeep::games::monsters::{MONSTER, MONSTER_ID_FREE, MONSTER_MAP, Monster, field_key};
use emberkeep::games::world::Tenant;
use emberkeep::hot::Result;
use emberkeep::schema::{Family, Key};
use std::collections::{HashMap, HashSet};

/// Keys that one read asks for.
const PAGE: usize = 500;

/// What the store holds of the arena's tenant.
#[derive(Default)]
pub(super) struct Seen {
    records: Vec<Monster>,
    /// Entries of all fields' indexes, with the index.
    indexed: Vec<(u32, Key<MONSTER_MAP>)>,
    free: Vec<u32>,
}

impl Seen {
    /// Reads everything, found by scanning: also what should not be there.
    pub(super) async fn read(arena: &Arena) -> Result<Seen> {
        let mut seen = Seen::default();
        for keys in keys_of::<MONSTER>(arena).await?.chunks(PAGE) {
            seen.records.extend(arena.scope.get_many(keys).await?.into_iter().flatten());
        }
        for index in keys_of::<MONSTER_MAP>(arena).await? {
            let key = index.clone();
            let members = arena.scope.transact(move |tx| tx.smembers(&key)).await?;
            seen.indexed.extend(members.into_iter().map(|id| (id.0, index.clone())));
        }
        loop {
            let from = seen.free.len() as i64;
            let to = from + PAGE as i64 - 1;
            let page = arena.scope.transact(move |tx| tx.lrange(&MONSTER_ID_FREE.key(), from, to)).await?;
            if page.is_empty() {
                return Ok(seen);
            }
            seen.free.extend(page.into_iter().map(|id| id.0));
        }
    }
}

/// All keys of a family that belong to the arena.
async fn keys_of<F: Family<Partition = Tenant>>(arena: &Arena) -> Result<Vec<Key<F>>> {
    let (mut keys, mut from) = (HashSet::new(), None);
    loop {
        let page = arena.scope.store().scan::<F>(from, PAGE).await?;
        let ours = page.keys.into_iter().filter(|(tenant, _)| *tenant == Some(arena.tenant));
        keys.extend(ours.map(|(_, key)| key));
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(keys.into_iter().collect()),
        }
    }
}

/// Everything that is wrong, in words.
pub(super) fn violations(ledger: &Ledger, expected: &HashSet<u32>, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    sums(ledger, seen, &mut wrong);
    places(expected, seen, &mut wrong);
    index(seen, &mut wrong);
    free_list(seen, &mut wrong);
    wrong
}

/// What was struck is what the dead and the living remember, for each monster and character.
fn sums(ledger: &Ledger, seen: &Seen, wrong: &mut Vec<String>) {
    let mut remembered: Damage = ledger.buried.clone();
    for monster in &seen.records {
        let sum: u64 = monster.damage.iter().map(|entry| entry.damage).sum();
        let lost = u64::from(monster.max_hp).saturating_sub(u64::from(monster.hp));
        if sum != lost {
            wrong
                .push(format!("monster {}: its entries sum to {sum}, and it lost {lost} health", monster.id));
        }
        for entry in &monster.damage {
            *remembered.entry((monster.id.0, entry.character.0)).or_default() += entry.damage;
        }
    }
    let all: HashSet<&(u32, u32)> = ledger.struck.keys().chain(remembered.keys()).collect();
    for who in all {
        let of = |damage: &Damage| damage.get(who).copied().unwrap_or(0);
        let (counted, stored) = (of(&ledger.struck), of(&remembered));
        if counted != stored {
            let (monster, player) = who;
            wrong.push(format!(
                "monster {monster}: player {player} counted {counted} damage, stored are {stored}"
            ));
        }
    }
}

/// Exactly the monsters that should live do.
fn places(expected: &HashSet<u32>, seen: &Seen, wrong: &mut Vec<String>) {
    let living: HashSet<u32> = seen.records.iter().map(|monster| monster.id.0).collect();
    for id in expected.difference(&living) {
        wrong.push(format!("monster {id} should be there and has no record"));
    }
    for id in living.difference(expected) {
        wrong.push(format!("monster {id} has a record and should be gone"));
    }
    for monster in seen.records.iter().filter(|monster| !monster.is_alive()) {
        wrong.push(format!("monster {} is dead and was not removed by who killed it", monster.id));
    }
}

/// Every record is in the index of its field and in no other; no index entry is without a record.
fn index(seen: &Seen, wrong: &mut Vec<String>) {
    let mut homes: HashMap<u32, Key<MONSTER_MAP>> =
        seen.records.iter().map(|monster| (monster.id.0, field_key(&monster.field()))).collect();
    let records: HashSet<u32> = homes.keys().copied().collect();
    for (id, index) in &seen.indexed {
        match homes.get(id) {
            Some(home) if home == index => {
                homes.remove(id);
            }
            _ if records.contains(id) => {
                wrong.push(format!("monster {id} is listed in a field it is not in: {index:?}"))
            }
            _ => wrong.push(format!("ghost: {index:?} lists {id}, which has no record")),
        }
    }
    for (id, home) in homes {
        wrong.push(format!("orphan: monster {id} is not listed in {home:?}"));
    }
}

/// The free list holds each id once, and none that lives.
fn free_list(seen: &Seen, wrong: &mut Vec<String>) {
    let living: HashSet<u32> = seen.records.iter().map(|monster| monster.id.0).collect();
    let mut once = HashSet::new();
    for id in &seen.free {
        if living.contains(id) {
            wrong.push(format!("id {id} is free and lives"));
        }
        if !once.insert(id) {
            wrong.push(format!("id {id} was released twice"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep::games::monsters::{DamageEntry, MonsterId};
    use emberkeep::games::world::CharacterId;
    use emberkeep::schema::{Array, Codec, Extra, Json};

    /// Monster 7 in map 3, which player 1 hit for 4 of 10.
    fn monster() -> Monster {
        let json = concat!(
            r#"{"uniqueId":7,"worldId":0,"channelId":1,"mapId":3,"monsterId":1,"maxHp":10,"hp":6,"#,
            r#""instance":"00000000-0000-0000-0000-000000000000"}"#
        );
        let mut monster = Json::<Monster>::decode(json.as_bytes()).unwrap();
        let extra = Extra::default();
        monster.damage = Array(vec![DamageEntry { character: CharacterId(1), damage: 4, extra }]);
        monster
    }

    fn sound() -> (Ledger, HashSet<u32>, Seen) {
        let ledger = Ledger {
            struck: HashMap::from([((7, 1), 14), ((7, 2), 9)]),
            buried: HashMap::from([((7, 1), 10), ((7, 2), 9)]),
        };
        let seen = Seen {
            indexed: vec![(7, field_key(&monster().field()))],
            records: vec![monster()],
            free: vec![8, 9],
        };
        (ledger, HashSet::from([7]), seen)
    }

    #[test]
    fn a_sound_game_has_no_violation() {
        let (ledger, expected, seen) = sound();
        assert_eq!(violations(&ledger, &expected, &seen), [""; 0]);
    }

    /// What is told after a change to a sound game.
    fn told(change: impl FnOnce(&mut Ledger, &mut HashSet<u32>, &mut Seen)) -> Vec<String> {
        let (mut ledger, mut expected, mut seen) = sound();
        change(&mut ledger, &mut expected, &mut seen);
        violations(&ledger, &expected, &seen)
    }

    #[test]
    fn a_lost_hit_is_told() {
        let wrong = told(|ledger, _, _| *ledger.struck.entry((7, 2)).or_default() += 1);
        assert_eq!(wrong, ["monster 7: player 2 counted 10 damage, stored are 9"]);
        let wrong = told(|_, _, seen| seen.records[0].hp = 5);
        assert_eq!(wrong, ["monster 7: its entries sum to 4, and it lost 5 health"]);
    }

    #[test]
    fn a_hit_that_counted_twice_is_told() {
        let wrong = told(|_, _, seen| {
            let entry = seen.records[0].damage[0].clone();
            seen.records[0].damage.push(entry);
            seen.records[0].hp = 2;
        });
        assert_eq!(wrong, ["monster 7: player 1 counted 14 damage, stored are 18"]);
    }

    #[test]
    fn ghosts_and_orphans_are_told() {
        let wrong = told(|_, _, seen| seen.indexed.clear());
        assert!(wrong.len() == 1 && wrong[0].starts_with("orphan: monster 7"), "{wrong:?}");
        let wrong = told(|_, _, seen| seen.indexed.push((8, seen.indexed[0].1.clone())));
        assert!(wrong.len() == 1 && wrong[0].starts_with("ghost"), "{wrong:?}");
        let wrong = told(|_, _, seen| {
            let elsewhere = MONSTER_MAP.key(0, 2, 3, monster().instance);
            seen.indexed.push((7, elsewhere));
        });
        assert!(wrong.len() == 1 && wrong[0].contains("a field it is not in"), "{wrong:?}");
    }

    #[test]
    fn a_monster_too_few_or_too_many_is_told() {
        let wrong = told(|_, expected, _| {
            expected.insert(12);
        });
        assert_eq!(wrong, ["monster 12 should be there and has no record"]);
        let wrong = told(|_, expected, _| expected.clear());
        assert_eq!(wrong, ["monster 7 has a record and should be gone"]);
    }

    #[test]
    fn ids_that_are_free_twice_or_while_living_are_told() {
        let wrong = told(|_, _, seen| seen.free = vec![8, MonsterId(7).0, 8]);
        assert_eq!(wrong, ["id 7 is free and lives", "id 8 was released twice"]);
    }
}
