//! Starting a tick engine: its lease, and what an earlier engine left unfinished.

use super::commit::TickRun;
use super::records::{Era, Phase, TickHead};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{HOLDER_BYTES_MAX, TICK_LEASE as LEASE_LIFE};
use crate::galaxy::model::GameTime;
use crate::galaxy::schema::{CHANGES, ERA, Galaxy, HEAD, STAGED, TICK, TICK_LEASE, TIME};
use crate::galaxy::service::{GalaxyState, TickEngine};
use crate::world::word_problem;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};
use emberkeep_primitives::lease::{Acquisition, Lease};
use std::time::Duration;

/// How a tick engine starts.
#[derive(Clone, Debug, PartialEq)]
pub struct StartRequest {
    /// The name of this process. A process that is started again with its name need not wait for its old lease.
    pub holder: String,
    /// How long the lease lasts unless it is renewed, which every step does. A process that was stalled for longer may
    /// lose it.
    pub lease: Duration,
    /// The game time at which a new galaxy begins; `None` = now.
    pub time: Option<GameTime>,
}

impl StartRequest {
    /// The default lease of 10 s; a new galaxy begins now.
    pub fn new(holder: impl Into<String>) -> StartRequest {
        StartRequest { holder: holder.into(), lease: LEASE_LIFE, time: None }
    }
}

impl TickEngine {
    /// Acquires the lease, and completes what an engine before this one had begun: a reset, or a tick that was staged.
    /// A new galaxy begins with tick 0 of generation 1, or with the `game:tick` and `game:time` that are there.
    pub fn start(&self, request: StartRequest) -> Pending<'_, Result<TickRun>> {
        Box::pin(async move {
            check_holder("holder", &request.holder)?;
            let lease = Lease::new(TICK_LEASE.key(), request.lease)?;
            let epoch = self.acquire(&lease, &request.holder).await?;
            let run = TickRun::new(self.state().clone(), lease, request.lease, epoch);
            match self.complete(&run, request.time).await {
                Ok(()) => Ok(run),
                Err(error) => {
                    // The next engine need not wait. If this fails, too, the lease ends by itself.
                    let _ = run.release().await;
                    Err(error)
                }
            }
        })
    }

    /// Completes what an engine before had begun.
    async fn complete(&self, run: &TickRun, time: Option<GameTime>) -> Result<()> {
        let (era, is_staged) = self.initialize(run, time).await?;
        if era.phase == Phase::Reset {
            run.finish_reset().await?;
        }
        if is_staged { run.roll_forward().await } else { Ok(()) }
    }

    async fn acquire(&self, lease: &Lease<TICK_LEASE>, holder: &str) -> Result<i64> {
        let (lease, holder) = (lease.clone(), holder.to_owned());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| lease.acquire(tx, &holder);
        match self.scope().named("galaxy.acquire").transact::<_, hot::Error, _>(transaction).await? {
            Acquisition::Granted { epoch, .. } => Ok(epoch),
            Acquisition::Held { by, left } => {
                let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                Err(Error::LeaseHeld { holder: by, left_ms })
            }
        }
    }

    /// The generation, begun if there is none, and whether a tick is staged.
    async fn initialize(&self, run: &TickRun, time: Option<GameTime>) -> Result<(Era, bool)> {
        let (lease, epoch) = (run.lease().clone(), run.epoch());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            let (era, head, staged) =
                tx.together(|tx| (tx.get(&ERA.key()), tx.get(&HEAD.key()), tx.exists(&STAGED.key())))?;
            let is_first = era.is_none();
            let era = match era {
                Some(era) => era,
                None => {
                    let era = Era::new(head.as_ref().map_or(1, |head| head.generation));
                    tx.put(&ERA.key(), &era)?;
                    era
                }
            };
            if head.is_none() {
                // If the head was lost, the hashes have what was spawned and removed before; moves that were queued are lost with it.
                let changes = if is_first { 0 } else { tx.log_last(&CHANGES.key())?.sequence };
                begin_head(tx, TickHead { changes, ..TickHead::new(era.generation, 0, 0) }, time)?;
            }
            Ok((era, staged))
        };
        self.scope().named("galaxy.start").transact::<_, Error, _>(transaction).await
    }
}

/// Writes the head of a galaxy that has none yet, at the tick and the time that other programs left.
fn begin_head(tx: &mut Tx<'_, Galaxy>, head: TickHead, time: Option<GameTime>) -> hot::Result<()> {
    let (tick, stored) = tx.together(|tx| (tx.get(&TICK.key()), tx.get(&TIME.key())))?;
    let now = GameTime::from_millis(tx.now());
    let time = stored.or(time).unwrap_or(now);
    let drift = (now.micros() - time.micros()) as f64 / 1e6;
    let tick = tick.unwrap_or(0).max(0);
    put_head(tx, &TickHead { tick, time_us: time.micros(), drift, ..head })
}

/// Writes a head with the documented keys that say the same.
pub(super) fn put_head(tx: &mut Tx<'_, Galaxy>, head: &TickHead) -> hot::Result<()> {
    use crate::galaxy::schema::TIME_DRIFT;
    tx.put(&HEAD.key(), head)?;
    tx.put(&TIME.key(), &head.time())?;
    tx.put(&TIME_DRIFT.key(), &head.drift)?;
    tx.put(&TICK.key(), &head.tick)
}

/// Refuses names that cannot stand in a lease, a pin or a key.
pub(crate) fn check_holder(what: &'static str, holder: &str) -> Result<()> {
    let problem = match holder {
        "" => Some(format!("empty, expected 1 to {HOLDER_BYTES_MAX} bytes")),
        holder => word_problem(holder, HOLDER_BYTES_MAX),
    };
    problem.map_or(Ok(()), |problem| Err(Error::invalid(what, problem)))
}

impl GalaxyState {
    /// The generation of hot state and what is under way; generation 0 before the first start of a tick engine.
    pub fn era(&self) -> Pending<'_, Result<Era>> {
        Box::pin(async move { Ok(self.scope().get(&ERA.key()).await?.unwrap_or_else(|| Era::new(0))) })
    }
}
