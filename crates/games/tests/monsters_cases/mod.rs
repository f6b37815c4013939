//! What monsters promise, on any store: each case takes a store that others may be using, and a tenant of its own.
//!
//! No case waits for a deadline: what should be due is made older, in the store.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod clock;
mod cooldowns;
mod corrupt;
mod drops;
mod effects;
mod effects_due;
mod ends;
mod external;
mod fields;
#[path = "../neighbour/go.rs"]
mod go;
mod hits;
mod ids;
mod life;
mod shapes;
mod strangers;
mod sweeps;
mod together;
mod world;

pub use clock::*;
pub use cooldowns::*;
pub use corrupt::*;
pub use drops::*;
pub use effects::*;
pub use effects_due::*;
pub use ends::*;
pub use external::*;
pub use fields::*;
pub use hits::*;
pub use ids::*;
pub use life::*;
pub use shapes::*;
pub use strangers::*;
pub use sweeps::*;
pub use together::*;
pub use world::*;
