//! The auxiliary indexes under `ember:` agree with the documents' keys after a sweep.

use super::state::StoreState;
use emberkeep::games::monsters::{Monster, rules};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;

pub(super) fn violations(state: &StoreState) -> Vec<String> {
    let mut wrong = Vec::new();
    let living: HashMap<(u16, u32), &Monster> =
        state.monsters.iter().map(|(tenant, monster)| ((*tenant, monster.id.0), monster)).collect();
    effects(state, &mut wrong);
    timers(state, &living, &mut wrong);
    skills(state, &living, &mut wrong);
    spots(state, &mut wrong);
    for (tenant, id) in &state.auxiliary.resting {
        wrong.push(format!("id {id} of tenant {tenant} rests, and ids are used again at once"));
    }
    wrong
}

/// The index of effects says of each monster that bears some when they are due.
fn effects(state: &StoreState, wrong: &mut Vec<String>) {
    let bearers = state
        .monsters
        .iter()
        .filter_map(|(tenant, monster)| rules::next_due_ms(monster).map(|at| ((*tenant, monster.id.0), at)));
    let entries = state.auxiliary.effects.iter().map(|(tenant, id, at)| ((*tenant, *id), *at));
    same("effects are due (tenant, monster)", bearers.collect(), entries.collect(), wrong);
}

/// Every timer is a living monster's, says where that one is, and the index says when it drops.
fn timers(state: &StoreState, living: &HashMap<(u16, u32), &Monster>, wrong: &mut Vec<String>) {
    for (tenant, id, timer) in &state.timers {
        match living.get(&(*tenant, *id)) {
            Some(monster) if !monster.is_alive() => {
                wrong.push(format!("monster {id} of tenant {tenant} is dead and has a drop timer"));
            }
            Some(monster) if monster.field() != timer.field.field() => {
                wrong.push(format!(
                    "the drop timer of monster {id} of tenant {tenant} stayed in another field"
                ));
            }
            Some(_) => {}
            None => wrong
                .push(format!("there is a drop timer of monster {id} of tenant {tenant}, and no monster")),
        }
    }
    let timers = state.timers.iter().map(|(tenant, id, timer)| ((*tenant, *id), rules::next_drop_ms(timer)));
    let entries = state.auxiliary.drops.iter().map(|(tenant, id, at)| ((*tenant, *id), *at));
    same("drops are due (tenant, monster)", timers.collect(), entries.collect(), wrong);
}

/// Skills cool down of living monsters only, and their monster knows it.
fn skills(state: &StoreState, living: &HashMap<(u16, u32), &Monster>, wrong: &mut Vec<String>) {
    let markers = state.cooling.iter().copied();
    let known: BTreeMap<(u16, u32, u16), i64> = state
        .auxiliary
        .cooling
        .iter()
        .map(|(tenant, id, skill, end)| ((*tenant, *id, *skill), *end))
        .collect();
    cooling("skills cool down (tenant, monster, skill)", markers.collect(), &known, state.now_ms, wrong);
    let all = state.cooling.iter().map(|(tenant, id, _)| (*tenant, *id));
    let all: BTreeSet<_> = all.chain(known.keys().map(|(tenant, id, _)| (*tenant, *id))).collect();
    for (tenant, id) in all.into_iter().filter(|name| !living.contains_key(name)) {
        wrong.push(format!("skills of monster {id} of tenant {tenant} cool down, and it does not live"));
    }
}

/// What is remembered of where reactors stand, and which spots cool down.
fn spots(state: &StoreState, wrong: &mut Vec<String>) {
    let stand = state
        .reactors
        .iter()
        .map(|(tenant, reactor)| ((*tenant, reactor.field(), reactor.id.0), reactor.spot()));
    let entries =
        state.auxiliary.spots.iter().map(|(tenant, field, id, spot)| ((*tenant, *field, *id), *spot));
    same("reactors stand (tenant, field, reactor)", stand.collect(), entries.collect(), wrong);
    let markers = state.cooling_spots.iter().copied();
    let known = state.auxiliary.cooling_spots.iter();
    let known: BTreeMap<_, _> =
        known.map(|(tenant, field, spot, end)| ((*tenant, *field, *spot), *end)).collect();
    cooling("spots cool down (tenant, field, spot)", markers.collect(), &known, state.now_ms, wrong);
}

/// Two maps that must be equal.
fn same<K: Debug + Ord, V: Debug + PartialEq>(
    what: &str,
    records: BTreeMap<K, V>,
    entries: BTreeMap<K, V>,
    wrong: &mut Vec<String>,
) {
    let keys: BTreeSet<&K> = records.keys().chain(entries.keys()).collect();
    for key in keys {
        let (record, entry) = (records.get(key), entries.get(key));
        if record != entry {
            wrong.push(format!("{what} {key:?}: by the records {record:?}, by the index {entry:?}"));
        }
    }
}

/// Every marker is known to the index, and what the index knows without a marker has ended.
fn cooling<K: Debug + Ord + std::hash::Hash>(
    what: &str,
    markers: HashSet<K>,
    known: &BTreeMap<K, i64>,
    now_ms: i64,
    wrong: &mut Vec<String>,
) {
    for marker in markers.iter().filter(|marker| !known.contains_key(marker)) {
        wrong.push(format!("{what} {marker:?}: there is a marker, and the index does not know it"));
    }
    for (name, end) in known.iter().filter(|(name, end)| **end > now_ms && !markers.contains(name)) {
        let left = end - now_ms;
        wrong.push(format!("{what} {name:?}: the index says for {left} ms, and there is no marker"));
    }
}
