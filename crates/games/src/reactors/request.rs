//! The parameters of a new reactor.

use super::error::Result;
use super::model::{Reactor, ReactorData, ReactorId, Spot};
use super::rules;
use super::timestamp::Timestamp;
use crate::world::{Field, Tenant, TenantFields};

/// The parameters of a new reactor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRequest {
    /// An id that was allocated before; `None` uses the next one.
    pub id: Option<ReactorId>,
    /// The field in which it appears.
    pub field: Field,
    /// The classification, at least 1.
    pub classification: u32,
    /// The name that scripts use.
    pub name: String,
    /// The state machine: its events, timeouts and area.
    pub data: ReactorData,
    /// The state in which it begins.
    pub state: i8,
    /// The progress of its current event.
    pub event_state: u8,
    /// How long its spot cools down after its destruction, in milliseconds: 0 to
    /// [`DELAY_MS_MAX`](super::limits::DELAY_MS_MAX).
    pub delay_ms: i64,
    /// The direction that it faces.
    pub direction: u8,
    /// The horizontal position in the field.
    pub x: i16,
    /// The vertical position in the field.
    pub y: i16,
    /// Region of the tenant's client.
    pub region: String,
    /// Major version of the tenant's client.
    pub major_version: u16,
    /// Minor version of the tenant's client.
    pub minor_version: u16,
}

impl CreateRequest {
    /// A reactor without name, states and delay. The other fields can be set afterwards.
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

    /// The spot that it would occupy.
    pub fn spot(&self) -> Spot {
        Spot { classification: self.classification, x: self.x, y: self.y }
    }

    /// Checks everything that needs no read.
    pub(super) fn check(&self) -> Result<()> {
        rules::check_classification(self.classification)?;
        rules::check_delay(self.delay_ms)?;
        rules::check_name(&self.name)?;
        rules::check_region(&self.region)?;
        rules::check_data(&self.data)?;
        self.id.map_or(Ok(()), rules::check_id)
    }

    /// The reactor as it is stored first.
    pub(super) fn build(&self, tenant: Tenant, id: ReactorId, now_ms: i64) -> Result<Reactor> {
        let tenant = TenantFields {
            region: self.region.clone(),
            major_version: self.major_version,
            minor_version: self.minor_version,
            ..TenantFields::new(tenant.0)
        };
        let Field { world, channel, map, instance } = self.field;
        Ok(Reactor {
            name: self.name.clone(),
            data: self.data.clone(),
            state: self.state,
            event_state: self.event_state,
            delay_ms: rules::check_delay(self.delay_ms)?,
            direction: self.direction,
            x: self.x,
            y: self.y,
            update_time: Timestamp::at(now_ms),
            ..Reactor::new(tenant, id, world, channel, map, instance, self.classification)
        })
    }
}
