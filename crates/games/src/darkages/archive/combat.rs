//! Combat: events by time, attacker, target and zone, the kill feed, and what a player did ever.

use super::super::history::{CombatEvent, Kill, PlayerStats};
use super::page::{PageRequest, TimeRange};
use super::{Answer, Archive};
use emberkeep_history::{Page, TotalsOf};

impl Archive {
    /// All combat events of a range of time, at most 366 days. They are kept for 30 days.
    pub fn combat_events(&self, range: TimeRange, page: PageRequest) -> Answer<'_, Page<CombatEvent>> {
        self.page(CombatEvent::partition(range.days()), Some(range), page)
    }

    /// The combat events of an attacker.
    pub fn combat_events_by_attacker(
        &self,
        attacker_id: i64,
        range: TimeRange,
        page: PageRequest,
    ) -> Answer<'_, Page<CombatEvent>> {
        self.page(CombatEvent::by_attacker(attacker_id, range.days()), Some(range), page)
    }

    /// The combat events of a target.
    pub fn combat_events_by_target(
        &self,
        target_id: i64,
        range: TimeRange,
        page: PageRequest,
    ) -> Answer<'_, Page<CombatEvent>> {
        self.page(CombatEvent::by_target(target_id, range.days()), Some(range), page)
    }

    /// The combat events of a zone.
    pub fn combat_events_in_zone(
        &self,
        zone_id: i32,
        range: TimeRange,
        page: PageRequest,
    ) -> Answer<'_, Page<CombatEvent>> {
        self.page(CombatEvent::by_zone(zone_id, range.days()), Some(range), page)
    }

    /// The kill feed of a range of time.
    pub fn kills(&self, range: TimeRange, page: PageRequest) -> Answer<'_, Page<Kill>> {
        self.page(Kill::partition(range.days()), Some(range), page)
    }

    /// What a player did, ever; `None` if nothing was recorded.
    pub fn player_stats(&self, player_id: i64) -> Answer<'_, Option<TotalsOf<PlayerStats>>> {
        Box::pin(async move { Ok(self.history.totals(player_id).await?) })
    }
}
