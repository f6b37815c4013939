//! The message of each kind of violation.

use super::*;
use emberkeep::games::reactors::REACTOR_COOLDOWN;

#[test]
fn a_sound_game_has_no_violation() {
    assert_eq!(violations(&sound()), [""; 0]);
}

#[test]
fn a_lost_hit_is_reported() {
    one(
        "damage to monster 1000000000 by player 2 of tenant 0: calls reported 6, records contain 5",
        |game| {
            game.ledger.report(0, Quantity::Damage(SEVEN, 2), 1);
        },
    );
    // A hit that took health and left no entry.
    one("healing of monster 1000000000 of tenant 0: calls reported 1, records contain 0", |game| {
        game.state.monsters[0].1.hp -= 1;
    });
}

#[test]
fn a_hit_that_counted_twice_is_reported() {
    one("by player 1 of tenant 0: calls reported 9, records contain 13", |game| {
        let monster = &mut game.state.monsters[0].1;
        monster.damage.push(entry(1, 4));
        monster.hp -= 4;
    });
}

#[test]
fn a_second_killer_is_reported() {
    one("deaths of monster 1000000000 of tenant 0: calls reported 2, records contain 1", |game| {
        game.ledger.report(0, Quantity::Deaths(SEVEN), 1);
    });
}

#[test]
fn a_second_remover_and_a_lost_monster_are_reported() {
    one("lives of monster 1000000000 of tenant 0: calls reported 2, records contain 3", |game| {
        let again = Monster {
            damage: DamageEntries::default(),
            effects: Array::default(),
            hp: 10,
            mp: 10,
            ..monster()
        };
        game.ledger.monster_over(0, &again);
    });
    among("calls reported 3, records contain 2", |game| game.ledger.report(0, Quantity::Lives(SEVEN), 1));
}

#[test]
fn a_tick_that_was_run_twice_or_never_is_reported() {
    one("ticks on monster 1000000000 of tenant 0: calls reported 3, records contain 2", |game| {
        game.ledger.report(0, Quantity::Ticks(SEVEN), 1);
    });
    among("calls reported 2, records contain 3", |game| {
        game.state.monsters[0].1.effects[0].last_tick_ms += 100;
    });
    one("effects on monster 1000000000 of tenant 0: calls reported 2, records contain 1", |game| {
        game.ledger.report(0, Quantity::Effects(SEVEN), 1);
    });
}

#[test]
fn mana_that_no_player_used_is_reported() {
    one("mana of monster 1000000000", |game| game.state.monsters[0].1.mp = 6);
}

#[test]
fn a_drop_that_was_handed_out_twice_is_reported() {
    one("two drops were handed out 0 ms apart, its period is 100ms", |game| {
        game.ledger.dropped(0, &DropDue { id: MonsterId(SEVEN), timer: timer() });
    });
    // The same drop, claimed by two transactions a moment apart.
    among("two drops were handed out 7 ms apart", |game| {
        let timer = DropTimer { last_drop_at_ms: NOW + 157, ..timer() };
        game.ledger.dropped(0, &DropDue { id: MonsterId(SEVEN), timer });
    });
}

#[test]
fn a_drop_that_no_player_received_is_reported() {
    among("calls reported Some(1700000000150)", |game| game.state.timers[0].2.last_drop_at_ms += 100);
    among("calls reported None", |game| game.state.timers[0].2.weapon_attack = 6);
    among("no call reported its registration", |game| {
        let timer = DropTimer { weapon_attack: 6, ..timer() };
        game.ledger.dropped(0, &DropDue { id: MonsterId(SEVEN), timer });
    });
}

#[test]
fn a_reactor_that_triggered_twice_or_vanished_is_reported() {
    let map = field().map;
    one(&format!("reactors at 3 of map {map} of tenant 0: calls reported 2, records contain 3"), |game| {
        game.ledger.reactor_over(0, &Reactor { state: 0, ..reactor() });
    });
    one("calls reported 3, records contain 2", |game| {
        game.ledger.report(0, Quantity::Reactors(map, 3), 1);
    });
    one(&format!("states of the reactors at 3 of map {map} of tenant 0: calls reported 4"), |game| {
        game.ledger.report(0, Quantity::States(map, 3), 1);
    });
}

#[test]
fn two_reactors_on_one_spot_are_reported() {
    among("reactors 1000000001 and 1000000002 of tenant 0 stand on one spot", |game| {
        let mut other = reactor();
        other.id.0 += 1;
        game.state.reactors.push((0, other));
    });
}

#[test]
fn stale_entries_are_reported() {
    one("stale entry: map 100000000 of tenant 0 lists monster 9, which has no record", |game| {
        game.state.in_fields.push((0, field(), 9));
    });
    one("lists reactor 9, which has no record", |game| game.state.reactors_in_fields.push((0, field(), 9)));
    one("stale entry: the index of all reactors lists 9", |game| game.state.in_all.push((None, 9)));
    one("stale entry: the index of all reactors of tenant 0 lists 9", |game| {
        game.state.in_all.push((Some(0), 9))
    });
    let others = violations_after(|game| {
        game.state.alone = false;
        game.state.in_all.push((None, 9));
    });
    assert_eq!(others, [""; 0], "it may belong to another tenant");
}

