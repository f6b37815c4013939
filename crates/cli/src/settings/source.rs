//! Where settings come from: flags before variables before a file before defaults.

use super::declared::{SETTINGS, Setting};
use anyhow::{Context, anyhow, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Texts of settings by name, as one source gives them.
pub(crate) type SettingTexts = BTreeMap<&'static str, String>;

/// Where a setting was given.
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

/// The settings in force, each with its source.
pub(crate) type InForce = BTreeMap<&'static str, (String, Source)>;

/// Settings that are lists, and may be empty.
const LISTS: [&str; 3] = ["origins", "trusted-proxies", "ws-origins"];

/// Puts the sources over one another.
pub(crate) fn in_force(
    flags: SettingTexts,
    variables: SettingTexts,
    file: Option<(PathBuf, SettingTexts)>,
) -> InForce {
    let defaults = SETTINGS.iter().filter_map(|setting| Some((setting.name, setting.default?.to_owned())));
    let mut found: InForce = defaults.map(|(name, text)| (name, (text, Source::Default))).collect();
    let mut put = |given: SettingTexts, source: Source| {
        found.extend(given.into_iter().map(|(name, text)| (name, (text, source.clone()))));
    };
    if let Some((path, given)) = file {
        put(given, Source::File(path));
    }
    put(variables, Source::Variable);
    put(flags, Source::Flag);
    found
}

/// Refuses an empty text: it would hide what another source says, and mean that the setting is not set.
pub(crate) fn refuse_empty(found: &InForce) -> anyhow::Result<()> {
    let is_empty =
        |(name, (text, _)): &(&&str, &(String, Source))| text.trim().is_empty() && !LISTS.contains(name);
    match found.iter().find(is_empty) {
        Some((name, (_, source))) => bail!("{name} is empty ({source}); give it a value, or leave it out"),
        None => Ok(()),
    }
}

/// The settings of a file.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<SettingTexts> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    from_text(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn from_text(text: &str) -> anyhow::Result<SettingTexts> {
    let table: toml::Table = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
    let mut given = SettingTexts::new();
    for (key, value) in table {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == key) else {
            bail!("unknown key {key:?}{}", nearest(&key, |setting| setting.name.to_owned()));
        };
        given.insert(setting.name, plain(&key, value)?);
    }
    Ok(given)
}

/// What is wrong and where, without the line itself: it may hold a password.
fn unreadable(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count();
    let value = text.lines().nth(line).and_then(|line| Some(line.split_once('=')?.1.trim_start()));
    let unquoted = value.is_some_and(|value| !value.starts_with(['"', '\'', '[', '{']));
    let advice = if unquoted { "; texts stand in quotes, as in http = \"127.0.0.1:7777\"" } else { "" };
    anyhow!("line {}: {}{advice}", line + 1, error.message())
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

/// Names that other servers give to a setting of ours.
const OTHER_NAMES: [(&str, &[&str]); 5] = [
    ("http", &["port", "host", "listen", "bind", "addr", "address"]),
    ("hot", &["redis", "redis-url", "url", "store", "backend"]),
    ("data", &["dir", "data-dir", "folder", "path"]),
    ("tls-certificate", &["cert", "tls-cert"]),
    ("log-level", &["level", "verbosity"]),
];

/// The setting that another server's name for it stands for.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('_', "-");
    OTHER_NAMES.iter().find(|(_, others)| others.contains(&name.as_str())).map(|(setting, _)| *setting)
}

/// Suggests the setting that was probably meant, or lists all of them.
pub(super) fn nearest(wrong: &str, name: impl Fn(&Setting) -> String) -> String {
    let plain = wrong.trim_start_matches("EMBERKEEP_");
    if let Some(setting) = meant(plain).and_then(|meant| SETTINGS.iter().find(|s| s.name == meant)) {
        return format!("; did you mean {}?", name(setting));
    }
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

    fn given(pairs: &[(&'static str, &str)]) -> SettingTexts {
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
        let error = from_text("tls_certificat = \"x\"").unwrap_err().to_string();
        assert_eq!(error, "unknown key \"tls_certificat\"; did you mean tls-certificate?");
        let error = from_text("zzz = 1").unwrap_err().to_string();
        assert!(error.contains("known are http, hot, data"), "{error}");
        let error = from_text("port = 7777").unwrap_err().to_string();
        assert_eq!(error, "unknown key \"port\"; did you mean http?");
    }

    #[test]
    fn a_file_may_hold_lists_and_no_tables() {
        let found = from_text("origins = [\"https://a.example\", \"https://b.example\"]").unwrap();
        assert_eq!(found["origins"], "https://a.example,https://b.example");
        assert!(from_text("[http]\nport = 1").unwrap_err().to_string().contains("expected a text"));
    }

    #[test]
    fn an_empty_text_hides_nothing() {
        let file = Some((PathBuf::from("e.toml"), given(&[("tokens", "t.toml")])));
        let found = in_force(SettingTexts::new(), given(&[("tokens", "")]), file);
        let error = refuse_empty(&found).unwrap_err().to_string();
        assert_eq!(error, "tokens is empty (variable); give it a value, or leave it out");
        refuse_empty(&in_force(given(&[("ws-origins", "")]), SettingTexts::new(), None)).unwrap();
    }

    #[test]
    fn a_file_that_is_not_toml_is_refused_without_its_text() {
        let error = from_text("http = 127.0.0.1:7777").unwrap_err().to_string();
        assert!(error.starts_with("line 1: ") && error.ends_with("http = \"127.0.0.1:7777\""), "{error}");
        let error = from_text("log = \"text\"\nhot = \"redis://:s3cret@host\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && !error.contains("s3cret"), "{error}");
    }
}
