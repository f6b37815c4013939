//! The sweep: a background repair in bounded turns.
//!
//! 1. It removes stale entries of both indexes, and enters reactors that are in no index.
//! 2. It enters cooldowns of external services into the field's index of cooldowns, so that clearing the
//!    field finds them.
//! 3. It corrects the hashes of occupied spots by the records.
//!
//! Budget of a turn: one page of [`SWEEP_KEYS`] keys, and the transactions that repair them. It ends after
//! one pass. A sweep holds no locks between turns and can be dropped at any time. Two sweeps at the same time
//! only do the work twice.

use super::Reactors;
use super::spots;
use crate::family_scan::{FamilyScan, by_tenant, with_tenant};
use crate::reactors::error::Result;
use crate::reactors::indexes::{AllIndex, FieldIndex};
use crate::reactors::limits::{REPAIRED_PER_TRANSACTION, SWEEP_KEYS};
use crate::reactors::model::{ReactorId, Spot};
use crate::reactors::schema::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_SPOTS, SpotText, cooldown_key, cooldown_parts, cooldowns,
    cooldowns_key, spots_field, spots_key,
};
use crate::world::{Field, Tenant};
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_primitives::index::{self, Sweeper};
use emberkeep_schema::{Codec, Key};
use std::time::Duration;

/// What a sweep has repaired so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepReport {
    /// Repairs of the fields' indexes.
    pub fields: index::SweepReport,
    /// Repairs of the index of all.
    pub all: index::SweepReport,
    /// Cooldowns of other services that were entered into the index of their field.
    pub cooldowns: usize,
    /// Reactors whose spot was corrected.
    pub spots: usize,
}

/// One sweep over the reactors of all tenants, started by [`Reactors::sweep`].
pub struct Sweep {
    store: Store,
    stage: Stage,
    report: SweepReport,
}

/// The stages of a sweep.
enum Stage {
    Fields(Sweeper<FieldIndex>),
    All(Sweeper<AllIndex>),
    Cooldowns(FamilyScan<REACTOR_COOLDOWN>),
    Spots(FamilyScan<REACTOR_SPOTS>),
    Over,
}

impl Reactors {
    /// A sweep from the start. Run one every few minutes, in any process; nothing depends on its timing.
    ///
    /// ```
    /// # use emberkeep_games::reactors::{Error, Reactors};
    /// # use emberkeep_hot::{Store, embedded::Embedded};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let reactors = Reactors::new(Store::new(std::sync::Arc::new(Embedded::in_memory())));
    /// let report = reactors.sweep().run(std::time::Duration::from_millis(1)).await?;
    /// assert_eq!(report.fields.stale, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sweep(&self) -> Sweep {
        let stage = Stage::Fields(Sweeper::new(self.store.clone()));
        Sweep { store: self.store.clone(), stage, report: SweepReport::default() }
    }
}

impl Sweep {
    /// Runs all turns, with a pause after each: the pause limits the rate. Zero is none.
    pub fn run(mut self, pause: Duration) -> Pending<'static, Result<SweepReport>> {
        Box::pin(async move {
            while self.turn().await? {
                index::rest(pause).await;
            }
            Ok(self.report)
        })
    }

    /// What was repaired so far.
    pub fn report(&self) -> &SweepReport {
        &self.report
    }

    /// Runs one turn; `false` at the end. After an error the sweep can continue; the next sweep repairs what
    /// this turn skipped.
    pub fn turn(&mut self) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let next = match &mut self.stage {
                Stage::Fields(sweeper) => {
                    let goes_on = sweeper.turn().await?;
                    self.report.fields = sweeper.swept().clone();
                    (!goes_on).then(|| Stage::All(Sweeper::new(self.store.clone())))
                }
                Stage::All(sweeper) => {
                    let goes_on = sweeper.turn().await?;
                    self.report.all = sweeper.swept().clone();
                    (!goes_on).then(|| Stage::Cooldowns(FamilyScan::new(&self.store, None, SWEEP_KEYS)))
                }
                Stage::Cooldowns(pages) => match pages.next().await? {
                    Some(markers) => {
                        self.report.cooldowns += adopt(&self.store, markers).await?;
                        None
                    }
                    None => Some(Stage::Spots(FamilyScan::new(&self.store, None, SWEEP_KEYS))),
                },
                Stage::Spots(pages) => match pages.next().await? {
                    Some(fields) => {
                        self.report.spots += correct_spots(&self.store, fields).await?;
                        None
                    }
                    None => Some(Stage::Over),
                },
                Stage::Over => None,
            };
            if let Some(next) = next {
                self.stage = next;
            }
            Ok(!matches!(self.stage, Stage::Over))
        })
    }
}

