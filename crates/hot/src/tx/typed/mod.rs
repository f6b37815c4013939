//! The operations of `Tx` on values, one file for each type of Redis.

mod hash;
mod list;
mod log;
mod set;
mod sorted_set;
mod text;

pub(crate) use text::set_declared;
