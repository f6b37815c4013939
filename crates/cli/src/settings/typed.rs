//! Settings as what they mean. An error names the setting, who gave it, and what was expected.

use super::source::InForce;
use crate::open::StoreArguments;
use crate::secret::masked;
use crate::size;
use anyhow::{Context, anyhow, bail};
use emberkeep::games::monsters::PoisonRule;
use emberkeep::games::reactors::HitRules;
use emberkeep_server::{Timeouts, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

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
        let http = address(found)?;
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
            trusted_proxies: list(found, "trusted-proxies"),
            rooms_per_second: required(found, "rooms-per-second", "a number of rooms, 0 for any number")?,
            missing_rooms_per_minute: required(
                found,
                "missing-rooms-per-minute",
                "a number of rooms, 0 for any number",
            )?,
            connections_max: count(found, "connections-max")?,
            connections_per_address: count(found, "connections-per-address")?,
            timeouts: Timeouts::default(),
            poison_rule: poison_rule(found)?,
            hit_rules: hit_rules(found)?,
            log_lines_dropped: Arc::default(),
        };
        let durability = text(found, "durability").map(str::parse).transpose();
        let durability = durability.map_err(|error: String| wrong(found, "durability", &error))?;
        let hot = text(found, "hot").unwrap_or("embedded").to_owned();
        let memory_max = required(found, "memory-max", size::EXPECTED)?;
        let store = StoreArguments::of(hot, path("data"), durability, Some(memory_max));
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

/// Where to listen. `localhost` is an address of this machine; other names are none, because they may stand for several.
fn address(found: &InForce) -> anyhow::Result<SocketAddr> {
    let given = text(found, "http").unwrap_or_default();
    let given =
        given.strip_prefix("localhost:").map_or_else(|| given.to_owned(), |port| format!("127.0.0.1:{port}"));
    let expected = "expected an address and a port: 127.0.0.1:7777 for this machine, 0.0.0.0:7777 for every network (needs tokens)";
    given.parse().map_err(|_| wrong(found, "http", expected))
}

fn poison_rule(found: &InForce) -> anyhow::Result<PoisonRule> {
    match text(found, "poison-rule") {
        Some("value") => Ok(PoisonRule::Value),
        Some("share-of-max-hp") => Ok(PoisonRule::ShareOfMaxHp),
        _ => Err(wrong(found, "poison-rule", "expected value or share-of-max-hp")),
    }
}

fn hit_rules(found: &InForce) -> anyhow::Result<HitRules> {
    let (mut rules, names) = (HitRules::default(), list(found, "reactor-rules"));
    for name in names.iter().filter(|_| names != ["none"]) {
        match name.as_str() {
            "item-reactors-stay" => rules.item_reactors_stay = true,
            "last-state-ends" => rules.last_state_ends = true,
            _ => {
                let expected = "expected none, item-reactors-stay, last-state-ends, or both with a comma";
                return Err(wrong(found, "reactor-rules", expected));
            }
        }
    }
    Ok(rules)
}

/// A number of connections.
fn count(found: &InForce, name: &str) -> anyhow::Result<usize> {
    let expected = "a number of connections from 1 on";
    match required(found, name, expected)? {
        0 => Err(wrong(found, name, &format!("expected {expected}"))),
        count => Ok(count),
    }
}

fn wrong(found: &InForce, name: &str, problem: &str) -> anyhow::Error {
    match found.get(name) {
        Some((text, source)) => anyhow!("{name} is {:?} ({source}), {problem}", masked(text)),
        None => anyhow!("{name}: {problem}"),
    }
}
