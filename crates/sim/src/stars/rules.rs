//! Automation rules of the star system: which conditions it knows, and what it does when all of a rule's are met.
//!
//! The library stores rules and leaves their words to the game. These are the words of this one.

use serde::Deserialize;

/// When a rule acts: all conditions are met.
#[derive(Debug, Deserialize)]
pub(super) struct Trigger {
    pub(super) conditions: Vec<Condition>,
}

/// `field op value`, such as `fuel < 500`.
#[derive(Debug, Deserialize)]
pub(super) struct Condition {
    field: Field,
    op: Comparison,
    value: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Field {
    /// Kilograms.
    Fuel,
    /// Metres above the surface of the body that the ship circles.
    Altitude,
    /// Metres to `args.target`: a body, a station, a jump gate or a ship.
    Distance,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Comparison {
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    AtLeast,
}

#[derive(Debug, Default, Deserialize)]
struct Args {
    target: Option<String>,
}

/// What a rule does.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(super) enum Action {
    SetThrust {
        level: f64,
    },
    SetAttitude {
        mode: String,
    },
    /// To a circle at this height above the body that the ship circles.
    Transfer {
        altitude: f64,
    },
}

/// What a ship's conditions can ask for.
pub(super) trait Gauges {
    /// `None`: nothing by this name is there, so the condition is not met.
    fn read(&self, field: Field, target: Option<&str>) -> Option<f64>;
}

impl Trigger {
    pub(super) fn is_met(&self, gauges: &dyn Gauges) -> bool {
        self.conditions.iter().all(|condition| condition.is_met(gauges))
    }
}

impl Condition {
    fn is_met(&self, gauges: &dyn Gauges) -> bool {
        let read = gauges.read(self.field, self.args.target.as_deref());
        read.is_some_and(|read| match self.op {
            Comparison::Less => read < self.value,
            Comparison::AtMost => read <= self.value,
            Comparison::Greater => read > self.value,
            Comparison::AtLeast => read >= self.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ship;

    impl Gauges for Ship {
        fn read(&self, field: Field, target: Option<&str>) -> Option<f64> {
            match (field, target) {
                (Field::Fuel, _) => Some(500.0),
                (Field::Altitude, _) => Some(2e5),
                (Field::Distance, Some("Luna")) => Some(3.8e8),
                (Field::Distance, _) => None,
            }
        }
    }

    fn is_met(conditions: &str) -> bool {
        let trigger = format!(r#"{{"conditions":[{conditions}],"logic":"AND"}}"#);
        serde_json::from_str::<Trigger>(&trigger).expect("a trigger").is_met(&Ship)
    }

    #[test]
    fn all_conditions_must_be_met() {
        let low = r#"{"field":"fuel","op":"<=","value":500}"#;
        assert!(is_met(low));
        assert!(is_met(&format!(r#"{low},{{"field":"altitude","op":">","value":100000}}"#)));
        assert!(!is_met(&format!(r#"{low},{{"field":"altitude","op":"<","value":100000}}"#)));
        assert!(is_met(r#"{"field":"distance","op":">=","value":3.8e8,"args":{"target":"Luna"}}"#));
        assert!(
            !is_met(r#"{"field":"distance","op":">","value":0,"args":{"target":"Vulcan"}}"#),
            "it is not there"
        );
        assert!(!is_met(r#"{"field":"distance","op":">","value":0}"#), "no target");
    }

    #[test]
    fn actions_are_read_by_their_names() {
        let actions = r#"[{"action":"set_thrust","level":0},{"action":"transfer","altitude":8e5},
                          {"action":"set_attitude","mode":"prograde"}]"#;
        let expected = [
            Action::SetThrust { level: 0.0 },
            Action::Transfer { altitude: 8e5 },
            Action::SetAttitude { mode: "prograde".to_owned() },
        ];
        assert_eq!(serde_json::from_str::<Vec<Action>>(actions).expect("actions"), expected);
        serde_json::from_str::<Action>(r#"{"action":"explode"}"#).expect_err("unknown words are refused");
    }
}
