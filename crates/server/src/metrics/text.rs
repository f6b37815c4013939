//! The Prometheus text format.

use std::fmt::Write as _;

/// A page in the Prometheus text format.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// The header of the samples that follow.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One sample of the family that was begun last.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if index == 0 { '{' } else { ',' });
            text.chars().for_each(|char| self.push_escaped(char));
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family with one sample.
    pub(super) fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.line(name, &[], value);
    }

    fn push_escaped(&mut self, char: char) {
        match char {
            '\\' => self.0.push_str("\\\\"),
            '"' => self.0.push_str("\\\""),
            '\n' => self.0.push_str("\\n"),
            other => self.0.push(other),
        }
    }

    pub(super) fn text(self) -> String {
        self.0
    }
}
