//! Completed play sessions of a player.

use super::super::history::PlayerSession;
use super::page::{PageRequest, TimeRange};
use super::{Answer, Archive};
use emberkeep_history::Page;

impl Archive {
    /// The play sessions of a player that began in a range of time, or all of the last 90 days.
    pub fn play_sessions(
        &self,
        player_id: i64,
        range: Option<TimeRange>,
        page: PageRequest,
    ) -> Answer<'_, Page<PlayerSession>> {
        self.page(PlayerSession::partition(player_id), range, page)
    }
}
