//! `Timestamp`: when a record changed last. Milliseconds in our API; in JSON a text, as Go encodes a
//! `time.Time`.
//!
//! Promises:
//! 1. We write RFC 3339 in UTC with milliseconds: `2024-02-29T23:59:59.007Z`. Go reads it.
//! 2. We read any number of fraction digits and any offset.
//! 3. A text in another format, or that is not a timestamp, is preserved until the record is changed.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// The range of years with four digits, 0000 to 9999, in milliseconds since 1970. Go reads no other years.
const MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

const DAY_MS: i64 = 86_400_000;

/// The time of the last change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Timestamp(Form);

/// The form in the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
enum Form {
    /// Never set: `null`, or the field is missing.
    #[default]
    Never,
    /// In our own format.
    Ms(i64),
    /// A text in another format.
    Text(Box<str>),
    /// A number in an unknown unit.
    Number(i64),
}

impl Timestamp {
    /// The timestamp of a time in milliseconds since 1970, limited to the years 0000 to 9999.
    pub fn at(ms: i64) -> Timestamp {
        Timestamp(Form::Ms(ms.clamp(*MS.start(), *MS.end())))
    }

    /// Milliseconds since 1970 of an RFC 3339 text; `None` if it is not one. Fractions are truncated.
    pub fn parse(text: &str) -> Option<i64> {
        parse(text)
    }

