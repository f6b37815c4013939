//! The sweep: sets right what nobody reads, in bounded turns.
//!
//! 1. Entries of both indexes without a reactor go, reactors that are in no index get their entries.
//! 2. Cooldowns that an external service started enter the field's index of cooldowns, so that clearing the field
//!    finds them.
//! 3. What is remembered of where reactors stand becomes what their records say.
//!
//! Budget of a turn: one page of [`SWEEP_KEYS`] keys and the transactions that mend what is wrong with them. It stops when it has
//! seen everything. Nothing is held between turns: it may be dropped at any time, what was mended stays, and two
//! sweeps at once only do the work twice.

use super::Reactors;
use super::spots;
use crate::pages::{Pages, by_tenant, told};
use crate::reactors::error::Result;
use crate::reactors::indexes::{InAll, InField};
use crate::reactors::limits::{MENDED_PER_TRANSACTION, SWEEP_KEYS};
use crate::reactors::model::{ReactorId, Spot};
use crate::reactors::schema::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_SPOTS, SpotText, cooldown_key, cooldowns, cooldowns_key, cooling,
    spots_key, spotted_field,
};
use crate::world::{Field, Tenant};
use emberkeep_hot::command::Read;
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_primitives::index::{self, Sweeper};
use emberkeep_schema::{Codec, Key};
use std::time::Duration;

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swept {
    /// Of the fields' indexes.
    pub fields: index::SweepReport,
    /// Of the index of all.
    pub all: index::SweepReport,
    /// Cooldowns that others started, now known to their field.
    pub cooldowns: usize,
    /// Reactors of which something else was remembered than their records say.
    pub spots: usize,
}

/// One sweep over the reactors of all tenants, made by [`Reactors::sweep`].
pub struct Sweep {
    store: Store,
    stage: Stage,
    swept: Swept,
}

/// What is being swept.
enum Stage {
    Fields(Sweeper<InField>),
    All(Sweeper<InAll>),
    Cooldowns(Pages<REACTOR_COOLDOWN>),
    Spots(Pages<REACTOR_SPOTS>),
    Over,
}

impl Reactors {
    /// A sweep at its start. Run one every now and then, in any process; nothing depends on it being on time.
    ///
    /// ```
    /// # use emberkeep_games::reactors::{Error, Reactors};
    /// # use emberkeep_hot::{Store, embedded::Embedded};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let reactors = Reactors::new(Store::new(std::sync::Arc::new(Embedded::in_memory())));
    /// let swept = reactors.sweep().run(std::time::Duration::from_millis(1)).await?;
    /// assert_eq!(swept.fields.ghosts, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sweep(&self) -> Sweep {
        let stage = Stage::Fields(Sweeper::new(self.store.clone()));
        Sweep { store: self.store.clone(), stage, swept: Swept::default() }
    }
}

impl Sweep {
    /// Makes turns until the end, with a pause after each: the pause is the rate limit.
    pub async fn run(mut self, pause: Duration) -> Result<Swept> {
        while self.turn().await? {
            tokio::time::sleep(pause).await;
        }
        Ok(self.swept)
    }

    /// What was found so far.
    pub fn swept(&self) -> &Swept {
        &self.swept
    }

    /// One turn. `false` = the sweep is at its end. After an error the sweep can go on; what that turn left is for the
    /// next sweep.
    pub async fn turn(&mut self) -> Result<bool> {
        let next = match &mut self.stage {
            Stage::Fields(sweeper) => {
                let goes_on = sweeper.turn().await?;
                self.swept.fields = sweeper.swept().clone();
                (!goes_on).then(|| Stage::All(Sweeper::new(self.store.clone())))
            }
            Stage::All(sweeper) => {
                let goes_on = sweeper.turn().await?;
                self.swept.all = sweeper.swept().clone();
                (!goes_on).then(|| Stage::Cooldowns(Pages::new(&self.store, None, SWEEP_KEYS)))
            }
            Stage::Cooldowns(pages) => match pages.next().await? {
                Some(markers) => {
                    self.swept.cooldowns += adopt(&self.store, markers).await?;
                    None
                }
                None => Some(Stage::Spots(Pages::new(&self.store, None, SWEEP_KEYS))),
            },
            Stage::Spots(pages) => match pages.next().await? {
                Some(fields) => {
                    self.swept.spots += mend(&self.store, fields).await?;
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
    }
}

/// Makes cooldowns known to their fields. Answers how many were not.
async fn adopt(store: &Store, markers: Vec<(Option<Tenant>, Key<REACTOR_COOLDOWN>)>) -> Result<usize> {
    let mut adopted = 0;
    for (tenant, markers) in by_tenant(told(markers)) {
        for some in markers.chunks(MENDED_PER_TRANSACTION) {
            let places: Vec<(Field, Spot)> = some.iter().map(cooling).collect();
            let scope = places.iter().fold(store.scope(tenant), |scope, (field, spot)| {
                let mut member = Vec::new();
                // A spot always has a text; without it nothing is prefetched, and nothing is lost.
                let _ = SpotText::encode(spot, &mut member);
                scope
                    .prefetch(&cooldown_key(field, spot), Read::Exists)
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

/// Compares what is remembered of fields with the records. Answers how many differed.
async fn mend(store: &Store, fields: Vec<(Option<Tenant>, Key<REACTOR_SPOTS>)>) -> Result<usize> {
    let mut mended = 0;
    for (tenant, key) in told(fields) {
        let (scope, field) = (store.scope(tenant), spotted_field(&key));
        // In a transaction, because a hash that cannot be read is removed.
        let hints = scope.transact(move |tx| spots::hints(tx, &field)).await?;
        let hints: Vec<(ReactorId, Spot)> = hints.into_iter().collect();
        for some in hints.chunks(MENDED_PER_TRANSACTION) {
            mended += mend_some(&scope, field, some.to_vec()).await?;
        }
    }
    Ok(mended)
}

async fn mend_some(scope: &Scope<Tenant>, field: Field, hints: Vec<(ReactorId, Spot)>) -> Result<usize> {
    let keys: Vec<Key<REACTOR>> = hints.iter().map(|(id, _)| REACTOR.key(id)).collect();
    let prefetched = keys.iter().fold(scope.clone(), |scope, key| scope.prefetch(key, Read::Get));
    let transaction = move |tx: &mut Tx<'_, Tenant>| {
        let mut mended = 0;
        for ((id, hint), found) in hints.iter().zip(tx.get_each(&keys)?) {
            match found {
                Ok(Some(reactor)) if reactor.is_of(tx.partition()) && reactor.field() == field => {
                    if reactor.spot() == *hint {
                        continue;
                    }
                    spots::enter(tx, id, &reactor)?;
                }
                Ok(_) => tx.hdel(&spots_key(&field), id)?,
                // It stands where it stood when it could be read.
                Err(_) => continue,
            }
            mended += 1;
        }
        Ok::<_, hot::Error>(mended)
    };
    Ok(prefetched.transact(transaction).await?)
}
