//! The archive of DarkAges: what happened and who the players are, read from history and, where it lives in history
//! alone, written there.
//!
//! 1. Events, kills, play sessions and audit entries are read page by page, over several days, in both directions.
//! 2. Names and e-mail addresses of [`profiles`] are unique; a claim table decides.
//! 3. [`zones`] merges the samples of many zone servers into one row per zone and hour.
//! 4. [`boards`] are the projections of the leaderboards in hot state.
//! 5. [`recorder`] takes events of servers that compute damage themselves.
//!
//! Works on every history store. Calls return boxed futures, as those of all games do.

mod audit;
pub mod boards;
mod combat;
mod error;
pub mod limits;
mod page;
mod play_sessions;
pub mod profiles;
pub mod recorder;
pub mod zones;

pub use audit::AuditFilter;
pub use error::{Error, Result};
pub use page::{Direction, PageRequest, TimeRange};

use emberkeep_history::{History, Pending};
use emberkeep_schema::Timestamp;

/// A boxed future of an operation.
pub type Answer<'a, T> = Pending<'a, Result<T>>;

/// The archive on some history. Cheap to clone.
#[derive(Clone)]
pub struct Archive {
    history: History,
}

impl Archive {
    /// The archive in a history that was opened with [`schema`](super::history::schema).
    pub fn new(history: History) -> Archive {
        Archive { history }
    }

    /// The history that the archive reads and writes, for queries of your own.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The time of history's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.history.store().now())
    }
}
