//! The vocabulary in Redis' words: reads, writes and expectations as arguments of the commit script, and its
//! answers back as replies. The layouts are written down at the top of `scripts/step.lua` and `scripts/swap.lua`.

mod answer;
mod compare_and_set;
mod reply;
mod request;
mod spelling;
mod words;

pub(crate) use answer::{Answer, GroupAnswer, Status, text, time_ms};
pub(crate) use compare_and_set::CompareAndSet;
pub(crate) use reply::reply;
pub(crate) use request::{GroupRequest, Request, RequestHeader, in_order};
pub(crate) use spelling::write_name;
