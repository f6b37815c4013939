//! What comes due: ticks of effects and drops. Each process asks; none may get what another one got.

use super::readable;
use crate::actor::Actor;
use crate::stats::Count;
use std::time::Duration;

/// Pause between two looks at the effects, of all processes together.
const EFFECTS_PAUSE: Duration = Duration::from_millis(20);
/// Pause between two looks at the drop timers, of all processes together.
const DROPS_PAUSE: Duration = Duration::from_millis(25);
/// Monsters that one look deals with.
const LOOKED_AT_MAX: usize = 256;

/// Runs effects whose time has come.
pub(super) async fn effects(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    while world.rest(EFFECTS_PAUSE * world.plan.processes).await {
        for (number, tenant) in world.plan.tenants() {
            let outcome = world.monsters.run_due_effects(tenant, LOOKED_AT_MAX).await;
            let Some(due) = actor.tolerate(outcome)? else { continue };
            readable(actor, &due.corrupt);
            for run in due.done {
                let ticks = actor.ledger.effects_ran(number, &run);
                actor.count(Count::Ticks, ticks);
                if run.hp == 0 {
                    world.report_violation(format!("damage over time killed monster {}", run.id));
                }
            }
            actor.stopped(due.stopped)?;
        }
    }
    Ok(())
}

/// Takes drops whose time has come.
pub(super) async fn drops(actor: &mut Actor) -> anyhow::Result<()> {
    let world = actor.world.clone();
    while world.rest(DROPS_PAUSE * world.plan.processes).await {
        for (number, tenant) in world.plan.tenants() {
            let outcome = world.monsters.due_drops(tenant, LOOKED_AT_MAX).await;
            let Some(due) = actor.tolerate(outcome)? else { continue };
            readable(actor, &due.corrupt);
            for drop in due.done {
                actor.ledger.dropped(number, &drop);
                actor.count(Count::Drops, 1);
            }
            actor.stopped(due.stopped)?;
        }
    }
    Ok(())
}
