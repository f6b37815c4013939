//! The rules of Galaxy: pure functions on clock and automation rules.

use super::error::{Error, Result};
use super::limits::{
    ACTIONS_MAX, CONDITIONS_MAX, JSON_BYTES_MAX, RATE_MAX, RATE_MIN, SYNC_ADJUSTMENT_MAX,
    SYNC_SCALE_TOLERANCE, WORD_BYTES_MAX,
};
use crate::world::word_problem;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A condition of a trigger. `value` and `args` are JSON as it was written.
#[derive(Clone, Debug, Deserialize)]
pub struct Condition {
    /// What is compared, such as `fuel`.
    pub field: String,
    /// How, such as `<`.
    pub op: String,
    /// With what.
    pub value: Box<RawValue>,
    /// Arguments of the field, such as the body whose distance it is.
    #[serde(default)]
    pub args: Option<Box<RawValue>>,
}

/// When a rule acts.
#[derive(Clone, Debug, Deserialize)]
pub struct Trigger {
    /// At most 5.
    pub conditions: Vec<Condition>,
    /// How they are combined: `AND`.
    pub logic: String,
}

impl Trigger {
    /// Reads a trigger. Refused: other JSON, no or more than 5 conditions, a logic other than `AND`.
    pub fn parse(json: &str) -> Result<Trigger> {
        check_length("trigger", json)?;
        let trigger: Trigger = serde_json::from_str(json).map_err(|error| {
            let expected = r#"expected {"conditions": [{"field", "op", "value", "args"?}], "logic": "AND"}"#;
            Error::invalid("trigger", format!("{error}, {expected}"))
        })?;
        let count = trigger.conditions.len();
        if !(1..=CONDITIONS_MAX).contains(&count) {
            return Err(Error::invalid(
                "trigger",
                format!("{count} conditions, expected 1 to {CONDITIONS_MAX}"),
            ));
        }
        if trigger.logic != "AND" {
            return Err(Error::invalid("trigger", format!("logic {:?}, expected \"AND\"", trigger.logic)));
        }
        for condition in &trigger.conditions {
            check_word("field of a condition", &condition.field)?;
            check_word("operator of a condition", &condition.op)?;
        }
        Ok(trigger)
    }
}

/// Refuses what is not a list of 1 to 5 JSON objects.
pub(super) fn check_actions(json: &str) -> Result<()> {
    check_length("actions", json)?;
    let actions: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(json)
        .map_err(|error| Error::invalid("actions", format!("{error}, expected a list of objects")))?;
    if !(1..=ACTIONS_MAX).contains(&actions.len()) {
        let problem = format!("{} actions, expected 1 to {ACTIONS_MAX}", actions.len());
        return Err(Error::invalid("actions", problem));
    }
    Ok(())
}

/// Refuses what is not a JSON object.
pub(super) fn check_object(what: &'static str, json: &str) -> Result<()> {
    check_length(what, json)?;
    let object: std::result::Result<serde_json::Map<String, serde_json::Value>, _> =
        serde_json::from_str(json);
    object.map(drop).map_err(|error| Error::invalid(what, format!("{error}, expected a JSON object")))
}

fn check_length(what: &'static str, json: &str) -> Result<()> {
    if json.len() <= JSON_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{} bytes, expected at most {JSON_BYTES_MAX}", json.len())))
}

/// Refuses a word that is empty or too long.
pub(super) fn check_word(what: &'static str, word: &str) -> Result<()> {
    let problem = match word {
        "" => Some(format!("empty, expected 1 to {WORD_BYTES_MAX} bytes")),
        word => word_problem(word, WORD_BYTES_MAX),
    };
    problem.map_or(Ok(()), |problem| Err(Error::invalid(what, problem)))
}

/// Refuses a tick rate or time scale out of range, NaN included.
pub(super) fn check_rate(what: &'static str, rate: f64) -> Result<()> {
    if (RATE_MIN..=RATE_MAX).contains(&rate) {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{rate}, expected {RATE_MIN} to {RATE_MAX}")))
}

/// The speed of game time in a step: the time scale, adjusted by at most 5 % until game time meets UTC if the scale is 1 and
/// synchronization is on. `behind_us` is how far game time is behind UTC at the step's begin, `elapsed_us` the step in real
/// time. The last adjustment is no greater than what is missing.
pub(super) fn effective_scale(scale: f64, is_synchronized: bool, behind_us: i64, elapsed_us: i64) -> f64 {
    if !is_synchronized || (scale - 1.0).abs() > SYNC_SCALE_TOLERANCE || elapsed_us <= 0 {
        return scale;
    }
    let wanted = behind_us as f64 / elapsed_us as f64;
    scale + wanted.clamp(-SYNC_ADJUSTMENT_MAX, SYNC_ADJUSTMENT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trigger(conditions: usize, logic: &str) -> String {
        let one = r#"{"field":"fuel","op":"<","value":1.50}"#;
        format!(r#"{{"conditions":[{}],"logic":"{logic}"}}"#, vec![one; conditions].join(","))
    }

    #[test]
    fn triggers_are_bounded() {
        assert_eq!(Trigger::parse(&trigger(5, "AND")).unwrap().conditions[0].value.get(), "1.50");
        for json in [trigger(6, "AND"), trigger(0, "AND"), trigger(1, "OR"), "[]".into(), "{}".into()] {
            assert!(matches!(Trigger::parse(&json), Err(Error::Invalid { what: "trigger", .. })), "{json}");
        }
        let empty = trigger(1, "AND").replace("fuel", "");
        assert!(Trigger::parse(&empty).is_err());
        assert!(
            check_actions("[{}]").is_ok() && check_actions("[]").is_err() && check_actions("[1]").is_err()
        );
        assert!(check_actions(&format!("[{}]", ["{}"; 6].join(","))).is_err());
    }

    #[test]
    fn rates_have_a_range() {
        assert!(check_rate("time scale", 0.1).is_ok() && check_rate("time scale", 100.0).is_ok());
        for rate in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY] {
            assert!(check_rate("time scale", rate).is_err(), "{rate}");
        }
    }

    #[test]
    fn only_a_scale_of_1_is_synchronized() {
        assert_eq!(effective_scale(2.0, true, 10_000_000, 100_000), 2.0);
        assert_eq!(effective_scale(1.0, false, 10_000_000, 100_000), 1.0);
        assert_eq!(effective_scale(1.0, true, 10_000_000, 100_000), 1.05);
        assert_eq!(effective_scale(1.0, true, -10_000_000, 100_000), 0.95);
        assert_eq!(effective_scale(1.0, true, 1_000, 100_000), 1.01);
    }

    proptest! {
        #[test]
        fn synchronized_time_comes_nearer_and_never_passes(behind in -1_000_000_000i64..1_000_000_000, elapsed in 1i64..10_000_000) {
            let scale = effective_scale(1.0, true, behind, elapsed);
            let after = behind as f64 + elapsed as f64 - elapsed as f64 * scale;
            prop_assert!(after.abs() <= (behind as f64).abs() + 1e-3);
            prop_assert!((0.95..=1.05).contains(&scale));
            prop_assert!(after * behind as f64 >= -1.0, "it does not change its side");
        }
    }
}
