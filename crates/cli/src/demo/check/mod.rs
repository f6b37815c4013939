//! The judgement: what callers were told against what the store holds.
//!
//! One full scan finds what is there, also what should not be. Then a sweep goes over everything: it must find nothing to
//! mend in the indexes, and after it, in a second scan, what stands under `ember:` must agree with the rest.

mod accounts;
mod census;
mod deadlines;
mod drops;
mod hints;
mod ids;
mod indexes;
mod reader;
mod seen;
#[cfg(test)]
mod tests;

use super::nature::sweep_all;
use super::play::Played;
use super::tally::Count;
use super::view::grouped;
use super::world::World;
use accounts::Sums;
use anyhow::Context;
use seen::Seen;

/// What was found.
#[derive(Default)]
pub(super) struct Verdict {
    /// What was checked, in words.
    pub(super) checked: Vec<String>,
    /// What is wrong.
    pub(super) wrong: Vec<String>,
}

/// Checks everything that the game promises.
pub(super) async fn judge(world: &World, played: &Played) -> anyhow::Result<Verdict> {
    let scanned =
        Seen::read(&world.store, &world.plan).await.context("cannot read back what the game left")?;
    let mended = sweep_all(world).await.context("cannot sweep")?;
    let swept = Seen::read(&world.store, &world.plan).await.context("cannot read what the sweep left")?;

    let mut wrong = played.violations.clone();
    wrong.extend(indexes::violations(&scanned));
    if played.complete {
        wrong.extend(accounts::violations(&world.plan, &played.ledger, &scanned));
        wrong.extend(drops::violations(&played.ledger, &scanned));
    }
    wrong.extend(ids::violations(&scanned));
    wrong.extend(deadlines::violations(&scanned));
    wrong.extend(mended_by_sweeps(mended + played.orphans, &scanned));
    wrong.extend(hints::violations(&swept));
    let mut checked = of_the_store(played, &scanned, &swept);
    checked.extend(if played.complete { of_the_books(played) } else { vec![] });
    Ok(Verdict { checked, wrong })
}

/// The keys of the game's tenants that are in the store: those of declared families, by name of the family and key, and
/// how many the engine keeps for itself.
pub(super) async fn keys_left(world: &World) -> anyhow::Result<(Vec<(&'static str, String)>, usize)> {
    let seen = Seen::read(&world.store, &world.plan).await.context("cannot look what is left")?;
    let (of_games, of_engine): (Vec<_>, Vec<_>) = seen.keys.into_iter().partition(|key| key.family.is_some());
    let named = of_games.into_iter().filter_map(|key| Some((key.family?.name, key.text)));
    Ok((named.chain(seen.undeclared.into_iter().map(|key| ("", key))).collect(), of_engine.len()))
}

/// What a sweep mends was wrong before. Where others use the store, it may have been theirs.
fn mended_by_sweeps(mended: usize, seen: &Seen) -> Option<String> {
    (mended > 0 && seen.alone)
        .then(|| format!("the sweeps mended {mended} entries of indexes: somebody left them wrong"))
}

/// What was checked of the store alone, with counts. All of it holds also when a process dies at any moment.
fn of_the_store(played: &Played, seen: &Seen, swept: &Seen) -> Vec<String> {
    let count = |number: usize| grouped(number as u64);
    let entries = seen.in_fields.len() + seen.reactors_in_fields.len() + seen.in_all.len();
    let ends = seen.keys.iter().filter(|key| key.deadline_ms >= 0).count();
    let hints = &swept.hints;
    let (due, cooling) =
        (hints.effects.len() + hints.drops.len(), hints.cooling.len() + hints.cooling_spots.len());
    // And the sweep that was made just now.
    let sweeps = grouped(played.totals.get(Count::Sweeps) + 1);
    let looks = grouped(played.totals.get(Count::Looks));
    let (monsters, reactors) = (count(seen.monsters.len()), count(seen.reactors.len()));
    vec![
        format!(
            "no ghosts, no orphans: {monsters} monsters, {reactors} reactors, {} index entries; {looks} looks during the \
             game, {sweeps} sweeps",
            count(entries)
        ),
        format!("unique ids: {monsters} living, {} free", count(seen.free.len())),
        format!("deadlines as declared: {} keys, {} of them end", count(seen.keys.len()), count(ends)),
        format!(
            "hints agree after a sweep: {} due, {} places of reactors, {} cooldowns",
            count(due),
            count(hints.spots.len()),
            count(cooling),
        ),
    ]
}

/// What was checked of what callers were told, with counts.
fn of_the_books(played: &Played) -> Vec<String> {
    let sums = Sums::of(&played.ledger);
    let of = |what| grouped(played.totals.get(what));
    vec![
        format!(
            "one winner: {} kills, {} removals, {} ticks of {} effects, {} drops, {} ends of reactors ({} triggered)",
            grouped(sums.kills),
            grouped(sums.removals),
            grouped(sums.ticks),
            of(Count::Effects),
            grouped(sums.drops),
            grouped(sums.reactors),
            of(Count::Triggers),
        ),
        format!(
            "exact sums: {} damage in {} accounts of monster and player, {} healed",
            grouped(sums.damage),
            grouped(sums.accounts),
            grouped(sums.healing),
        ),
    ]
}
