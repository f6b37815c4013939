//! `emberkeep config`: what is in force, as a file that could be given back. Secrets are masked.

use super::declared::SETTINGS;
use super::source::InForce;
use std::fmt::Write as _;

/// The settings in force, one line each, with who said so.
pub(crate) fn show(found: &InForce) -> String {
    let mut out = String::new();
    for setting in SETTINGS {
        let _ = match found.get(setting.name) {
            Some((text, source)) => {
                writeln!(out, "{} = {}  # {source}", setting.name, toml::Value::from(masked(text)))
            }
            None => writeln!(out, "# {} is not set ({})", setting.name, setting.variable()),
        };
    }
    out
}

/// A text without the password of the URL that it may be.
fn masked(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // The last `@` ends the credentials: a password may hold one itself.
    let Some((credentials, host)) = rest.rsplit_once('@') else { return text.to_owned() };
    let user = credentials.split_once(':').map_or("", |(user, _)| user);
    format!("{scheme}://{user}:***@{host}")
}

#[cfg(test)]
mod tests {
    use super::super::source::{Source, in_force};
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("redis://ann:s3cr@t@host:1/0", "redis://ann:***@host:1/0"),
            ("redis://:s3cret@host", "redis://:***@host"),
            ("redis://s3cret@host", "redis://:***@host"),
            ("redis://host:6379", "redis://host:6379"),
            ("embedded", "embedded"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn what_is_shown_can_be_read_as_a_file() {
        let mut found = in_force(Default::default(), Default::default(), None);
        found.insert("data", ("a \"folder\"".into(), Source::Flag));
        let shown = show(&found);
        let read: toml::Table = toml::from_str(&shown).unwrap();
        assert_eq!(read["data"].as_str(), Some("a \"folder\""));
        assert!(shown.contains("http = \"127.0.0.1:7777\"  # default"), "{shown}");
        assert!(shown.contains("# tokens is not set (EMBERKEEP_TOKENS)"), "{shown}");
    }
}
