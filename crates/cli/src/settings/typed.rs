//! Settings as what they mean. An error names the setting, who gave it, and what was expected.

use super::source::InForce;
use crate::open::StoreArguments;
use crate::secret::masked;
use anyhow::{Context, anyhow, bail};
use emberkeep_server::{Tls, Waits};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// What the server runs with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) store: StoreArguments,
    pub(crate) listen: emberkeep_server::Settings,
    pub(crate) log: LogForm,
    pub(crate) log_level: tracing::Level,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogForm {
    Text,
    Json,
}

impl FromStr for LogForm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LogForm, &'static str> {
        match text {
            "text" => Ok(LogForm::Text),
            "json" => Ok(LogForm::Json),
            _ => Err("expected text or json"),
        }
    }
}

impl Settings {
    pub(super) fn read(found: &InForce) -> anyhow::Result<Settings> {
        let http: SocketAddr = required(found, "http", "an address such as 127.0.0.1:7777")?;
        let path = |name| text(found, name).map(PathBuf::from);
        let tls = match (path("tls-certificate"), path("tls-key")) {
            (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
            (None, None) => None,
            (Some(_), None) => bail!("tls-certificate is given without tls-key; give both"),
            (None, Some(_)) => bail!("tls-key is given without tls-certificate; give both"),
        };
        let listen = emberkeep_server::Settings {
            http,
            tls,
            tokens: path("tokens"),
            origins: list(found, "origins"),
            ws_origins: list(found, "ws-origins"),
            rooms_per_second: required(found, "rooms-per-second", "a number of rooms, 0 for any number")?,
            waits: Waits::default(),
        };
        let durability = text(found, "durability").map(str::parse).transpose();
        let durability = durability.map_err(|error: String| wrong(found, "durability", &error))?;
        let hot = text(found, "hot").unwrap_or("embedded").to_owned();
        let store = StoreArguments::of(hot, path("data"), durability);
        let log = required(found, "log", "text or json")?;
        let log_level = required(found, "log-level", "error, warn, info, debug or trace")?;
        Ok(Settings { store, listen, log, log_level })
    }
}

fn text<'a>(found: &'a InForce, name: &str) -> Option<&'a str> {
    found.get(name).map(|(text, _)| text.as_str()).filter(|text| !text.is_empty())
}

fn list(found: &InForce, name: &str) -> Vec<String> {
    let items = text(found, name).unwrap_or("").split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn required<T: FromStr>(found: &InForce, name: &str, expected: &str) -> anyhow::Result<T> {
    let text = text(found, name).with_context(|| format!("{name} is empty, expected {expected}"))?;
    text.parse().map_err(|_| wrong(found, name, &format!("expected {expected}")))
}

fn wrong(found: &InForce, name: &str, problem: &str) -> anyhow::Error {
    match found.get(name) {
        Some((text, source)) => anyhow!("{name} is {:?} ({source}), {problem}", masked(text)),
        None => anyhow!("{name}: {problem}"),
    }
}