/// Enters cooldowns into the index of their field. Returns how many were missing.
async fn adopt(store: &Store, markers: Vec<(Option<Tenant>, Key<REACTOR_COOLDOWN>)>) -> Result<usize> {
    let mut adopted = 0;
    for (tenant, markers) in by_tenant(with_tenant(markers)) {
        for some in markers.chunks(REPAIRED_PER_TRANSACTION) {
            let places: Vec<(Field, Spot)> = some.iter().map(cooldown_parts).collect();
            let scope =
                places.iter().fold(store.scope(tenant).named("reactors.sweep"), |scope, (field, spot)| {
                    let mut member = Vec::new();
                    // Encoding a spot cannot fail. If it did, only the prefetch would be lost.
                    let _ = SpotText::encode(spot, &mut member);
                    scope
                        .prefetch_exists(&cooldown_key(field, spot))
                        .prefetch(&cooldowns_key(field), Read::ZScore(member.into()))
                });
            adopted += scope.transact(move |tx| adopt_some(tx, &places)).await?;
        }
    }
    Ok(adopted)
}

fn adopt_some(tx: &mut Tx<'_, Tenant>, places: &[(Field, Spot)]) -> hot::Result<usize> {
    let mut adopted = 0;
    for (field, spot) in places {
        adopted += usize::from(cooldowns(*field).adopt(tx, spot)?);
    }
    Ok(adopted)
}

/// Compares the hashes of occupied spots with the records. Returns how many entries differed.
async fn correct_spots(store: &Store, fields: Vec<(Option<Tenant>, Key<REACTOR_SPOTS>)>) -> Result<usize> {
    let mut corrected = 0;
    for (tenant, key) in with_tenant(fields) {
        let (scope, field) = (store.scope(tenant).named("reactors.sweep"), spots_field(&key));
        // In a transaction, because a corrupt hash is removed.
        let hints = scope.transact(move |tx| spots::hints(tx, &field)).await?;
        let hints: Vec<(ReactorId, Spot)> = hints.into_iter().collect();
        for some in hints.chunks(REPAIRED_PER_TRANSACTION) {
            corrected += correct_some(&scope, field, some.to_vec()).await?;
        }
    }
    Ok(corrected)
}

async fn correct_some(scope: &Scope<Tenant>, field: Field, hints: Vec<(ReactorId, Spot)>) -> Result<usize> {
    let keys: Vec<Key<REACTOR>> = hints.iter().map(|(id, _)| REACTOR.key(id)).collect();
    let transaction = move |tx: &mut Tx<'_, Tenant>| {
        let mut corrected = 0;
        for ((id, hint), found) in hints.iter().zip(tx.get_each(&keys)?) {
            match found {
                Ok(Some(reactor)) if reactor.is_of(tx.partition()) && reactor.field() == field => {
                    if reactor.spot() == *hint {
                        continue;
                    }
                    spots::enter(tx, id, &reactor)?;
                }
                Ok(_) => tx.hdel(&spots_key(&field), id)?,
                // A corrupt record keeps the spot of its last readable version.
                Err(_) => continue,
            }
            corrected += 1;
        }
        Ok::<_, hot::Error>(corrected)
    };
    Ok(scope.transact(transaction).await?)
}
