//! Where settings come from: flags before variables before a file before defaults.

use super::declared::{SETTINGS, Setting};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Settings by name.
pub(crate) type Given = BTreeMap<&'static str, String>;

/// Who said what a setting is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Variable,
    File(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag => f.write_str("flag"),
            Source::Variable => f.write_str("variable"),
            Source::File(path) => path.display().fmt(f),
            Source::Default => f.write_str("default"),
        }
    }
}

/// The settings in force, each with who said so.
pub(crate) type InForce = BTreeMap<&'static str, (String, Source)>;

/// Variables of ours that are no settings: they belong to the tests.
const NO_SETTINGS: &[&str] = &["EMBERKEEP_CONFIG", "EMBERKEEP_VALKEY", "EMBERKEEP_REDIS"];
const TEST_PREFIX: &str = "EMBERKEEP_TEST_";

/// Puts the sources over one another.
pub(crate) fn in_force(flags: Given, variables: Given, file: Option<(PathBuf, Given)>) -> InForce {
    let defaults = SETTINGS.iter().filter_map(|setting| Some((setting.name, setting.default?.to_owned())));
    let mut found: InForce = defaults.map(|(name, text)| (name, (text, Source::Default))).collect();
    let mut put = |given: Given, source: Source| {
        found.extend(given.into_iter().map(|(name, text)| (name, (text, source.clone()))));
    };
    if let Some((path, given)) = file {
        put(given, Source::File(path));
    }
    put(variables, Source::Variable);
    put(flags, Source::Flag);
    found
}

/// The settings among the environment's variables. One that begins like ours and is none is an error.
pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> anyhow::Result<Given> {
    let mut given = Given::new();
    for (variable, text) in variables.filter(|(name, _)| name.starts_with("EMBERKEEP_")) {
        if NO_SETTINGS.contains(&variable.as_str()) || variable.starts_with(TEST_PREFIX) {
            continue;
        }
        match SETTINGS.iter().find(|setting| setting.variable() == variable) {
            Some(setting) => given.insert(setting.name, text),
            None => bail!("unknown variable {variable}{}", nearest(&variable, Setting::variable)),
        };
    }
    Ok(given)
}

/// The settings of a file.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<Given> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    from_text(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn from_text(text: &str) -> anyhow::Result<Given> {
    let table: toml::Table = toml::from_str(text)?;
    let mut given = Given::new();
    for (key, value) in table {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == key) else {
            bail!("unknown key {key:?}{}", nearest(&key, |setting| setting.name.to_owned()));
        };
        given.insert(setting.name, plain(&key, value)?);
    }
    Ok(given)
}

/// A value as a flag would spell it.
fn plain(key: &str, value: toml::Value) -> anyhow::Result<String> {
    Ok(match value {
        toml::Value::String(text) => text,
        toml::Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(|item| plain(key, item)).collect();
            items?.join(",")
        }
        toml::Value::Table(_) => bail!("{key} is a table, expected a text or a list of texts"),
        other => other.to_string(),
    })
}

/// What was probably meant.
fn nearest(wrong: &str, name: impl Fn(&Setting) -> String) -> String {
    let candidates = SETTINGS.iter().map(|setting| {
        let name = name(setting);
        (strsim::jaro_winkler(&name.to_lowercase(), &wrong.to_lowercase()), name)
    });
    let best = candidates.max_by(|one, other| one.0.total_cmp(&other.0));
    match best.filter(|(likeness, _)| *likeness > 0.75) {
        Some((_, name)) => format!("; did you mean {name}?"),
        None => {
            let all: Vec<String> = SETTINGS.iter().map(name).collect();
            format!("; known are {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&'static str, &str)]) -> Given {
        pairs.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    }

    #[test]
    fn flags_come_before_variables_before_the_file_before_defaults() {
        let file = given(&[("http", "file"), ("hot", "file"), ("log", "file")]);
        let path = PathBuf::from("e.toml");
        let found = in_force(
            given(&[("http", "flag")]),
            given(&[("http", "variable"), ("hot", "variable")]),
            Some((path.clone(), file)),
        );
        let of = |name: &str| found[name].clone();
        assert_eq!(of("http"), ("flag".into(), Source::Flag));
        assert_eq!(of("hot"), ("variable".into(), Source::Variable));
        assert_eq!(of("log"), ("file".into(), Source::File(path)));
        assert_eq!(of("ws-origins"), ("*".into(), Source::Default));
        assert!(!found.contains_key("data"));
    }

    #[test]
    fn an_unknown_key_is_refused_and_the_nearest_is_named() {
        let told = from_text("tls_certificat = \"x\"").unwrap_err().to_string();
        assert_eq!(told, "unknown key \"tls_certificat\"; did you mean tls-certificate?");
        let told = from_text("zzz = 1").unwrap_err().to_string();
        assert!(told.contains("known are http, hot, data"), "{told}");
        let variable = ("EMBERKEEP_HTPP".to_owned(), String::new());
        let told = from_variables([variable].into_iter()).unwrap_err().to_string();
        assert_eq!(told, "unknown variable EMBERKEEP_HTPP; did you mean EMBERKEEP_HTTP?");
    }

    #[test]
    fn a_file_may_hold_lists_and_no_tables() {
        let found = from_text("origins = [\"https://a.example\", \"https://b.example\"]").unwrap();
        assert_eq!(found["origins"], "https://a.example,https://b.example");
        assert!(from_text("[http]\nport = 1").unwrap_err().to_string().contains("expected a text"));
    }

    #[test]
    fn variables_of_others_and_of_tests_are_left_alone() {
        let variables = [("PATH", "x"), ("EMBERKEEP_TEST_LINES", "y"), ("EMBERKEEP_DATA", "d")];
        let variables = variables.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(from_variables(variables.into_iter()).unwrap(), given(&[("data", "d")]));
    }
}
