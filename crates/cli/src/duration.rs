//! Times on the command line: `500ms`, `30s`, `2m`, `1h`.

use std::time::Duration;

/// Reads a time, for clap.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a number and a unit, such as 500ms, 30s, 2m or 1h".into()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number before the unit".to_owned())?;
    let whole = number.checked_mul(milliseconds).filter(|ms| (1..=31_536_000_000).contains(ms));
    whole.map(Duration::from_millis).ok_or_else(|| "expected a time between 1ms and one year".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_a_number_and_a_unit() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        for text in ["", "30", "s", "-1s", "1.5s", "30 s", "0s", "99999999999999999999s", "9999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
