//! Every setting of the server, declared once: its flag, its variable, its key in a file and its help follow.

use super::source::SettingTexts;
use super::value;
use crate::{history, store};
use clap::builder::{
    NonEmptyStringValueParser, PossibleValuesParser, StringValueParser, TypedValueParser, ValueParser,
};
use emberkeep_server::{check_origins, check_proxies};
use std::fmt::Display;

/// A setting, as tools show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The key in a file; `--` before it is the flag.
    pub(crate) name: &'static str,
    pub(crate) default: Option<&'static str>,
}

impl Setting {
    /// The environment variable: `EMBERKEEP_` and the flag's name in capitals.
    pub(crate) fn variable(&self) -> String {
        format!("EMBERKEEP_{}", self.name.to_uppercase().replace('-', "_"))
    }
}

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $field:ident $name:literal <$value:literal> $parser:expr, $default:expr;)+) => {
        /// The settings that the command line gives, as texts. Variables and a file may give the others.
        #[derive(clap::Args, Debug, Default)]
        pub(crate) struct Flags {
            $($(#[doc = $help])+
            #[arg(long = $name, value_name = $value, help_heading = "Settings", value_parser = $parser)]
            $field: Option<String>,)+
        }

        /// All of them, in the order in which they are shown.
        pub(crate) const SETTINGS: &[Setting] = &[$(Setting { name: $name, default: $default },)+];

        impl Flags {
            pub(super) fn given(&self) -> SettingTexts {
                let mut given = SettingTexts::new();
                $(if let Some(text) = &self.$field {
                    given.insert($name, text.clone());
                })+
                given
            }
        }
    };
}

settings! {
    /// Address of HTTP and WebSocket: 127.0.0.1:7777, localhost:7777, or 0.0.0.0:7777 for every network, which needs --tokens
    http "http" <"ADDR"> checked(value::address), Some("127.0.0.1:7777");
    /// Where hot state lives: embedded, memory:, file:DIR, redis://…, valkey://… or redis+cluster://…; see below
    hot "hot" <"URL"> checked(store::parse), Some("embedded");
    /// Folder of the embedded store; without it nothing outlives the process
    data "data" <"DIR"> ValueParser::string(), None;
    /// What survives in the folder of --data: always = every answer; everysec = every answer if the process dies, all but the last second if the power goes; no = no promise [default: everysec]
    durability "durability" <"WHEN"> one_of(&["always", "everysec", "no"]), None;
    /// Memory that keys and values of the embedded store may take: 512MiB, a share of the machine's memory or of its control group such as 50%, or none. Writes that need more are refused with 507
    memory_max "memory-max" <"SIZE"> checked(value::size), Some("50%");
    /// Where history lives: file:DIR, cql://user:password@host/keyspace, or none [default: the folder history in the folder of --data; none without one]
    history "history" <"URL"> checked(history::named), None;
    /// Folder in which events of servers that compute damage themselves wait for history [default: the folder spool in the folder of --data; none without one]
    spool "spool" <"DIR"> ValueParser::string(), None;
    /// Folder in which events wait while a cluster of history is away, instead of in hot state; each server has one of its own [default: the folder history-spool in the folder of --data when history is a cluster; none for history in a folder]
    history_spool "history-spool" <"DIR"> ValueParser::string(), None;
    /// Name of this server in events and play sessions of DarkAges
    server_instance "server-instance" <"NAME"> ValueParser::string(), Some("emberkeep");
    /// Shards of DarkAges with their zones, such as 1:1-99,2:100-199: on a Cluster each is a partition; the same for all servers [default: one for all zones]
    darkages_shards "darkages-shards" <"SHARDS"> checked(value::shards), None;
    /// File of tokens, made by `emberkeep token new`; read again when it changes
    tokens "tokens" <"FILE"> ValueParser::string(), None;
    /// Certificate chain in PEM; needs --tls-key
    tls_certificate "tls-certificate" <"FILE"> ValueParser::string(), None;
    /// Private key in PEM; needs --tls-certificate
    tls_key "tls-key" <"FILE"> ValueParser::string(), None;
    /// Origins of web pages that may call the server (CORS), separated by commas: https://game.example or *
    origins "origins" <"ORIGINS"> list_of(check_origins), None;
    /// Origins of web pages that may open a WebSocket, separated by commas, or *
    ws_origins "ws-origins" <"ORIGINS"> list_of(check_origins), Some("*");
    /// Reverse proxies whose X-Forwarded-For names the client, as addresses or networks separated by commas: 10.0.0.7,fd00::/8
    trusted_proxies "trusted-proxies" <"NETWORKS"> list_of(check_proxies), None;
    /// Rate limit: rooms that an address may create or set up per second without a token; 0 = no limit, for a proxy that has one
    rooms_per_second "rooms-per-second" <"N"> checked(value::rate), Some("5");
    /// Rate limit: rooms that do not exist which an address may name per minute without a token; 0 = no limit, for a proxy that has one
    missing_rooms_per_minute "missing-rooms-per-minute" <"N"> checked(value::rate), Some("6");
    /// Connections of all addresses; one more is closed at once. At most what the limit of open files allows
    connections_max "connections-max" <"N"> checked(value::connections), Some("16384");
    /// Connections of one address; loopback, where a proxy connects for many clients, is limited by --connections-max only
    connections_per_address "connections-per-address" <"N"> checked(value::connections), Some("4096");
    /// Damage of a POISON tick: value = the value of the status; share-of-max-hp = maxHp / (70 - level), rounded up. The same for all services of one store
    poison_rule "poison-rule" <"RULE"> one_of(&["value", "share-of-max-hp"]), Some("value");
    /// What happens to a reactor without a next state: none = the hit that finds none destroys it; item-reactors-stay = item reactors stay in their last state; last-state-ends = it is destroyed when it enters its last state; both separated by a comma. The same for all services of one store
    reactor_rules "reactor-rules" <"RULES"> checked(value::hit_rules), Some("none");
    /// Form of the log
    log "log" <"FORM"> one_of(&["text", "json"]), Some("text");
    /// Least severity that is logged
    log_level "log-level" <"LEVEL"> one_of(&["error", "warn", "info", "debug", "trace"]), Some("info");
}

/// Lets clap refuse what `parse` refuses. The text goes on, because variables and a file give texts, too.
fn checked<T>(parse: fn(&str) -> Result<T, String>) -> impl TypedValueParser<Value = String>
where
    T: 'static,
{
    NonEmptyStringValueParser::new().try_map(move |text| parse(&text).map(|_| text))
}

/// The same for the items of a list, which may be empty.
fn list_of<E: Display + 'static>(
    check: fn(&[String]) -> Result<(), E>,
) -> impl TypedValueParser<Value = String> {
    StringValueParser::new()
        .try_map(move |text| check(&value::list(&text)).map(|()| text).map_err(|error| error.to_string()))
}

/// Lets clap refuse other words, and complete these.
fn one_of(words: &'static [&'static str]) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

/// Puts variable and default into the help of every setting. Clap does not read them: `source` does, with their provenance.
pub(crate) fn with_variables(command: clap::Command) -> clap::Command {
    SETTINGS.iter().fold(command, |command, setting| {
        command.mut_arg(setting.name.replace('-', "_"), |arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let default = setting.default.map(|text| format!(" [default: {text}]")).unwrap_or_default();
            arg.help(format!("{help}{default} [env: {}]", setting.variable()))
        })
    })
}
