//! Which chunks are kept: those of the last ticks, and those of ticks that a reader pinned.

use super::commit::TickRun;
use super::lease::check_holder;
use super::records::{TickHead, label, parse_label};
use super::world::World;
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{CHUNK_ENTITIES_MAX, ENTITIES_MAX, PIN_MAX, PINS_MAX, TICKS_KEPT};
use crate::galaxy::schema::{CHUNK, Galaxy, HEAD, KEPT, PINS, STAGED};
use crate::galaxy::service::TickEngine;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};
use std::time::Duration;

/// A tick whose chunks are kept until its pin is removed or ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedTick {
    /// The tick.
    pub head: TickHead,
    /// Who pinned it.
    pub holder: String,
    /// The last millisecond of the pin, since 1970.
    pub until_ms: i64,
}

impl PinnedTick {
    fn field(&self) -> String {
        field(&self.head, &self.holder)
    }
}

fn field(head: &TickHead, holder: &str) -> String {
    format!("{}-{holder}", head.label())
}

impl TickEngine {
    /// Pins the present tick for a holder, for at most an hour. The same holder can pin several ticks.
    pub fn pin<'a>(&'a self, holder: &'a str, life: Duration) -> Pending<'a, Result<PinnedTick>> {
        Box::pin(async move {
            check_holder("holder", holder)?;
            if life.is_zero() || life > PIN_MAX {
                return Err(Error::invalid("pin", format!("{life:?}, expected at most {PIN_MAX:?}")));
            }
            let (holder, life_ms) = (holder.to_owned(), life.as_millis() as i64);
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let (head, pins) = tx.together(|tx| (tx.get(&HEAD.key()), tx.hlen(&PINS.key())))?;
                let head = head.ok_or_else(|| Error::not_found("tick", "head"))?;
                if pins >= PINS_MAX {
                    return Err(Error::TooMany { what: "pins", max: PINS_MAX });
                }
                let until_ms = tx.now() + life_ms;
                tx.hset(&PINS.key(), &field(&head, &holder), &until_ms)?;
                Ok(PinnedTick { head, holder: holder.clone(), until_ms })
            };
            self.scope().named("galaxy.pin").transact::<_, Error, _>(transaction).await
        })
    }

    /// Extends a pin. [`Error::TickGone`] if it ended and its chunks were removed.
    pub fn renew_pin<'a>(&'a self, pin: &'a PinnedTick, life: Duration) -> Pending<'a, Result<PinnedTick>> {
        Box::pin(async move {
            let (pin, life_ms) = (pin.clone(), life.min(PIN_MAX).as_millis() as i64);
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let TickHead { generation, tick, .. } = pin.head;
                if tx.hget(&KEPT.key(), &pin.head.label())?.is_none() && pin.head.chunks > 0 {
                    return Err(Error::TickGone { generation, tick });
                }
                let until_ms = tx.now() + life_ms;
                tx.hset(&PINS.key(), &pin.field(), &until_ms)?;
                Ok(PinnedTick { until_ms, ..pin.clone() })
            };
            self.scope().named("galaxy.renew_pin").transact::<_, Error, _>(transaction).await
        })
    }

    /// Removes a pin. The chunks go with one of the next ticks.
    pub fn unpin<'a>(&'a self, pin: &'a PinnedTick) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let field = pin.field();
            let transaction = move |tx: &mut Tx<'_, Galaxy>| tx.hdel(&PINS.key(), &field);
            Ok(self.scope().named("galaxy.unpin").transact::<_, hot::Error, _>(transaction).await?)
        })
    }

    /// The world of a pinned tick.
    pub fn pinned_world<'a>(&'a self, pin: &'a PinnedTick) -> Pending<'a, Result<World>> {
        Box::pin(async move { self.world_of(&pin.head).await })
    }
}

/// A tick whose chunks go.
struct Old {
    generation: i64,
    tick: i64,
    chunks: i64,
}

impl TickRun {
    /// Removes the chunks of ticks that are neither among the last ones nor pinned, and pins that have ended.
    pub(super) async fn prune(&self) -> Result<()> {
        let (lease, epoch) = (self.lease().clone(), self.epoch());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            let Some(old) = oldest_unused(tx)? else { return Ok(false) };
            for number in 0..old.chunks {
                tx.del(&CHUNK.key(old.generation, old.tick, number))?;
            }
            tx.hdel(&KEPT.key(), &label(old.generation, old.tick))?;
            Ok(true)
        };
        let scope = self.engine().scope().named("galaxy.prune_ticks");
        while scope.transact::<_, Error, _>(transaction.clone()).await? {}
        Ok(())
    }
}

/// A tick whose chunks are not used any more.
fn oldest_unused(tx: &mut Tx<'_, Galaxy>) -> Result<Option<Old>> {
    let now = tx.now();
    let (kept, pins, head, staged) = tx.together(|tx| {
        (tx.hgetall(&KEPT.key()), tx.hgetall(&PINS.key()), tx.get(&HEAD.key()), tx.get(&STAGED.key()))
    })?;
    let Some(head) = head else { return Ok(None) };
    let ended: Vec<&String> = pins.iter().filter(|(_, until)| *until < now).map(|(field, _)| field).collect();
    tx.hdel_many(&PINS.key(), ended)?;
    let is_pinned = |generation: i64, tick: i64| {
        let living = pins.iter().filter(|(_, until)| *until >= now);
        living.filter_map(|(field, _)| parse_label(field)).any(|(g, t, _)| (g, t) == (generation, tick))
    };
    let chunks_max = (ENTITIES_MAX / CHUNK_ENTITIES_MAX) as i64;
    for (name, chunks) in kept {
        let Some((generation, tick, _)) = parse_label(&name) else {
            tx.hdel(&KEPT.key(), &name)?;
            continue;
        };
        let is_staged = staged.as_ref().is_some_and(|staged| staged.head.label() == name);
        let is_recent = generation == head.generation && tick > head.tick - TICKS_KEPT;
        if !is_staged && !is_recent && !is_pinned(generation, tick) {
            return Ok(Some(Old { generation, tick, chunks: chunks.clamp(0, chunks_max) }));
        }
    }
    Ok(None)
}
