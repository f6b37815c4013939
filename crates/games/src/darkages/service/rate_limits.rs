//! Rate limits of what an entity does. They are counted wherever the entity is, and never move.

use super::*;
use crate::darkages::limits::EVENT_ID_BYTES_MAX;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::RateLimit;
use emberkeep_primitives::rate_limit::Admission;
use emberkeep_schema::Name;
use std::time::Duration;

/// An event to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateCheck {
    /// The entity that acts.
    pub entity: EntityId,
    /// What it does, such as `attack`.
    pub action: Name,
    /// The event, 1 to 128 bytes. One that counts already is admitted again and not counted twice.
    pub event_id: String,
    /// How many events are admitted within the window.
    pub limit: usize,
    /// The window, at least 1 ms.
    pub window: Duration,
}

impl DarkAges {
    /// Counts an event if there is room for it in the window, and says how many more there is room for.
    pub fn check_rate(&self, check: RateCheck) -> Pending<'_, Result<Admission>> {
        Box::pin(async move {
            let RateCheck { entity, action, event_id, limit, window } = check;
            check_text("event id", &event_id)?;
            if !(1..=EVENT_ID_BYTES_MAX).contains(&event_id.len()) {
                let problem = format!("{} bytes, expected 1 to {EVENT_ID_BYTES_MAX}", event_id.len());
                return Err(Error::invalid("event id", problem));
            }
            let limit = match RateLimit::new(RATE.key(action), limit, window) {
                Err(hot::Error::Invalid { what, problem }) => return Err(Error::Invalid { what, problem }),
                limit => limit?,
            };
            let scope =
                self.store.scope(Entity(entity)).named("darkages.check_rate").sharing_commits("rates");
            let transaction = {
                let limit = limit.clone();
                move |tx: &mut Tx<'_, Entity>| limit.acquire(tx, &event_id)
            };
            Ok(limit.prefetched(scope).transact(transaction).await?)
        })
    }
}
