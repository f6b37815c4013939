//! Settings of the listener, and its errors.

use crate::auth;
use crate::limits::*;
use crate::security::client_ip::ProxyError;
use crate::security::cors::OriginError;
use emberkeep_games::darkages::{self, Shards};
use emberkeep_games::monsters::PoisonRule;
use emberkeep_games::reactors::HitRules;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Settings of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address; port 0 takes a free one.
    pub http: SocketAddr,
    /// Certificate and key; without them the server speaks plain HTTP.
    pub tls: Option<Tls>,
    /// The file of tokens; without it every client may do everything.
    pub tokens: Option<PathBuf>,
    /// Origins of web pages that may call the API, such as `https://play.example`; `*` is every page.
    pub origins: Vec<String>,
    /// Origins of web pages that may open a WebSocket; `*` is every page.
    pub ws_origins: Vec<String>,
    /// Addresses or networks of reverse proxies whose `X-Forwarded-For` names the client, such as
    /// `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
    /// Rooms that an address may create or set up per second without a token; 0 is unlimited.
    pub rooms_per_second: u32,
    /// Missing rooms that an address may name per minute without a token; 0 is unlimited.
    pub missing_rooms_per_minute: u32,
    /// Open connections, WebSockets included. One more is closed at once.
    pub connections_max: usize,
    /// Open connections of one address. Loopback and trusted proxies are exempt.
    pub connections_per_address: usize,
    /// How long a request may take to arrive.
    pub timeouts: Timeouts,
    /// The damage of a POISON tick. All services that share a store must use the same rule.
    pub poison_rule: PoisonRule,
    /// What happens to a reactor without a next state. All services that share a store must use the same
    /// rules.
    pub hit_rules: HitRules,
    /// The name of this server in events and play sessions of DarkAges, at most 128 bytes.
    pub server_instance: String,
    /// The shards of DarkAges: which zones form a partition on a Cluster. All services of the game have the same.
    pub darkages_shards: Shards,
    /// Log lines that could not be written, for `/metrics`.
    pub log_lines_dropped: Arc<AtomicU64>,
}

impl Settings {
    /// Whether only this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.http.ip().to_canonical().is_loopback()
    }

    /// Plain HTTP without tokens. Every web page may open a WebSocket; only same-origin pages may call the
    /// API.
    pub fn new(http: SocketAddr) -> Settings {
        Settings {
            http,
            tls: None,
            tokens: None,
            origins: Vec::new(),
            ws_origins: vec!["*".to_owned()],
            trusted_proxies: Vec::new(),
            rooms_per_second: ROOMS_PER_SECOND_DEFAULT,
            missing_rooms_per_minute: MISSING_ROOMS_PER_MINUTE_DEFAULT,
            connections_max: CONNECTIONS_MAX_DEFAULT,
            connections_per_address: CONNECTIONS_PER_ADDRESS_DEFAULT,
            timeouts: Timeouts::default(),
            poison_rule: PoisonRule::default(),
            hit_rules: HitRules::default(),
            server_instance: SERVER_INSTANCE_DEFAULT.to_owned(),
            darkages_shards: Shards::default(),
            log_lines_dropped: Arc::default(),
        }
    }
}

/// Certificate and key, in PEM. Replaced files are read again while the server runs.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate and those that lead to its root.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// How long a request may take to arrive. They also end connections whose peer has disappeared.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For the head, from the previous response. The first head has at most 15 s from the start of the
    /// connection.
    pub head: Duration,
    /// For the body, from the head.
    pub body: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { head: HEAD_TIMEOUT, body: BODY_TIMEOUT }
    }
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could connect, and no token is required.
    #[error(
        "refusing to listen on {address} without tokens: every client that reaches it could change everything; configure tokens (`emberkeep token new`), or listen on 127.0.0.1"
    )]
    OpenToAll {
        /// The address of the setting `http`.
        address: SocketAddr,
    },
    /// Every web page could call the API, and no token is required.
    #[error(
        "refusing origins * without tokens: every web page that is opened on this machine could change everything; configure tokens (`emberkeep token new`), or name the origins"
    )]
    OpenToAllPages,
    /// The name of the server is not allowed.
    #[error("server-instance: {0}")]
    ServerInstance(darkages::Error),
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] auth::FileError),
    /// An origin is invalid.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// A trusted proxy is invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}{}", remedy(error))]
    Address {
        /// The address of the setting `http`.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use the certificate {certificate} with the key {key}: {error}")]
    Tls {
        /// The path of the certificate.
        certificate: String,
        /// The path of the key.
        key: String,
        /// What is wrong with one of them, or that they do not belong together.
        error: io::Error,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process listens there: end it, or choose another port with http (port 0 takes a free one)"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; no interface of this machine has it: listen on 127.0.0.1 or 0.0.0.0"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for administrators: choose a higher one",
        _ => "",
    }
}
