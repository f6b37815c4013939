//! The checker: compares what calls reported with what the store holds.
//!
//! One full scan finds what is there, also what should not be. Then a sweep goes over everything: it must find nothing to
//! mend in the indexes, and after it, in a second scan, what stands under `ember:` must agree with the rest.

mod auxiliary_indexes;
mod balances;
mod deadlines;
mod drops;
mod ids;
mod indexes;
mod reader;
mod scan;
mod state;
#[cfg(test)]
mod tests;

use super::background::sweep_all;
use super::view::group_digits;
use super::world::World;
use crate::play::PlayResult;
use crate::stats::Count;
use anyhow::Context;
use balances::Sums;
use state::StoreState;

/// What the checks of all invariants found.
#[derive(Default)]
pub(super) struct Verdict {
    /// Describes what was checked.
    pub(super) checked: Vec<String>,
    /// Each violated invariant, with what was expected.
    pub(super) wrong: Vec<String>,
}

/// Checks everything that the game promises.
pub(super) async fn judge(world: &World, played: &PlayResult) -> anyhow::Result<Verdict> {
    let scanned =
        StoreState::read(&world.store, &world.plan).await.context("cannot read back what the game left")?;
    let repaired = sweep_all(world).await.context("cannot sweep")?;
    let swept =
        StoreState::read(&world.store, &world.plan).await.context("cannot read what the sweep left")?;

    let mut wrong = played.violations.clone();
    wrong.extend(indexes::violations(&scanned));
    if played.complete {
        wrong.extend(balances::violations(&world.plan, &played.ledger, &scanned));
        wrong.extend(drops::violations(&played.ledger, &scanned));
    }
    wrong.extend(ids::violations(&scanned));
    wrong.extend(deadlines::violations(&scanned));
    wrong.extend(repaired_by_sweeps(repaired + played.orphans, &scanned));
    wrong.extend(auxiliary_indexes::violations(&swept));
    let mut checked = of_the_store(played, &scanned, &swept);
    checked.extend(if played.complete { of_the_ledger(played) } else { vec![] });
    Ok(Verdict { checked, wrong })
}

/// The keys of the game's tenants that are in the store: those of declared families, by name of the family and key, and
/// how many the engine keeps for itself.
pub(super) async fn keys_left(world: &World) -> anyhow::Result<(Vec<(&'static str, String)>, usize)> {
    let state = StoreState::read(&world.store, &world.plan).await.context("cannot look what is left")?;
    let (of_games, of_engine): (Vec<_>, Vec<_>) =
        state.keys.into_iter().partition(|key| key.family.is_some());
    let named = of_games.into_iter().filter_map(|key| Some((key.family?.name, key.text)));
    Ok((named.chain(state.undeclared.into_iter().map(|key| ("", key))).collect(), of_engine.len()))
}

/// What a sweep mends was wrong before. Where others use the store, it may have been theirs.
fn repaired_by_sweeps(repaired: usize, state: &StoreState) -> Option<String> {
    (repaired > 0 && state.alone).then(|| format!("the sweeps repaired {repaired} wrong entries of indexes"))
}

/// What was checked of the store alone, with counts. All of it holds also when a process dies at any moment.
fn of_the_store(played: &PlayResult, state: &StoreState, swept: &StoreState) -> Vec<String> {
    let count = |number: usize| group_digits(number as u64);
    let entries = state.in_fields.len() + state.reactors_in_fields.len() + state.in_all.len();
    let ends = state.keys.iter().filter(|key| key.deadline_ms >= 0).count();
    let auxiliary = &swept.auxiliary;
    let (due, cooling) = (
        auxiliary.effects.len() + auxiliary.drops.len(),
        auxiliary.cooling.len() + auxiliary.cooling_spots.len(),
    );
    // And the sweep that was made just now.
    let sweeps = group_digits(played.totals.get(Count::Sweeps) + 1);
    let looks = group_digits(played.totals.get(Count::Looks));
    let (monsters, reactors) = (count(state.monsters.len()), count(state.reactors.len()));
    vec![
        format!(
            "no stale entries, no orphans: {monsters} monsters, {reactors} reactors, {} index entries; {looks} inspections during the \
             game, {sweeps} sweeps",
            count(entries)
        ),
        format!("unique ids: {monsters} living, {} free", count(state.free.len())),
        format!("deadlines as declared: {} keys, {} of them end", count(state.keys.len()), count(ends)),
        format!(
            "auxiliary indexes agree after a sweep: {} due, {} places of reactors, {} cooldowns",
            count(due),
            count(auxiliary.spots.len()),
            count(cooling),
        ),
    ]
}

/// What was checked with the ledger, with counts.
fn of_the_ledger(played: &PlayResult) -> Vec<String> {
    let sums = Sums::of(&played.ledger);
    let of = |what| group_digits(played.totals.get(what));
    vec![
        format!(
            "one winner: {} kills, {} removals, {} ticks of {} effects, {} drops, {} ends of reactors ({} triggered)",
            group_digits(sums.kills),
            group_digits(sums.removals),
            group_digits(sums.ticks),
            of(Count::Effects),
            group_digits(sums.drops),
            group_digits(sums.reactors),
            of(Count::Triggers),
        ),
        format!(
            "exact sums: {} damage in {} accounts of monster and player, {} healed",
            group_digits(sums.damage),
            group_digits(sums.accounts),
            group_digits(sums.healing),
        ),
    ]
}
