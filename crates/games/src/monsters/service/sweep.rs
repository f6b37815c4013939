//! The sweep: a background repair in bounded turns.

use super::*;
use crate::family_scan::{by_tenant, with_tenant};
use crate::monsters::limits::SWEEP_KEYS;
use crate::monsters::schema::ByField;
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::index::{Sweeper, rest};
use emberkeep_schema::{Family, Key};
use std::collections::BTreeMap;

/// What a sweep has repaired so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepReport {
    /// Stale index entries that were removed.
    pub stale: usize,
    /// Monsters that their field's index did not list, and now does.
    pub orphans: usize,
    /// Drop timers of dead or removed monsters that were deleted.
    pub timers: usize,
    /// Cooldowns of removed monsters that were deleted.
    pub cooldowns: usize,
    /// Effects, timers and cooldowns of other services that were entered into our auxiliary indexes.
    pub hints: usize,
    /// Records that other services could not read and that were rewritten: an empty list was stored as `{}`,
    /// or the tenant was missing or an object.
    pub rewritten: usize,
    /// Errors for corrupt records, each with its key. The records are unchanged.
    pub corrupt: Vec<hot::Error>,
}

impl SweepReport {
    /// Adds the result of a transaction.
    pub(super) fn add(&mut self, other: SweepReport) {
        self.stale += other.stale;
        self.orphans += other.orphans;
        self.timers += other.timers;
        self.cooldowns += other.cooldowns;
        self.hints += other.hints;
        self.rewritten += other.rewritten;
        self.corrupt.extend(other.corrupt);
    }
}

/// One sweep over all monsters of all tenants, started by [`Monsters::sweep`].
///
/// Budget of a turn: about [`SWEEP_KEYS`] keys, and the transactions that repair them. A sweep holds no locks
/// between turns and can be dropped at any time. Two sweeps at the same time only do the work twice.
pub struct Sweep {
    monsters: Monsters,
    indexes: Sweeper<ByField>,
    stage: Stage,
    report: SweepReport,
}

/// The stages of a sweep, each with the cursor of its scan.
#[derive(Clone, Copy)]
enum Stage {
    Indexes,
    Monsters(Option<Cursor>),
    Timers(Option<Cursor>),
    Cooldowns(Option<Cursor>),
    Over,
}

impl Monsters {
    /// A sweep from the start. It removes stale index entries, enters orphans, deletes timers and cooldowns
    /// of removed monsters, updates our auxiliary indexes with what other services wrote, and rewrites
    /// records that other services cannot read. Run one every few minutes, in any process; nothing depends on
    /// its timing.
    pub fn sweep(&self) -> Sweep {
        Sweep {
            monsters: self.clone(),
            indexes: Sweeper::new(self.store.clone()),
            stage: Stage::Indexes,
            report: SweepReport::default(),
        }
    }

    /// A page of a family's keys, by tenant, and the cursor of the next page.
    async fn page<F: Family<Partition = Tenant>, T>(
        &self,
        from: Option<Cursor>,
        part: impl Fn(&Key<F>) -> T,
    ) -> Result<(BTreeMap<Tenant, Vec<T>>, Option<Cursor>)> {
        let page = self.store.scan::<F>(from, SWEEP_KEYS).await?;
        Ok((by_tenant(with_tenant(page.keys).map(|(tenant, key)| (tenant, part(&key)))), page.next))
    }
}

impl Sweep {
    /// Runs all turns, with a pause after each: the pause limits the rate. Zero is none.
    pub fn run(mut self, pause: Duration) -> Pending<'static, Result<SweepReport>> {
        Box::pin(async move {
            while self.turn().await? {
                rest(pause).await;
            }
            Ok(self.report())
        })
    }

    /// Runs one turn; `false` at the end. After an error the same turn can be run again.
    pub fn turn(&mut self) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let (monsters, report) = (&self.monsters, &mut self.report);
            let scope = |tenant| monsters.scope(tenant, "monsters.sweep");
            self.stage = match self.stage {
                Stage::Indexes if self.indexes.turn().await? => Stage::Indexes,
                Stage::Indexes => Stage::Monsters(None),
                Stage::Monsters(from) => {
                    let (page, next) = monsters.page(from, |key| MONSTER.parts(key).0).await?;
                    for (tenant, ids) in page {
                        repair::monsters(&scope(tenant), &ids, report).await?;
                    }
                    next.map_or(Stage::Timers(None), |next| Stage::Monsters(Some(next)))
                }
                Stage::Timers(from) => {
                    let part = |key: &Key<DROP_TIMER>| DROP_TIMER.parts(key).0;
                    let (page, next) = monsters.page(from, part).await?;
                    for (tenant, ids) in page {
                        repair::timers(&scope(tenant), &ids, report).await?;
                    }
                    next.map_or(Stage::Cooldowns(None), |next| Stage::Timers(Some(next)))
                }
                Stage::Cooldowns(from) => {
                    let parts = |key: &Key<MONSTER_COOLDOWN>| MONSTER_COOLDOWN.parts(key);
                    let (page, next) = monsters.page(from, parts).await?;
                    for (tenant, markers) in page {
                        repair::markers(&scope(tenant), &markers, report).await?;
                    }
                    next.map_or(Stage::Over, |next| Stage::Cooldowns(Some(next)))
                }
                Stage::Over => Stage::Over,
            };
            Ok(!matches!(self.stage, Stage::Over))
        })
    }

    /// What was repaired so far.
    pub fn report(&self) -> SweepReport {
        let (indexes, mut report) = (self.indexes.swept(), self.report.clone());
        (report.stale, report.orphans) = (indexes.stale, indexes.orphans);
        report.corrupt.extend(indexes.corrupt.iter().cloned());
        report
    }
}
