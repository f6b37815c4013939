//! No stale entries and no orphans: every record is in the indexes in which it belongs and in no other, and no entry is without its
//! record. And no two reactors stand on one spot.

use super::state::StoreState;
use emberkeep::games::reactors::Spot;
use emberkeep::games::world::Field;
use std::collections::{HashMap, HashSet};

/// A record by tenant and id.
type Name = (u16, u32);

pub(super) fn violations(state: &StoreState) -> Vec<String> {
    let mut wrong = Vec::new();
    let monsters = state.monsters.iter().map(|(tenant, monster)| ((*tenant, monster.id.0), monster.field()));
    fields("monster", monsters.collect(), &state.in_fields, &mut wrong);
    let reactors = state.reactors.iter().map(|(tenant, reactor)| ((*tenant, reactor.id.0), reactor.field()));
    fields("reactor", reactors.collect(), &state.reactors_in_fields, &mut wrong);
    all_reactors(state, &mut wrong);
    spots(state, &mut wrong);
    wrong.sort();
    wrong
}

/// The indexes of fields.
fn fields(what: &str, homes: HashMap<Name, Field>, entries: &[(u16, Field, u32)], wrong: &mut Vec<String>) {
    let mut listed: HashSet<Name> = HashSet::new();
    for (tenant, field, id) in entries {
        match homes.get(&(*tenant, *id)) {
            Some(home) if home == field => drop(listed.insert((*tenant, *id))),
            Some(_) => wrong.push(format!(
                "{what} {id} of tenant {tenant} is listed in map {}, and it is not there",
                field.map
            )),
            None => wrong.push(format!(
                "stale entry: map {} of tenant {tenant} lists {what} {id}, which has no record",
                field.map
            )),
        }
    }
    for ((tenant, id), home) in homes.iter().filter(|(name, _)| !listed.contains(name)) {
        wrong.push(format!("orphan: {what} {id} of tenant {tenant} is not listed in its map {}", home.map));
    }
}

/// The index of all reactors. Where it is one for all tenants, an entry without any record is certainly ours only if no
/// other tenant uses the store.
fn all_reactors(state: &StoreState, wrong: &mut Vec<String>) {
    let ours: HashSet<Name> =
        state.reactors.iter().map(|(tenant, reactor)| (*tenant, reactor.id.0)).collect();
    let ids: HashSet<u32> = ours.iter().map(|(_, id)| *id).collect();
    for (tenant, id) in &state.in_all {
        let (known, whose) = match tenant {
            Some(tenant) => (ours.contains(&(*tenant, *id)), format!(" of tenant {tenant}")),
            None => (ids.contains(id) || state.strange_reactors.contains(id) || !state.alone, String::new()),
        };
        if !known {
            wrong.push(format!(
                "stale entry: the index of all reactors{whose} lists {id}, which has no record"
            ));
        }
    }
    let listed: HashSet<(Option<u16>, u32)> = state.in_all.iter().copied().collect();
    for (tenant, id) in ours {
        if !listed.contains(&(Some(tenant), id)) && !listed.contains(&(None, id)) {
            wrong.push(format!("orphan: reactor {id} of tenant {tenant} is not listed in the index of all"));
        }
    }
}

fn spots(state: &StoreState, wrong: &mut Vec<String>) {
    let mut taken: HashMap<(u16, Field, Spot), u32> = HashMap::new();
    for (tenant, reactor) in &state.reactors {
        if let Some(other) = taken.insert((*tenant, reactor.field(), reactor.spot()), reactor.id.0) {
            let (one, other) = (reactor.id.0.min(other), reactor.id.0.max(other));
            wrong.push(format!("reactors {one} and {other} of tenant {tenant} stand on one spot"));
        }
    }
}
