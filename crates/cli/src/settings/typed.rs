//! The settings in force, as what they mean. An error names the setting, its source, and what was expected.

use super::source::InForce;
use super::value;
use crate::history;
use crate::redact::masked;
use crate::store::{self, StoreArguments};
use anyhow::{anyhow, bail};
use emberkeep::HistoryUrl;
use emberkeep_server::limits::SERVER_INSTANCE_DEFAULT;
use emberkeep_server::{Timeouts, Tls, check_origins, check_proxies};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What the server runs with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) store: StoreArguments,
    /// `None` = the server runs without history.
    pub(crate) history: Option<HistoryUrl>,
    /// Where recorded events wait for history; `None` = they are refused.
    pub(crate) spool: Option<PathBuf>,
    /// Where events wait while history is away; `None` = in hot state.
    pub(crate) history_spool: Option<PathBuf>,
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
    type Err = String;

    fn from_str(text: &str) -> Result<LogForm, String> {
        match text {
            "text" => Ok(LogForm::Text),
            "json" => Ok(LogForm::Json),
            _ => Err("expected text or json".to_owned()),
        }
    }
}

impl Settings {
    pub(super) fn read(found: &InForce) -> anyhow::Result<Settings> {
        let path = |name| text(found, name).map(PathBuf::from);
        let tls = match (path("tls-certificate"), path("tls-key")) {
            (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
            (None, None) => None,
            (Some(_), None) => bail!("tls-certificate is given without tls-key; give both"),
            (None, Some(_)) => bail!("tls-key is given without tls-certificate; give both"),
        };
        let listen = emberkeep_server::Settings {
            http: required(found, "http", value::address)?,
            tls,
            tokens: path("tokens"),
            origins: list(found, "origins", check_origins)?,
            ws_origins: list(found, "ws-origins", check_origins)?,
            trusted_proxies: list(found, "trusted-proxies", check_proxies)?,
            rooms_per_second: required(found, "rooms-per-second", value::rate)?,
            missing_rooms_per_minute: required(found, "missing-rooms-per-minute", value::rate)?,
            connections_max: required(found, "connections-max", value::connections)?,
            connections_per_address: required(found, "connections-per-address", value::connections)?,
            timeouts: Timeouts::default(),
            poison_rule: required(found, "poison-rule", value::poison_rule)?,
            hit_rules: required(found, "reactor-rules", value::hit_rules)?,
            server_instance: text(found, "server-instance").unwrap_or(SERVER_INSTANCE_DEFAULT).to_owned(),
            darkages_shards: optional(found, "darkages-shards", value::shards)?.unwrap_or_default(),
            log_lines_dropped: Arc::default(),
        };
        let hot = required(found, "hot", |text| store::parse(text).map(|_| text.to_owned()))?;
        let durability = optional(found, "durability", str::parse)?;
        let store =
            StoreArguments::of(hot, path("data"), durability, optional(found, "memory-max", value::size)?);
        optional(found, "history", history::named)?;
        let history = history::parse(text(found, "history"), &store)?;
        let spool = path("spool").or_else(|| store.folder().map(|folder| folder.join("spool")));
        let history_spool = history::spool_folder(path("history-spool"), history.as_ref(), &store)?;
        let log = required(found, "log", str::parse)?;
        let log_level = required(found, "log-level", |text| {
            text.parse().map_err(|_| "expected error, warn, info, debug or trace".to_owned())
        })?;
        Ok(Settings { store, history, spool, history_spool, listen, log, log_level })
    }

    /// Refuses what `serve` would refuse, without opening the store or the address.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.store.check()?;
        Ok(self.listen.check()?)
    }
}

fn text<'a>(found: &'a InForce, name: &str) -> Option<&'a str> {
    found.get(name).map(|(text, _)| text.as_str()).filter(|text| !text.is_empty())
}

fn optional<T>(
    found: &InForce,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> anyhow::Result<Option<T>> {
    text(found, name).map(parse).transpose().map_err(|problem| match found.get(name) {
        Some((text, source)) => anyhow!("{name} is {:?} ({source}), {problem}", masked(text)),
        None => anyhow!("{name}: {problem}"),
    })
}

/// The items of a list; none if it is not set.
fn list<E: Display>(
    found: &InForce,
    name: &str,
    check: fn(&[String]) -> Result<(), E>,
) -> anyhow::Result<Vec<String>> {
    let items = optional(found, name, |text| {
        let items = value::list(text);
        check(&items).map(|()| items).map_err(|error| error.to_string())
    });
    Ok(items?.unwrap_or_default())
}

fn required<T>(
    found: &InForce,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    optional(found, name, parse)?.ok_or_else(|| anyhow!("{name} is empty; give it a value, or leave it out"))
}