#[test]
fn orphans_are_reported() {
    one("orphan: monster 1000000000 of tenant 0 is not listed in its map 100000000", |game| {
        game.state.in_fields.clear();
    });
    one("orphan: reactor 1000000001 of tenant 0 is not listed in its map", |game| {
        game.state.reactors_in_fields.clear();
    });
    one("is not listed in the index of all", |game| game.state.in_all.clear());
    one("is listed in map 3, and it is not there", |game| {
        game.state.in_fields.push((0, Field { map: 3, ..field() }, SEVEN));
    });
}

#[test]
fn a_monster_too_few_a_corpse_and_one_too_many_are_reported() {
    one("1 monsters of tenant 0 are there, expected 2", |game| game.plan.monsters = 2);
    among("is dead, and who killed it did not remove it", |game| game.state.monsters[0].1.hp = 0);
}

#[test]
fn ids_that_are_free_twice_lost_or_not_counted_are_reported() {
    one("id 1000000000 of tenant 0 is free, and its monster lives", |game| game.state.free.push((0, SEVEN)));
    one("id 1000000001 of tenant 0 was released twice", |game| game.state.free.push((0, EIGHT)));
    one("id 1000000001 of tenant 0 is lost", |game| game.state.free.clear());
    one("only those up to 1000000001 were counted out", |game| game.state.free.push((0, EIGHT + 1)));
    one("tenant 0 has 2 ids, and no counter", |game| game.state.counted.clear());
    one("id 1000000009 of tenant 0 rests", |game| game.state.auxiliary.resting.push((0, 1_000_000_009)));
}

#[test]
fn keys_that_end_otherwise_than_declared_are_reported() {
    one("a monster has an end, and its family is persistent", |game| game.state.keys[0].deadline_ms = NOW);
    one("a marker never ends, and its family does not say so", |game| game.state.keys[1].deadline_ms = -1);
    one("a marker ends in 401 ms, and at most 400 were to be", |game| {
        game.state.keys[1].deadline_ms = NOW + 401
    });
    one("a spot ends in 801 ms, and at most 800 were to be", |game| {
        game.state.keys.push(key("a spot", Some(REACTOR_COOLDOWN::DECLARATION), NOW + 801));
    });
    one("an index of markers never ends", |game| game.state.keys[2].deadline_ms = -1);
    one("an index of markers ends in", |game| game.state.keys[2].deadline_ms = NOW + 8 * 86_400_000);
    one("a receipt never ends", |game| game.state.keys[3].deadline_ms = -1);
}

#[test]
fn undeclared_and_unreadable_keys_are_reported() {
    one("a:key belongs to no declared family", |game| game.state.undeclared.push("a:key".into()));
    one("unreadable: corrupt value at b:key", |game| {
        game.state.corrupt.push("corrupt value at b:key".into())
    });
}

#[test]
fn auxiliary_indexes_that_differ_from_the_records_are_reported() {
    one("effects are due (tenant, monster) (0, 1000000000): by the records Some(", |game| {
        game.state.auxiliary.effects[0].2 += 1;
    });
    one("effects are due (tenant, monster) (0, 9): by the records None", |game| {
        game.state.auxiliary.effects.push((0, 9, NOW));
    });
    one("by the index None", |game| game.state.auxiliary.effects.clear());
    one("drops are due (tenant, monster)", |game| game.state.auxiliary.drops.clear());
    one("drops are due (tenant, monster) (0, 9)", |game| game.state.auxiliary.drops.push((0, 9, NOW)));
    one("reactors stand (tenant, field, reactor)", |game| game.state.auxiliary.spots.clear());
    one("skills cool down (tenant, monster, skill) (0, 1000000000, 1): there is a marker", |game| {
        game.state.auxiliary.cooling.remove(0);
    });
    one("the index says for 50 ms, and there is no marker", |game| game.state.cooling.clear());
    one("spots cool down (tenant, field, spot)", |game| game.state.auxiliary.cooling_spots.clear());
    one("and there is no marker", |game| game.state.cooling_spots.clear());
}

#[test]
fn what_outlives_its_monster_is_reported() {
    among("there is a drop timer of monster 9 of tenant 0, and no monster", |game| {
        game.state.timers.push((0, 9, timer()));
    });
    among("is dead and has a drop timer", |game| game.state.monsters[0].1.hp = 0);
    one("stayed in another field", |game| game.state.timers[0].2.field.set(Field { map: 3, ..field() }));
    among("skills of monster 9 of tenant 0 cool down, and it does not live", |game| {
        game.state.cooling.push((0, 9, 1))
    });
    one("skills of monster 9 of tenant 0 cool down, and it does not live", |game| {
        game.state.auxiliary.cooling.push((0, 9, 1, NOW - 1));
    });
}

#[test]
fn what_a_sweep_repaired_is_a_violation_where_only_the_game_writes() {
    let mut state = sound().state;
    assert_eq!(super::super::repaired_by_sweeps(0, &state), None);
    assert!(super::super::repaired_by_sweeps(1, &state).is_some());
    state.alone = false;
    assert_eq!(super::super::repaired_by_sweeps(1, &state), None);
}
