//! One line of the result: a workload of ours beside its peer, the ratio, and whether the goal is met.

use crate::measure::Samples;
use serde::Serialize;
use std::fmt;

/// What a workload should reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// Our figure divided by the peer's is at least this: for rates.
    RatioAtLeast(f64),
    /// Our figure divided by the peer's is at most this: for times and bytes.
    RatioAtMost(f64),
    /// Our figure itself is at least this.
    AtLeast(f64),
    /// Our figure itself is at most this.
    AtMost(f64),
    /// It is only reported, not compared.
    None,
}

impl Goal {
    fn met(self, ours: f64, ratio: f64) -> Option<bool> {
        match self {
            Goal::RatioAtLeast(least) => Some(ratio >= least),
            Goal::RatioAtMost(most) => Some(ratio <= most),
            Goal::AtLeast(least) => Some(ours >= least),
            Goal::AtMost(most) => Some(ours <= most),
            Goal::None => None,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::RatioAtLeast(least) => write!(f, "≥ {least}x"),
            Goal::RatioAtMost(most) => write!(f, "≤ {most}x"),
            Goal::AtLeast(least) => write!(f, "≥ {}", short(*least)),
            Goal::AtMost(most) => write!(f, "≤ {}", short(*most)),
            Goal::None => write!(f, "–"),
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The name of the workload.
    pub(super) workload: String,
    /// The median of our samples.
    pub(super) ours: f64,
    /// The median of the peer's samples.
    pub(super) peer: f64,
    /// Who the peer is.
    pub(super) peer_name: String,
    /// The unit of both.
    pub(super) unit: &'static str,
    /// The median of the rounds' ratios, ours divided by the peer's.
    pub(super) ratio: f64,
    /// What it should be.
    pub(super) goal: String,
    /// Whether it is; `null` where there is no goal.
    pub(super) met: Option<bool>,
    /// Lowest and highest of our samples.
    pub(super) ours_spread: [f64; 2],
    /// Lowest and highest of the peer's samples.
    pub(super) peer_spread: [f64; 2],
    /// Lowest and highest of the rounds' ratios.
    pub(super) ratio_spread: [f64; 2],
    /// What else is worth knowing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
}

impl Row {
    /// A line out of the samples of both sides.
    pub(super) fn new(workload: &str, unit: &'static str, ours: &Samples, peer: &Samples, goal: Goal) -> Row {
        let ratios = ours.over(peer);
        Row {
            workload: workload.to_owned(),
            ours: ours.median(),
            peer: peer.median(),
            peer_name: String::new(),
            unit,
            ratio: ratios.median(),
            goal: goal.to_string(),
            met: goal.met(ours.median(), ratios.median()),
            ours_spread: ours.spread(),
            peer_spread: peer.spread(),
            ratio_spread: ratios.spread(),
            note: String::new(),
        }
    }

    /// Names the peer that the row is compared with.
    pub(super) fn beside(mut self, peer: impl Into<String>) -> Row {
        self.peer_name = peer.into();
        self
    }

    /// Adds a remark below the row.
    pub(super) fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }
}

/// A number in at most about four digits.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        x if x >= 1e6 => format!("{:.2}M", number / 1e6),
        x if x >= 1e4 => format!("{:.0}k", number / 1e3),
        x if x >= 1e3 => format!("{:.1}k", number / 1e3),
        x if x >= 100.0 => format!("{number:.0}"),
        x if x >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_whether_its_goal_is_met() {
        let ours: Samples = [300.0, 310.0, 290.0].into_iter().collect();
        let peer: Samples = [200.0, 200.0, 200.0].into_iter().collect();
        let row = |goal| Row::new("w", "ns/op", &ours, &peer, goal);
        assert_eq!(row(Goal::RatioAtMost(2.0)).met, Some(true));
        assert_eq!(row(Goal::RatioAtLeast(2.0)).met, Some(false));
        assert_eq!(row(Goal::AtLeast(300.0)).met, Some(true));
        assert_eq!(row(Goal::AtMost(299.0)).met, Some(false));
        assert_eq!(row(Goal::None).met, None);
        assert_eq!(row(Goal::AtLeast(300_000.0)).goal, "≥ 300k");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.5, 12.34, 123.4, 1_234.0, 12_345.0, 1_234_567.0].map(short);
        assert_eq!(shown, ["0.50", "12.3", "123", "1.2k", "12k", "1.23M"]);
    }
}
