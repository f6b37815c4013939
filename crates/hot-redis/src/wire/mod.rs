//! The vocabulary in Redis' words: reads, writes and expectations as arguments of the commit script, and its
//! answers back as replies. The layouts are written down at the top of `scripts/step.lua` and `scripts/swap.lua`.

mod answer;
mod call;
mod program;
mod reply;
mod swap;
mod words;

pub(crate) use answer::{Answer, GroupAnswer, Status, text, time_ms};
pub(crate) use call::{Call, Envelope, GroupWords, in_order};
pub(crate) use reply::reply;
pub(crate) use swap::Swap;
pub(crate) use words::write_name;
