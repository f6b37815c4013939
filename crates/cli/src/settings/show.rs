//! `emberkeep config`: what is in force, as a file that could be given back. Secrets are masked.

use super::declared::{SETTINGS, Setting};
use super::source::InForce;
use crate::redact::masked;
use std::fmt::Write as _;

/// The settings in force, one line each, with its source.
pub(super) fn show(found: &InForce) -> String {
    let mut out = String::new();
    for setting in SETTINGS {
        let _ = match found.get(setting.name) {
            Some((text, source)) => {
                writeln!(out, "{} = {}  # {source}", setting.name, toml::Value::from(shown(setting, text)))
            }
            None => writeln!(out, "# {} is not set ({})", setting.name, setting.variable()),
        };
    }
    out
}

/// The text of a setting. Only the URLs of stores hold a secret, and whatever looks like one may be it in the wrong place.
fn shown(setting: &Setting, text: &str) -> String {
    match ["hot", "history"].contains(&setting.name) || text.contains("://") {
        true => masked(text),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{Source, in_force};
    use super::*;

    #[test]
    fn what_is_shown_can_be_read_as_a_file() {
        let mut found = in_force(Default::default(), Default::default(), None);
        found.insert("data", ("a \"folder\"@1".into(), Source::Flag));
        let shown = show(&found);
        let read: toml::Table = toml::from_str(&shown).unwrap();
        assert_eq!(read["data"].as_str(), Some("a \"folder\"@1"));
        assert!(shown.contains("http = \"127.0.0.1:7777\"  # default"), "{shown}");
        assert!(shown.contains("# tokens is not set (EMBERKEEP_TOKENS)"), "{shown}");
    }
}
