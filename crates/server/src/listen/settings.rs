//! Where and how to listen, and why it may not be possible.

use crate::auth;
use crate::limits::*;
use crate::origins::OriginError;
use emberkeep_games::monsters::PoisonRule;
use emberkeep_games::reactors::HitRules;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address; port 0 takes a free one.
    pub http: SocketAddr,
    /// Certificate and key; without them the server speaks plain HTTP.
    pub tls: Option<Tls>,
    /// The file of tokens; without one everybody who reaches the server may use it.
    pub tokens: Option<PathBuf>,
    /// Origins of pages whose scripts may call the server, such as `https://play.example`; `*` is every page.
    pub origins: Vec<String>,
    /// Origins of pages whose scripts may open a WebSocket; `*` is every page.
    pub ws_origins: Vec<String>,
    /// Rooms that an address may create or set up per second without a token; 0 is without a bound, as behind a proxy that has one.
    pub rooms_per_second: u32,
    /// Rooms that do not exist which an address may name per minute without a token; 0 is without a bound, as behind a proxy that has one.
    pub missing_rooms_per_minute: u32,
    /// Connections of all addresses, sockets included. One more is closed at once.
    pub connections_max: usize,
    /// Connections of one address, sockets included. Loopback is bounded by the sum only.
    pub connections_per_address: usize,
    /// How long a request may take to arrive.
    pub waits: Waits,
    /// What a tick of POISON takes. All services that share a store should say the same.
    pub poison_rule: PoisonRule,
    /// What becomes of a reactor without a way on. All services that share a store should say the same.
    pub hit_rules: HitRules,
    /// Lines that the log could not write, for `/metrics`.
    pub log_lines_dropped: Arc<AtomicU64>,
}

impl Settings {
    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        self.http.ip().to_canonical().is_loopback()
    }

    /// Plain HTTP on an address, without tokens; sockets for every page, all else for no external one.
    pub fn new(http: SocketAddr) -> Settings {
        Settings {
            http,
            tls: None,
            tokens: None,
            origins: Vec::new(),
            ws_origins: vec!["*".to_owned()],
            rooms_per_second: ROOMS_PER_SECOND_DEFAULT,
            missing_rooms_per_minute: MISSING_ROOMS_PER_MINUTE_DEFAULT,
            connections_max: CONNECTIONS_MAX_DEFAULT,
            connections_per_address: CONNECTIONS_PER_ADDRESS_DEFAULT,
            waits: Waits::default(),
            poison_rule: PoisonRule::default(),
            hit_rules: HitRules::default(),
            log_lines_dropped: Arc::default(),
        }
    }
}

/// Certificate and key, in PEM. Replaced files are read again while the server runs.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate and those that lead to its root.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// How long a request may take to arrive. A connection whose peer is gone without a word ends with them.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// For its head, from the answer before; for the first one from the beginning of the connection, and 15 s at most.
    pub head: Duration,
    /// For its body, from the head.
    pub body: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { head: HEAD_WAIT, body: BODY_WAIT }
    }
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Everybody could reach it, and nobody would be asked for a token.
    #[error(
        "refusing to listen on {address} without tokens: everybody who reaches it could change everything; configure tokens (`emberkeep token new`), or listen on 127.0.0.1"
    )]
    OpenToAll {
        /// Where.
        address: SocketAddr,
    },
    /// Every web page could call it, and nobody would be asked for a token.
    #[error(
        "refusing origins * without tokens: every web page that somebody on this machine opens could change everything; configure tokens (`emberkeep token new`), or name the origins"
    )]
    OpenToAllPages,
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] auth::FileError),
    /// An origin of external pages is none.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}{}", remedy(error))]
    Address {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use the certificate {certificate} with the key {key}: {error}")]
    Tls {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
        /// What is wrong.
        error: io::Error,
    },
}

/// What to do about an address that cannot be had.
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
