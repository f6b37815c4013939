//! Game time: microseconds, and ISO 8601 at its key.

use emberkeep_schema::{Codec, ValueError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
/// The years with four digits, 0000 to 9999, in microseconds since 1970.
const RANGE_US: std::ops::RangeInclusive<i64> = -62_167_219_200 * SECOND_US..=253_402_300_800 * SECOND_US - 1;

/// A moment of the game, in microseconds since 1970 (UTC), in the years 0000 to 9999.
///
/// Its text is ISO 8601 and has a fraction only if the time has one: `2000-01-01T13:00:00Z`,
/// `2000-01-01T13:00:00.250000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GameTime(i64);

impl GameTime {
    /// The time of these microseconds since 1970, limited to the years 0000 to 9999.
    pub fn from_micros(micros: i64) -> GameTime {
        GameTime(micros.clamp(*RANGE_US.start(), *RANGE_US.end()))
    }

    /// The time of these milliseconds since 1970.
    pub fn from_millis(millis: i64) -> GameTime {
        GameTime::from_micros(millis.saturating_mul(1_000))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The time so many microseconds later.
    pub fn plus_micros(self, micros: i64) -> GameTime {
        GameTime::from_micros(self.0.saturating_add(micros))
    }

    /// Reads ISO 8601 with `Z`, an offset, or none (then it is UTC). A finer fraction than microseconds is cut off.
    pub fn parse(text: &str) -> Option<GameTime> {
        let bytes = text.as_bytes();
        let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if bytes.len() < 19 || !text.is_ascii() || !matches!(bytes[10], b'T' | b't' | b' ') {
            return None;
        }
        if separators.iter().any(|(at, byte)| bytes[*at] != *byte) {
            return None;
        }
        let number = |range: std::ops::Range<usize>| digits(&text[range]);
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !(1..=12).contains(&month) || day < 1 || day > days_of_month(year, month) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (fraction_us, offset_s) = fraction_and_offset(&text[19..])?;
        let seconds =
            days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset_s;
        let micros = seconds * SECOND_US + fraction_us;
        RANGE_US.contains(&micros).then_some(GameTime(micros))
    }
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Microseconds of a fraction, and seconds of the offset after it.
fn fraction_and_offset(text: &str) -> Option<(i64, i64)> {
    let (fraction, rest) = match text.strip_prefix('.') {
        None => (0, text),
        Some(after) => {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            if length == 0 {
                return None;
            }
            let six = format!("{:0<6}", &after[..length.min(6)]);
            (digits(&six)?, &after[length..])
        }
    };
    Some((fraction, offset(rest)?))
}

fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first() {
        None | Some(b'Z' | b'z') if text.len() <= 1 => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date of the Gregorian calendar. Years are counted from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

impl fmt::Display for GameTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(DAY_US));
        let of_day = self.0.rem_euclid(DAY_US);
        let (second, fraction) = (of_day / SECOND_US, of_day % SECOND_US);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if fraction > 0 {
            write!(f, ".{fraction:06}")?;
        }
        f.write_str("Z")
    }
}

impl FromStr for GameTime {
    type Err = crate::galaxy::Error;

    fn from_str(text: &str) -> Result<GameTime, Self::Err> {
        let problem = || format!("{text:?}, expected ISO 8601 such as 2000-01-01T13:00:00Z");
        GameTime::parse(text).ok_or_else(|| crate::galaxy::Error::invalid("game time", problem()))
    }
}

impl Serialize for GameTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GameTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<GameTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        GameTime::parse(&text).ok_or_else(|| serde::de::Error::custom("expected ISO 8601"))
    }
}

impl Codec for GameTime {
    type Value = GameTime;
    const TYPE: &'static str = "ISO 8601 time";

    fn encode(value: &GameTime, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<GameTime, ValueError> {
        let time = std::str::from_utf8(bytes).ok().and_then(GameTime::parse);
        time.ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_document_s_time_has_no_fraction() {
        let time = GameTime::parse("2000-01-01T13:00:00Z").unwrap();
        assert_eq!(time.micros(), 946_731_600 * SECOND_US);
        assert_eq!(time.to_string(), "2000-01-01T13:00:00Z");
        assert_eq!(time.plus_micros(250_000).to_string(), "2000-01-01T13:00:00.250000Z");
    }

    #[test]
    fn other_forms_of_iso_8601_are_read() {
        let same = GameTime::parse("2000-01-01T13:00:00Z");
        for text in [
            "2000-01-01T13:00:00+00:00",
            "2000-01-01T15:30:00+02:30",
            "2000-01-01 13:00:00",
            "2000-01-01T13:00:00.0000001Z",
        ] {
            assert_eq!(GameTime::parse(text), same, "{text}");
        }
        for text in [
            "",
            "2000-01-01",
            "2000-13-01T00:00:00Z",
            "2001-02-29T00:00:00Z",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:00:00.Z",
            "2000-01-01T00:00:00X",
            "20é0-01-01T00:00:00Z",
            "+200-01-01T00:00:00Z",
        ] {
            assert_eq!(GameTime::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_is_read_back(micros in RANGE_US) {
            let time = GameTime::from_micros(micros);
            prop_assert_eq!(GameTime::parse(&time.to_string()), Some(time));
        }
    }
}
