//! The sweep: background work in bounded turns, for what nobody meets by himself.

use super::*;
use crate::family_scan::{by_tenant, with_tenant};
use crate::monsters::limits::SWEEP_KEYS;
use crate::monsters::schema::ByField;
use emberkeep_hot::engine::Cursor;
use emberkeep_primitives::index::Sweeper;
use emberkeep_schema::{Family, Key};
use std::collections::BTreeMap;

/// What a sweep found and set right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepReport {
    /// Entries of fields' indexes without a monster, removed.
    pub ghosts: usize,
    /// Monsters that their field's index did not know, entered.
    pub orphans: usize,
    /// Drop timers whose monster died or is gone, removed.
    pub timers: usize,
    /// Cooldowns whose monster is gone, removed.
    pub cooldowns: usize,
    /// Effects, timers and cooldowns that our own indexes did not know, because another service wrote them.
    pub hints: usize,
    /// Records that other services could not read, written anew in the present shape: an empty list stood there as
    /// `{}`, or the tenant was missing or an object.
    pub rewritten: usize,
    /// Records that could not be read, each error with its key. They are left as they are.
    pub corrupt: Vec<hot::Error>,
}

impl SweepReport {
    /// Adds what a transaction found.
    pub(super) fn add(&mut self, other: SweepReport) {
        self.ghosts += other.ghosts;
        self.orphans += other.orphans;
        self.timers += other.timers;
        self.cooldowns += other.cooldowns;
        self.hints += other.hints;
        self.rewritten += other.rewritten;
        self.corrupt.extend(other.corrupt);
    }
}

/// One walk over all monsters of all tenants of a store, made by [`Monsters::sweep`].
///
/// Budget of a turn: about [`SWEEP_KEYS`] keys, and the transactions that set them right. It holds nothing between turns and may
/// be dropped at any time; what a turn has done stays done. Two walks at once only do the work twice.
pub struct Sweep {
    monsters: Monsters,
    indexes: Sweeper<ByField>,
    stage: Stage,
    swept: SweepReport,
}

/// Where a walk is, with the place from which its scan goes on.
#[derive(Clone, Copy)]
enum Stage {
    Indexes,
    Monsters(Option<Cursor>),
    Timers(Option<Cursor>),
    Cooldowns(Option<Cursor>),
    Over,
}

impl Monsters {
    /// A walk that sets right what nobody meets by himself: ghosts and orphans of the fields' indexes, timers and
    /// cooldowns whose monster is gone, what other services wrote and our own indexes do not know, and records that other
    /// services cannot read. Run one every now and then, in any process; nothing depends on it being on time.
    pub fn sweep(&self) -> Sweep {
        Sweep {
            monsters: self.clone(),
            indexes: Sweeper::new(self.store.clone()),
            stage: Stage::Indexes,
            swept: SweepReport::default(),
        }
    }
}

impl Sweep {
    /// Makes turns until the end, with a pause after each: the pause is the rate limit.
    pub async fn run(mut self, pause: Duration) -> Result<SweepReport> {
        while self.turn().await? {
            tokio::time::sleep(pause).await;
        }
        Ok(self.report())
    }

    /// One turn. `false` = the walk is at its end. After an error the same turn can be made again.
    pub async fn turn(&mut self) -> Result<bool> {
        self.stage = match self.stage {
            Stage::Indexes if self.indexes.turn().await? => Stage::Indexes,
            Stage::Indexes => Stage::Monsters(None),
            Stage::Monsters(from) => {
                let (page, next) = self.page::<MONSTER, _>(from, |key| MONSTER.parts(key).0).await?;
                for (tenant, ids) in page {
                    repair::monsters(&self.monsters.scope(tenant), &ids, &mut self.swept).await?;
                }
                next.map_or(Stage::Timers(None), |next| Stage::Monsters(Some(next)))
            }
            Stage::Timers(from) => {
                let (page, next) = self.page::<DROP_TIMER, _>(from, |key| DROP_TIMER.parts(key).0).await?;
                for (tenant, ids) in page {
                    repair::timers(&self.monsters.scope(tenant), &ids, &mut self.swept).await?;
                }
                next.map_or(Stage::Cooldowns(None), |next| Stage::Timers(Some(next)))
            }
            Stage::Cooldowns(from) => {
                let parts = |key: &Key<MONSTER_COOLDOWN>| MONSTER_COOLDOWN.parts(key);
                let (page, next) = self.page::<MONSTER_COOLDOWN, _>(from, parts).await?;
                for (tenant, markers) in page {
                    repair::markers(&self.monsters.scope(tenant), &markers, &mut self.swept).await?;
                }
                next.map_or(Stage::Over, |next| Stage::Cooldowns(Some(next)))
            }
            Stage::Over => Stage::Over,
        };
        Ok(!matches!(self.stage, Stage::Over))
    }

    /// What was found so far.
    pub fn report(&self) -> SweepReport {
        let (indexes, mut swept) = (self.indexes.swept(), self.swept.clone());
        (swept.ghosts, swept.orphans) = (indexes.ghosts, indexes.orphans);
        swept.corrupt.extend(indexes.corrupt.iter().cloned());
        swept
    }

    /// A page of a family's keys, by tenant, and where the next one begins.
    async fn page<F: Family<Partition = Tenant>, T>(
        &self,
        from: Option<Cursor>,
        part: impl Fn(&Key<F>) -> T,
    ) -> Result<(BTreeMap<Tenant, Vec<T>>, Option<Cursor>)> {
        let page = self.monsters.store.scan::<F>(from, SWEEP_KEYS).await?;
        Ok((by_tenant(with_tenant(page.keys).map(|(tenant, key)| (tenant, part(&key)))), page.next))
    }
}
