//! Every setting of the server, declared once: its flag, its variable, its key in a file and its help follow.

use super::source::Given;

/// A setting, as tools show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The key in a file; `--` before it is the flag.
    pub(crate) name: &'static str,
    pub(crate) default: Option<&'static str>,
}

impl Setting {
    /// The environment's variable.
    pub(crate) fn variable(&self) -> String {
        format!("EMBERKEEP_{}", self.name.to_uppercase().replace('-', "_"))
    }
}

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $field:ident $name:literal <$value:literal> $(= $default:literal)?;)+) => {
        /// What the command line says of the server. What it does not say, variables and a file may.
        #[derive(clap::Args, Debug, Default)]
        pub(crate) struct Flags {
            $($(#[doc = $help])+ #[arg(long = $name, value_name = $value, help_heading = "Settings")]
            $field: Option<String>,)+
        }

        /// All of them, in the order in which they are shown.
        pub(crate) const SETTINGS: &[Setting] =
            &[$(Setting { name: $name, default: settings!(@default $($default)?) },)+];

        impl Flags {
            /// What was given.
            pub(super) fn given(&self) -> Given {
                let mut given = Given::new();
                $(if let Some(text) = &self.$field {
                    given.insert($name, text.clone());
                })+
                given
            }
        }
    };
    (@default $default:literal) => { Some($default) };
    (@default) => { None };
}

settings! {
    /// Where HTTP and WebSocket listen; without tokens only loopback [default: 127.0.0.1:7777]
    http "http" <"ADDR"> = "127.0.0.1:7777";
    /// Where hot state lives: embedded, redis://HOST:PORT/DB or redis+cluster://HOST:PORT,HOST:PORT [default: embedded]
    hot "hot" <"URL"> = "embedded";
    /// Folder of the embedded store; without it nothing outlives the process
    data "data" <"DIR">;
    /// What survives in the folder of --data: always = every answer; everysec = every answer if the process dies, all but the last second if the power goes; no = no promise [default: everysec]
    durability "durability" <"WHEN">;
    /// Memory that keys and values of the embedded store may take: 512MiB, a share of the machine's memory or of its control group such as 50%, or none. Beyond it, what grows is refused with 507 [default: 50%]
    memory_max "memory-max" <"SIZE"> = "50%";
    /// File of tokens, made by `emberkeep token new`; read again when it changes
    tokens "tokens" <"FILE">;
    /// Certificate in PEM, with those that lead to its root; needs --tls-key
    tls_certificate "tls-certificate" <"FILE">;
    /// Private key in PEM; needs --tls-certificate
    tls_key "tls-key" <"FILE">;
    /// Web pages that may call the server, separated by commas: https://game.example or *
    origins "origins" <"ORIGINS">;
    /// Web pages that may open a WebSocket, separated by commas, or * [default: *]
    ws_origins "ws-origins" <"ORIGINS"> = "*";
    /// Reverse proxies whose X-Forwarded-For names the client, as addresses or networks separated by commas: 10.0.0.7,fd00::/8
    trusted_proxies "trusted-proxies" <"NETWORKS">;
    /// Rooms that an address may create or set up per second without a token, 0 for any number [default: 5]
    rooms_per_second "rooms-per-second" <"N"> = "5";
    /// Rooms that do not exist which an address may name per minute without a token, 0 for any number, as behind a proxy that limits [default: 6]
    missing_rooms_per_minute "missing-rooms-per-minute" <"N"> = "6";
    /// Connections of all addresses; one more is closed at once. At most what the limit of open files allows [default: 16384]
    connections_max "connections-max" <"N"> = "16384";
    /// Connections of one address; loopback, where a proxy speaks for many, is bounded by --connections-max only [default: 4096]
    connections_per_address "connections-per-address" <"N"> = "4096";
    /// What a tick of POISON takes: value = the value of the status; share-of-max-hp = maxHp / (70 - level), rounded up. The same for all services of one store [default: value]
    poison_rule "poison-rule" <"RULE"> = "value";
    /// What becomes of a reactor without a way on: none = the hit that finds none destroys it; item-reactors-stay = item reactors stay in their last state; last-state-ends = it is destroyed when it enters its last state; both separated by a comma. The same for all services of one store [default: none]
    reactor_rules "reactor-rules" <"RULES"> = "none";
    /// Form of the log: text or json [default: text]
    log "log" <"FORM"> = "text";
    /// What is logged: error, warn, info, debug or trace [default: info]
    log_level "log-level" <"LEVEL"> = "info";
}
