//! The operations on reactors. Each is one atomic transaction, or a loop of them that its documentation
//! describes.

mod cooldowns;
mod create;
mod destroy;
mod field;
mod spots;
mod sweep;
mod teardown;
mod update;

pub use destroy::{Destruction, Hit, Outcome};
pub use field::FieldDestruction;
pub use sweep::{Sweep, SweepReport};
pub use teardown::TeardownReport;

use super::error::{Error, Result};
use super::model::{Reactor, ReactorId};
use super::rules::HitRules;
use super::schema::REACTOR;
use crate::world::Tenant;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{Scope, Store, Tx};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The reactors of a store. Cheap to clone.
///
/// ```
/// use emberkeep_games::reactors::{CreateRequest, Error, Event, Outcome, Reactors, Spot};
/// use emberkeep_games::world::{CharacterId, Field, Tenant};
/// use emberkeep_hot::{Store, embedded::Embedded};
/// use std::{sync::Arc, time::Duration};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let reactors = Reactors::new(Store::new(Arc::new(Embedded::in_memory())));
/// let tenant = Tenant(uuid::Uuid::from_u128(7));
/// let field = Field { channel: 1, map: 100_000_000, ..Field::default() };
///
/// // A box that breaks at the second hit, and comes back after a minute.
/// let mut request = CreateRequest::new(field, 2001, -315, 88);
/// request.delay_ms = 60_000;
/// request.data.states =
///     [(0, vec![Event { next: 1, ..Event::default() }].into()), (1, vec![].into())].into_iter().collect();
/// let a_box = reactors.create(tenant, request.clone()).await?;
///
/// // No second one can be created on its spot.
/// let again = reactors.create(tenant, request.clone()).await;
/// assert_eq!(again, Err(Error::SpotTaken { id: a_box.id }));
///
/// let hit = reactors.hit(tenant, a_box.id, CharacterId(1), 0).await?;
/// assert_eq!((hit.outcome, hit.reactor.state), (Outcome::Advanced { from: 0 }, 1));
/// let hit = reactors.hit(tenant, a_box.id, CharacterId(2), 0).await?;
/// assert_eq!(hit.outcome, Outcome::Triggered { cooldown: Some(Duration::from_secs(60)) });
///
/// // It is gone, and its spot cools down.
/// assert_eq!(reactors.get(tenant, a_box.id).await, Err(Error::NotFound { id: a_box.id }));
/// assert!(matches!(reactors.create(tenant, request.clone()).await, Err(Error::OnCooldown { .. })));
/// reactors.clear_cooldown(tenant, field, Spot { classification: 2001, x: -315, y: 88 }).await?;
/// reactors.create(tenant, request).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reactors {
    store: Store,
    /// The last id that this process saw, of any tenant. Used only to prefetch the next ones.
    last_id: Arc<AtomicU32>,
    hit_rules: HitRules,
}

impl Reactors {
    /// The reactors of a store.
    pub fn new(store: Store) -> Reactors {
        Reactors { store, last_id: Arc::default(), hit_rules: HitRules::default() }
    }

    /// Sets the rules of hits.
    pub fn hit_rules(mut self, rules: HitRules) -> Reactors {
        self.hit_rules = rules;
        self
    }

    fn scope(&self, tenant: Tenant, operation: &'static str) -> Scope<Tenant> {
        self.store.scope(tenant).named(operation)
    }

    /// Reads a reactor. That of another tenant is not found.
    pub fn get(&self, tenant: Tenant, id: ReactorId) -> Pending<'_, Result<Reactor>> {
        Box::pin(async move {
            let found = self.store.scope(tenant).get(&REACTOR.key(id)).await?;
            found.filter(|reactor| reactor.is_of(&tenant)).ok_or(Error::NotFound { id })
        })
    }
}

/// Reads a reactor of this tenant. On one server the key may hold a reactor of another tenant.
fn own(tx: &mut Tx<'_, Tenant>, id: ReactorId) -> Result<Reactor> {
    let found = tx.get(&REACTOR.key(id))?;
    found.filter(|reactor| reactor.is_of(tx.partition())).ok_or(Error::NotFound { id })
}
