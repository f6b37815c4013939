//! Times of history rows: milliseconds since 1970, and UTC days as buckets.

use std::fmt;
use std::str::FromStr;

const DAY_MS: i64 = 86_400_000;

/// A point in time: milliseconds since 1970, UTC. The column type `timestamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The latest time that a row may have: the end of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// The UTC day that contains it.
    pub const fn day(self) -> Day {
        Day(self.0.div_euclid(DAY_MS) as i32)
    }

    /// Whether it lies in the years 1970 to 9999.
    pub const fn is_valid(self) -> bool {
        self.0 >= 0 && self.0 <= Self::MAX.0
    }
}

/// A UTC day, stored as text: `2024-01-01`. Days sort like their texts.
///
/// ```
/// use emberkeep_schema::{Day, Timestamp};
///
/// let day: Day = "2024-02-29".parse().unwrap();
/// assert_eq!(day, Timestamp(1_709_164_800_000).day());
/// assert_eq!(day.next().to_string(), "2024-03-01");
/// assert!("2023-02-29".parse::<Day>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The first day that a row may have.
    pub const MIN: Day = Day(0);
    /// The last day that a row may have: 9999-12-31.
    pub const MAX: Day = Timestamp::MAX.day();

    /// The day so many days after 1970-01-01; `None` outside of the years 1970 to 9999.
    pub const fn from_number(days: i32) -> Option<Day> {
        if days >= 0 && days <= Self::MAX.0 { Some(Day(days)) } else { None }
    }

    /// Days since 1970-01-01; never below 0.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The day's first millisecond, 00:00:00.000 UTC.
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0 as i64 * DAY_MS)
    }

    /// The day's last millisecond, 23:59:59.999 UTC.
    pub const fn end(self) -> Timestamp {
        Timestamp(self.0 as i64 * DAY_MS + DAY_MS - 1)
    }

    /// The day after it.
    pub const fn next(self) -> Day {
        Day(self.0 + 1)
    }

    /// Year, month and day of the Gregorian calendar. The year begins in March for the computation, so that
    /// the leap day is the last one.
    const fn civil(self) -> (i64, i64, i64) {
        let shifted = self.0 as i64 + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        (year_of_era + era * 400 + (month <= 2) as i64, month, day)
    }

    /// The day of a text such as `2024-01-31`.
    pub(crate) const fn parse(text: &str) -> Option<Day> {
        let text = text.as_bytes();
        if text.len() != 10 {
            return None;
        }
        // Year, month and day.
        let (mut numbers, mut part, mut at) = ([0_i64; 3], 0, 0);
        while at < text.len() {
            match text[at] {
                b'-' if at == 4 || at == 7 => part += 1,
                digit if digit.is_ascii_digit() && at != 4 && at != 7 => {
                    numbers[part] = 10 * numbers[part] + (digit - b'0') as i64;
                }
                _ => return None,
            }
            at += 1;
        }
        let [year, month, day] = numbers;
        if year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 {
            return None;
        }
        // A day that does not exist, such as February 30, is another one in the calendar.
        let parsed = Day::from_civil(year, month, day);
        let (found_year, found_month, found_day) = parsed.civil();
        if found_year == year && found_month == month && found_day == day { Some(parsed) } else { None }
    }

    const fn from_civil(year: i64, month: i64, day: i64) -> Day {
        let year = if month <= 2 { year - 1 } else { year };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
        Day((era * 146_097 + day_of_era - 719_468) as i32)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// A text that is not a day from 1970-01-01 to 9999-12-31.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a day such as 2024-01-31, from 1970 to 9999")]
pub struct InvalidDay {
    text: String,
}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Day, InvalidDay> {
        Day::parse(text).ok_or_else(|| InvalidDay { text: text.chars().take(32).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_that_are_not_days_are_refused() {
        for text in [
            "",
            "2024-1-01",
            "2024-13-01",
            "2024-02-30",
            "1969-12-31",
            "2024/01/01",
            "20240101--",
            "é024-01-0",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert_eq!(Day::MAX.to_string(), "9999-12-31");
        assert_eq!(Day::MIN.to_string(), "1970-01-01");
    }

    proptest! {
        #[test]
        fn a_day_is_read_as_it_is_printed(number in 0..=Day::MAX.number()) {
            let day = Day::from_number(number).unwrap();
            prop_assert_eq!(day.to_string().parse::<Day>(), Ok(day));
            prop_assert_eq!((day.start().day(), day.end().day()), (day, day));
        }
    }
}
