//! What a new reactor is asked to be.

use super::error::Result;
use super::model::{Reactor, ReactorData, ReactorId, Spot};
use super::rules;
use super::timestamp::Timestamp;
use crate::world::{Field, Tenant, TenantFields};
use emberkeep_schema::Extra;

/// What a new reactor is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRequest {
    /// An id that was allocated before; `None` = the next one.
    pub id: Option<ReactorId>,
    /// Where.
    pub field: Field,
    /// What kind of reactor, at least 1.
    pub classification: u32,
    /// What scripts call it.
    pub name: String,
    /// What it does, state by state.
    pub data: ReactorData,
    /// The state it begins in.
    pub state: i8,
    /// What its event is up to.
    pub event_state: u8,
    /// Milliseconds for which its spot cools down after it, 0 to [`DELAY_MS_MAX`](super::limits::DELAY_MS_MAX).
    pub delay_ms: i64,
    /// Which way it faces.
    pub direction: u8,
    /// Where in the field.
    pub x: i16,
    /// Where in the field.
    pub y: i16,
    /// Region of the tenant's client.
    pub region: String,
    /// Major version of the tenant's client.
    pub major_version: u16,
    /// Minor version of the tenant's client.
    pub minor_version: u16,
}

impl CreateRequest {
    /// A reactor of this kind on a spot of a field, without a name, states and delay. The rest can be set.
    pub fn new(field: Field, classification: u32, x: i16, y: i16) -> CreateRequest {
        CreateRequest {
            id: None,
            field,
            classification,
            name: String::new(),
            data: ReactorData::default(),
            state: 0,
            event_state: 0,
            delay_ms: 0,
            direction: 0,
            x,
            y,
            region: String::new(),
            major_version: 0,
            minor_version: 0,
        }
    }

    /// The spot that it asks for.
    pub fn spot(&self) -> Spot {
        Spot { classification: self.classification, x: self.x, y: self.y }
    }

    /// Refuses what makes no sense, before anything is read.
    pub(super) fn check(&self) -> Result<()> {
        rules::check_classification(self.classification)?;
        rules::check_delay(self.delay_ms)?;
        rules::check_name(&self.name)?;
        rules::check_region(&self.region)?;
        rules::check_data(&self.data)?;
        self.id.map_or(Ok(()), rules::check_id)
    }

    /// The reactor.
    pub(super) fn born(&self, tenant: Tenant, id: ReactorId, now_ms: i64) -> Result<Reactor> {
        let tenant = TenantFields {
            id: tenant.0,
            region: self.region.clone(),
            major_version: self.major_version,
            minor_version: self.minor_version,
            extra: Extra::default(),
        };
        Ok(Reactor {
            tenant,
            id,
            world: self.field.world,
            channel: self.field.channel,
            map: self.field.map,
            instance: self.field.instance,
            classification: self.classification,
            name: self.name.clone(),
            data: self.data.clone(),
            state: self.state,
            event_state: self.event_state,
            delay_ms: rules::check_delay(self.delay_ms)?,
            direction: self.direction,
            x: self.x,
            y: self.y,
            update_time: Timestamp::at(now_ms),
            extra: Extra::default(),
        })
    }
}
