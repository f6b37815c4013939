//! The cases of monsters, for any store. A case shares its store with others and has its own tenant.
//!
//! No case waits for a deadline: stored times are shifted into the past.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod clock;
mod concurrency;
mod cooldowns;
mod drops;
mod effects;
mod effects_due;
mod external;
mod fields;
#[path = "../external_service/go.rs"]
mod go;
mod hits;
mod ids;
mod life;
mod not_found;
mod record_format;
mod removal;
mod sweeps;
mod world;
mod wrong_type;

pub use clock::*;
pub use concurrency::*;
pub use cooldowns::*;
pub use drops::*;
pub use effects::*;
pub use effects_due::*;
pub use external::*;
pub use fields::*;
pub use hits::*;
pub use ids::*;
pub use life::*;
pub use not_found::*;
pub use record_format::*;
pub use removal::*;
pub use sweeps::*;
pub use world::*;
pub use wrong_type::*;
