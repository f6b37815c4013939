//! Reactors: objects on a map that react to hits.
//!
//! Promises: at most one living reactor of a classification occupies a spot, and none while the spot is on
//! cooldown. A hit is never lost. Exactly one caller destroys a reactor. A reactor, its entries in both
//! indexes and its cooldown change together. A reactor of another tenant is `NotFound`.

mod error;
mod indexes;
pub mod limits;
pub mod model;
#[cfg(feature = "openapi")]
mod openapi;
mod per_state;
mod request;
pub mod rules;
mod schema;
mod service;
mod timestamp;

pub use error::{Error, Result};
pub use model::{Event, Offset, Reactor, ReactorData, ReactorId, ReactorItem, Spot};
pub use per_state::PerState;
pub use request::CreateRequest;
pub use rules::HitRules;
pub use schema::{
    REACTOR, REACTOR_COOLDOWN, REACTOR_COOLDOWNS, REACTOR_ID_NEXT, REACTOR_MAP, REACTOR_SPOTS, REACTORS_ALL,
    SpotText, cooldown_key, cooldowns_key, field_key, schema, spots_key,
};
pub use service::{
    Destruction, FieldDestruction, Hit, Outcome, Reactors, Sweep, SweepReport, TeardownReport,
};
pub use timestamp::Timestamp;
