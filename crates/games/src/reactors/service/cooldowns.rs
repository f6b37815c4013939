//! Cooldowns of spots.

use super::Reactors;
use crate::reactors::error::Result;
use crate::reactors::model::Spot;
use crate::reactors::rules;
use crate::reactors::schema::cooldowns;
use crate::world::{Field, Tenant};
use emberkeep_hot::engine::Pending;
use std::time::Duration;

impl Reactors {
    /// Starts or restarts the cooldown of a spot. Does nothing for zero; at most
    /// [`COOLDOWN_MAX`](crate::reactors::limits::COOLDOWN_MAX).
    pub fn start_cooldown(
        &self,
        tenant: Tenant,
        field: Field,
        spot: Spot,
        time: Duration,
    ) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            rules::check_classification(spot.classification)?;
            rules::check_cooldown(time)?;
            let scope = self.scope(tenant, "reactors.start_cooldown");
            Ok(scope.transact(move |tx| cooldowns(field).start(tx, &spot, time)).await?)
        })
    }

    /// The remaining cooldown; `None` if the spot is free of it. [`Duration::MAX`] if an external client set
    /// a marker without a TTL.
    pub fn cooldown_remaining(
        &self,
        tenant: Tenant,
        field: Field,
        spot: Spot,
    ) -> Pending<'_, Result<Option<Duration>>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.cooldown_remaining");
            Ok(scope.read(move |tx| cooldowns(field).remaining(tx, &spot)).await?)
        })
    }

    /// Ends the cooldown of a spot; `true` if there was one.
    pub fn clear_cooldown(&self, tenant: Tenant, field: Field, spot: Spot) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.clear_cooldown");
            Ok(scope.transact(move |tx| cooldowns(field).clear(tx, &spot)).await?)
        })
    }

    /// Ends the cooldowns of a field and returns their number. Does not scan: cooldowns that an external
    /// service started are included once a [sweep](Reactors::sweep) has found them.
    pub fn clear_cooldowns(&self, tenant: Tenant, field: Field) -> Pending<'_, Result<usize>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "reactors.clear_cooldowns");
            let mut count = 0;
            loop {
                let cleared = scope.transact(move |tx| cooldowns(field).clear_all(tx)).await?;
                count += cleared.count;
                if !cleared.more {
                    return Ok(count);
                }
            }
        })
    }
}
