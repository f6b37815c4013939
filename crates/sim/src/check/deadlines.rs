//! No key without its TTL policy: each belongs to a declared family, and ends when, and only if, that says so.

use super::state::{KeyState, StoreState};
use crate::actions::SKILL_COOLDOWN_MAX;
use crate::background::SPOT_COOLDOWN_MAX;
use emberkeep::games::monsters::MONSTER_COOLDOWN;
use emberkeep::games::reactors::REACTOR_COOLDOWN;
use emberkeep::schema::{Family, Ttl};

pub(super) fn violations(state: &StoreState) -> Vec<String> {
    let undeclared = state.undeclared.iter().map(|key| format!("{key} belongs to no declared family"));
    let mut wrong: Vec<String> = undeclared.collect();
    wrong.extend(state.corrupt.iter().map(|error| format!("unreadable: {error}")));
    wrong.extend(state.keys.iter().filter_map(|key| problem(key, state.now_ms)));
    wrong
}

/// What is wrong with a key's end.
fn problem(key: &KeyState, now_ms: i64) -> Option<String> {
    let (text, ends) = (&key.text, key.deadline_ms >= 0);
    let longest_ms = match longest_ms(key) {
        None if ends => return Some(format!("{text} has an end, and its family is persistent")),
        None => return None,
        Some(_) if !ends => return Some(format!("{text} never ends, and its family does not say so")),
        Some(longest_ms) => longest_ms,
    };
    let left = key.deadline_ms - now_ms;
    (left > longest_ms).then(|| format!("{text} ends in {left} ms, and at most {longest_ms} were to be"))
}

/// How long a key may live from now on; `None` = it does not end. What the engine writes for itself may live for as long
/// as it likes, but not for ever.
fn longest_ms(key: &KeyState) -> Option<i64> {
    let Some(family) = key.family else { return Some(i64::MAX) };
    match family.ttl {
        Ttl::Persistent => None,
        Ttl::Fixed { ms } | Ttl::Refresh { ms } => Some(ms),
        Ttl::Given => Some(given_ms_max(family.name)),
    }
}

/// The longest life that the game ever gives to a key of a family whose callers give it.
fn given_ms_max(family: &str) -> i64 {
    let given = [
        (MONSTER_COOLDOWN::DECLARATION.name, SKILL_COOLDOWN_MAX),
        (REACTOR_COOLDOWN::DECLARATION.name, SPOT_COOLDOWN_MAX),
    ];
    let known = given.iter().find(|(name, _)| *name == family);
    known.map_or(0, |(_, longest)| longest.as_millis() as i64)
}
