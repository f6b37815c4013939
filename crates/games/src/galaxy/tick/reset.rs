//! Reset: everything is removed, and tick 0 of the next generation begins.
//!
//! The first transaction begins the generation, with an empty tick 0, and marks the reset as under way. Until the last one
//! nothing can be spawned. So readers see the former tick or an empty galaxy, and a reset that was interrupted is completed
//! by the next tick engine.

use super::commit::{TickRun, renew_in_time};
use super::lease::put_head;
use super::read::is_invalid_cursor;
use super::records::{Era, Phase, TickHead};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{ENTITIES_PER_TRANSACTION, KEYS_PER_PAGE};
use crate::galaxy::model::GameTime;
use crate::galaxy::schema::{
    ACTIVE_SHIP, BODY, CHANGES, ERA, FLEET, Galaxy, HEAD, JUMPGATE, MANEUVER, RULE, RULES, SHIP, STAGED,
    STATION, SYSTEM_BODIES, SYSTEM_JUMPGATES, SYSTEM_SHIPS, SYSTEM_STATIONS, TOTAL_SPAWNS,
};
use crate::galaxy::services::RESET;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{Scope, Tx};
use emberkeep_schema::{Family, Key};

impl TickRun {
    /// Clears the game and begins tick 0 of the next generation at this game time (`None` = now). Settings of the clock,
    /// registration and presence stay. Returns the new generation.
    pub fn reset(&self, time: Option<GameTime>) -> Pending<'_, Result<i64>> {
        Box::pin(async move {
            let generation = self.state().era().await?.generation + 1;
            self.reset_to(generation, time).await
        })
    }

    /// The same with the number of the new generation, such as one that a store of snapshots noted before. It is greater
    /// than the present one.
    pub fn reset_to(&self, generation: i64, time: Option<GameTime>) -> Pending<'_, Result<i64>> {
        Box::pin(async move {
            let (lease, epoch) = (self.lease().clone(), self.epoch());
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                lease.check(tx, epoch)?;
                begin_reset(tx, generation, time)
            };
            self.resetting().named("galaxy.reset").transact::<_, Error, _>(transaction).await?;
            self.finish_reset().await?;
            Ok(generation)
        })
    }

    fn resetting(&self) -> Scope<Galaxy> {
        self.engine().scope().for_operation(&RESET)
    }

    /// Removes all entities and ends the reset.
    pub(super) async fn finish_reset(&self) -> Result<()> {
        self.remove_all::<SHIP>().await?;
        self.remove_all::<STATION>().await?;
        self.remove_all::<JUMPGATE>().await?;
        self.remove_all::<BODY>().await?;
        self.remove_all::<SYSTEM_SHIPS>().await?;
        self.remove_all::<SYSTEM_STATIONS>().await?;
        self.remove_all::<SYSTEM_JUMPGATES>().await?;
        self.remove_all::<SYSTEM_BODIES>().await?;
        self.remove_all::<FLEET>().await?;
        self.remove_all::<ACTIVE_SHIP>().await?;
        self.remove_all::<RULES>().await?;
        self.remove_all::<RULE>().await?;
        self.remove_all::<MANEUVER>().await?;
        self.end_reset().await
    }

    async fn remove_all<F: Family<Partition = Galaxy>>(&self) -> Result<()> {
        let scope = self.resetting().named("galaxy.reset_page");
        let mut from = None;
        loop {
            let page = match scope.scan::<F>(from, KEYS_PER_PAGE).await {
                Err(error) if is_invalid_cursor(&error) && from.is_some() => {
                    from = None;
                    continue;
                }
                page => page?,
            };
            for keys in page.keys.chunks(ENTITIES_PER_TRANSACTION) {
                self.remove_keys(&scope, keys.to_vec()).await?;
            }
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    async fn remove_keys<F: Family<Partition = Galaxy>>(
        &self,
        scope: &Scope<Galaxy>,
        keys: Vec<Key<F>>,
    ) -> Result<()> {
        let (lease, epoch, half_ms) = (self.lease().clone(), self.epoch(), self.half_life_ms());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            let until_ms = tx.now() + half_ms;
            renew_in_time(tx, &lease, epoch, until_ms)?;
            Ok(keys.iter().try_for_each(|key| tx.del(key))?)
        };
        scope.transact::<(), Error, _>(transaction).await
    }

    async fn end_reset(&self) -> Result<()> {
        let (lease, epoch) = (self.lease().clone(), self.epoch());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            if let Some(era) = tx.get(&ERA.key())? {
                tx.put(&ERA.key(), &Era { phase: Phase::Running, ..era })?;
            }
            Ok(())
        };
        self.resetting().named("galaxy.end_reset").transact::<_, Error, _>(transaction).await?;
        self.prune().await
    }
}

fn begin_reset(tx: &mut Tx<'_, Galaxy>, generation: i64, time: Option<GameTime>) -> Result<()> {
    let (era, last, head) =
        tx.together(|tx| (tx.get(&ERA.key()), tx.log_last(&CHANGES.key()), tx.get(&HEAD.key())))?;
    let present = era.map_or(0, |era| era.generation).max(head.map_or(0, |head| head.generation));
    if generation <= present {
        let problem = format!("{generation}, expected more than the present {present}");
        return Err(Error::invalid("generation", problem));
    }
    let now = GameTime::from_millis(tx.now());
    let time = time.unwrap_or(now);
    let drift = (now.micros() - time.micros()) as f64 / 1e6;
    let changes = last.sequence;
    tx.put(&ERA.key(), &Era { phase: Phase::Reset, ..Era::new(generation) })?;
    put_head(tx, &TickHead { drift, changes, ..TickHead::new(generation, 0, time.micros()) })?;
    tx.log_trim(&CHANGES.key(), last)?;
    tx.del(&STAGED.key())?;
    Ok(tx.del(&TOTAL_SPAWNS.key())?)
}
