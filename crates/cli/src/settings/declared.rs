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
    /// When a step in the folder of --data counts as safe: always, everysec or no [default: everysec]
    durability "durability" <"WHEN">;
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
    /// Rooms that an address may create or set up per second without a token, 0 for any number [default: 5]
    rooms_per_second "rooms-per-second" <"N"> = "5";
    /// Form of the log: text or json [default: text]
    log "log" <"FORM"> = "text";
    /// What is logged: error, warn, info, debug or trace [default: info]
    log_level "log-level" <"LEVEL"> = "info";
}