    /// The time in milliseconds since 1970; `None` if it was never set or is not a timestamp.
    pub fn ms(&self) -> Option<i64> {
        match &self.0 {
            Form::Ms(ms) => Some(*ms),
            Form::Text(text) => parse(text),
            Form::Never | Form::Number(_) => None,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Never => f.write_str("never"),
            Form::Ms(ms) => f.write_str(&written(*ms)),
            Form::Text(text) => f.write_str(text),
            Form::Number(number) => number.fmt(f),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Never => serializer.serialize_unit(),
            Form::Ms(ms) => serializer.serialize_str(&written(*ms)),
            Form::Text(text) => serializer.serialize_str(text),
            Form::Number(number) => serializer.serialize_i64(*number),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        deserializer.deserialize_any(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        let ours = parse(text).filter(|ms| MS.contains(ms) && written(*ms) == text);
        Ok(Timestamp(ours.map_or_else(|| Form::Text(text.into()), Form::Ms)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Timestamp, E> {
        Ok(Timestamp(Form::Number(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Timestamp, E> {
        let number = i64::try_from(number).map_err(|_| E::custom("a timestamp beyond i64"))?;
        self.visit_i64(number)
    }

    fn visit_unit<E: Error>(self) -> Result<Timestamp, E> {
        Ok(Timestamp::default())
    }
}

/// A time within [`MS`] in our own format.
fn written(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(days);
    let (seconds, ms) = (of_day / 1_000, of_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Parses an RFC 3339 text. Fractions are truncated to milliseconds.
fn parse(text: &str) -> Option<i64> {
    let mut rest = text.as_bytes();
    let year = number(&mut rest, 4)?;
    let month = number(after(&mut rest, b"-")?, 2).filter(|month| (1..=12).contains(month))?;
    let day = number(after(&mut rest, b"-")?, 2).filter(|day| (1..=days_in(year, month)).contains(day))?;
    let hour = number(after(&mut rest, b"Tt ")?, 2).filter(|hour| *hour < 24)?;
    let minute = number(after(&mut rest, b":")?, 2).filter(|minute| *minute < 60)?;
    let second = number(after(&mut rest, b":")?, 2).filter(|second| *second < 60)?;
    let ms = fraction(&mut rest)?;
    let offset = offset_minutes(rest)?;
    let minutes = hour * 60 + minute - offset;
    Some(days_of(year, month, day) * DAY_MS + minutes * 60_000 + second * 1_000 + ms)
}

/// Consumes one of these characters.
fn after<'t, 'a>(rest: &'t mut &'a [u8], marks: &[u8]) -> Option<&'t mut &'a [u8]> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    marks.contains(first).then_some(rest)
}

/// Consumes a number with exactly this many digits.
fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (number, tail) = rest.split_at_checked(digits)?;
    *rest = tail;
    number.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

/// Consumes a fraction of a second, if there is one, and returns its milliseconds.
fn fraction(rest: &mut &[u8]) -> Option<i64> {
    let Some(digits) = rest.strip_prefix(b".") else { return Some(0) };
    let count = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
    let (digits, tail) = digits.split_at(count);
    *rest = tail;
    let place = |(at, unit): (usize, i64)| unit * digits.get(at).map_or(0, |digit| i64::from(digit - b'0'));
    (count > 0).then(|| [100, 10, 1].into_iter().enumerate().map(place).sum())
}

/// Parses the offset at the end of the text: `Z` or `+02:00`.
fn offset_minutes(mut rest: &[u8]) -> Option<i64> {
    let (sign, tail) = rest.split_first()?;
    rest = tail;
    let sign = match sign {
        b'Z' | b'z' => return rest.is_empty().then_some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(&mut rest, 2).filter(|hours| *hours < 24)?;
    let minutes = number(after(&mut rest, b":")?, 2).filter(|minutes| *minutes < 60)?;
    rest.is_empty().then_some(sign * (hours * 60 + minutes))
}

/// Days in a month of the Gregorian calendar.
fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is the last day of a
/// year and the months before it have fixed lengths (153 days in five of them). 400 years have 146,097 days.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// The date of a day, counted from 1970-01-01. The inverse of [`days_of`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, turned) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + turned, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};
    use proptest::prelude::*;

    fn read(json: &str) -> Timestamp {
        Json::<Timestamp>::decode(json.as_bytes()).unwrap()
    }

    fn json_of(stamp: &Timestamp) -> String {
        let mut out = Vec::new();
        Json::<Timestamp>::encode(stamp, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_time_is_written_in_utc_with_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_709_251_199_007, "2024-02-29T23:59:59.007Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (*MS.start(), "0000-01-01T00:00:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(json_of(&Timestamp::at(ms)), format!("\"{text}\""));
        }
    }

    #[test]
    fn what_go_writes_is_read() {
        for (text, ms) in [
            ("2024-02-29T23:59:59.007123456Z", 1_709_251_199_007),
            ("2024-03-01T01:59:59.0079+02:00", 1_709_251_199_007),
            ("2024-02-29T18:29:59-05:30", 1_709_251_199_000),
            ("2024-02-29T23:59:59.5Z", 1_709_251_199_500),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000),
            ("1969-12-31T23:59:59.9999999Z", -1),
        ] {
            assert_eq!(read(&format!("\"{text}\"")).ms(), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_others_wrote_stays_as_it_is() {
        for json in [
            r#""2024-03-01T01:59:59.0079+02:00""#,
            r#""0001-01-01T00:00:00Z""#,
            r#""2024-02-30T00:00:00.000Z""#,
            r#""yesterday""#,
            r#""""#,
            "1709251199",
            "-5",
            "null",
        ] {
            assert_eq!(json_of(&read(json)), json);
        }
    }

    #[test]
    fn what_is_no_timestamp_has_no_time() {
        for text in [
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+2:00",
            "2024-01-01T00:00:00Zulu",
            "2024-01-01",
            "+024-01-01T00:00:00Z",
        ] {
            assert_eq!(read(&format!("\"{text}\"")).ms(), None, "{text}");
        }
        assert_eq!((read("null").ms(), read("7").ms()), (None, None));
        assert!(Json::<Timestamp>::decode(b"{}").is_err());
    }

    proptest! {
        #[test]
        fn a_time_survives(ms in MS) {
            let stamp = Timestamp::at(ms);
            prop_assert_eq!(stamp.ms(), Some(ms));
            prop_assert_eq!(read(&json_of(&stamp)), stamp);
        }

        #[test]
        fn days_count_one_by_one(days in -719_528i64..2_932_896) {
            let (year, month, day) = date_of(days);
            prop_assert_eq!(days_of(year, month, day), days);
            let next = if day < days_in(year, month) { (year, month, day + 1) }
                else if month < 12 { (year, month + 1, 1) }
                else { (year + 1, 1, 1) };
            prop_assert_eq!(date_of(days + 1), next);
        }

        #[test]
        fn no_text_is_too_strange(text: String) {
            prop_assert_eq!(read(&serde_json::to_string(&text).unwrap()).to_string(), text);
        }
    }
}
