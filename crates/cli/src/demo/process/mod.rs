//! Several processes on one store. The parent starts this program again, once for each, and talks to it in lines.
//!
//! ```text
//! parent -> child   the brief, as JSON     which part of which plan it plays
//! child  -> parent  "Ready"                it is connected, and knows who is where
//! parent -> child   go                     all begin together
//! child  -> parent  {"Progress":…}         its counters, several times a second
//! parent -> child   stop                   somebody pressed Ctrl-C, or another child is gone
//! child  -> parent  {"Done":…}             its books; the last line
//! ```
//!
//! A child whose parent is gone reads the end of its input, and stops too.

mod child;
mod children;
mod parent;

pub(super) use child::run as run_child;
pub(super) use parent::play_together;

use super::plan::Plan;
use super::play::Played;
use super::tally::Totals;
use serde::{Deserialize, Serialize};

/// What a child is asked to play.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Brief {
    plan: Plan,
    process: u32,
}

/// What a child says, one line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Word {
    Ready,
    Progress(Totals),
    Done(Box<Played>),
}

/// What a parent says after the brief.
const GO: &str = "go";
const STOP: &str = "stop";
