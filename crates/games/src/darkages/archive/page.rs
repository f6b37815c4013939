//! Ranges of time and pages: what every list of the archive is asked with.

use super::error::{Error, Result};
use super::{Answer, Archive};
use emberkeep_history::limits::PAGE_ROWS_DEFAULT;
use emberkeep_history::{Cursor, Page};
use emberkeep_schema::{Day, Rows, Table, Timestamp};
use std::ops::RangeInclusive;

/// From a time, inclusive, to a time, exclusive. An empty one has no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    from: Timestamp,
    to: Timestamp,
}

impl TimeRange {
    /// A range of times from 1970 to 9999. One that ends before it begins is refused.
    pub fn new(from: Timestamp, to: Timestamp) -> Result<TimeRange> {
        if !from.is_valid() || !to.is_valid() {
            let problem = format!("{} to {}, expected milliseconds from 1970 to 9999", from.0, to.0);
            return Err(Error::invalid("range of time", problem));
        }
        if to < from {
            let problem = format!("{} to {}: it ends before it begins", from.0, to.0);
            return Err(Error::invalid("range of time", problem));
        }
        Ok(TimeRange { from, to })
    }

    /// All of a UTC day.
    pub const fn day(day: Day) -> TimeRange {
        TimeRange { from: day.start(), to: day.next().start() }
    }

    /// The days that it touches, at least one.
    pub(super) fn days(&self) -> RangeInclusive<Day> {
        let last = Timestamp((self.to.0 - 1).max(self.from.0));
        self.from.day()..=last.day()
    }
}

/// The order of a list by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// The latest row first.
    #[default]
    NewestFirst,
    /// The earliest row first.
    OldestFirst,
}

/// Which page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRequest {
    /// Most rows, from 1 to 1,000.
    pub rows_max: usize,
    /// The order of the list.
    pub direction: Direction,
    /// Where the page before it ended; it holds for the same list only.
    pub after: Option<Cursor>,
}

impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest { rows_max: PAGE_ROWS_DEFAULT, direction: Direction::default(), after: None }
    }
}

impl Archive {
    /// A page of a table whose rows stand by time, the latest first.
    pub(super) fn page<T: Table<First = Timestamp>>(
        &self,
        rows: Rows<T>,
        range: Option<TimeRange>,
        page: PageRequest,
    ) -> Answer<'_, Page<T>> {
        Box::pin(async move {
            let query = self.history.range(rows).rows_max(page.rows_max);
            let query = match range {
                Some(range) => query.between(range.from..range.to),
                None => query,
            };
            let query = match page.direction {
                Direction::NewestFirst => query,
                Direction::OldestFirst => query.reversed(),
            };
            Ok(query.page(page.after.as_ref()).await?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_days_that_it_touches() {
        let day = |number| Day::from_number(number).unwrap();
        let range = |from, to| TimeRange::new(Timestamp(from), Timestamp(to)).unwrap();
        assert_eq!(TimeRange::day(day(5)).days(), day(5)..=day(5));
        assert_eq!(range(day(5).end().0, day(6).start().0 + 1).days(), day(5)..=day(6));
        assert_eq!(range(day(5).start().0, day(5).start().0).days(), day(5)..=day(5), "empty");
        assert!(TimeRange::new(Timestamp(2), Timestamp(1)).is_err());
        assert!(TimeRange::new(Timestamp(-1), Timestamp(1)).is_err());
        assert!(TimeRange::new(Timestamp(0), Timestamp(i64::MAX)).is_err());
    }
}
