//! Several processes on one store. The parent starts this program again, once for each, and talks to it in lines.
//!
//! ```text
//! parent -> child   the assignment, JSON   which part of which plan it plays
//! child  -> parent  "Ready"                it is connected, and knows who is where
//! parent -> child   go                     all begin together
//! child  -> parent  {"Progress":…}         its counters, several times a second
//! parent -> child   stop                   Ctrl-C, or another child is gone
//! child  -> parent  {"Done":…}             its results; the last line
//! ```
//!
//! A child whose parent is gone reads the end of its input, and stops too.

mod child;
mod children;
mod parent;

pub use child::run_child;
pub(super) use parent::play_together;

use crate::plan::Plan;
use crate::play::PlayResult;
use crate::stats::Totals;
use serde::{Deserialize, Serialize};

/// What a child is asked to play.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Assignment {
    plan: Plan,
    process: u32,
}

/// What a child sends, one line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum ChildMessage {
    Ready,
    Progress(Box<Totals>),
    DutyResult(Box<PlayResult>),
}

/// What a parent sends after the assignment.
const GO: &str = "go";
const STOP: &str = "stop";
