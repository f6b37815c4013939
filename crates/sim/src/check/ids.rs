//! Unique ids: each id that was ever counted out belongs to one living monster or stands in the free list, once.

use super::state::StoreState;
use std::collections::{HashMap, HashSet};

/// Where monsters are counted from.
const FIRST: i64 = 1_000_000_000;

pub(super) fn violations(state: &StoreState) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used: HashMap<u16, HashSet<u32>> = HashMap::new();
    for (tenant, monster) in &state.monsters {
        used.entry(*tenant).or_default().insert(monster.id.0);
    }
    let living = used.clone();
    for (tenant, id) in &state.free {
        let lives = living.get(tenant).is_some_and(|ids| ids.contains(id));
        let first = used.entry(*tenant).or_default().insert(*id);
        if lives {
            wrong.push(format!("id {id} of tenant {tenant} is free, and its monster lives"));
        } else if !first {
            wrong.push(format!("id {id} of tenant {tenant} was released twice"));
        }
    }
    for (tenant, last) in &state.counted {
        let used = used.remove(tenant).unwrap_or_default();
        for id in (FIRST..=*last).filter(|id| !used.contains(&(*id as u32))) {
            wrong.push(format!("id {id} of tenant {tenant} is lost: no monster has it, and it is not free"));
        }
        for id in used.iter().filter(|id| i64::from(**id) > *last) {
            wrong.push(format!(
                "id {id} of tenant {tenant} is in use, and only those up to {last} were counted out"
            ));
        }
    }
    for (tenant, ids) in used {
        wrong.push(format!("tenant {tenant} has {} ids, and no counter", ids.len()));
    }
    wrong.sort();
    wrong
}
