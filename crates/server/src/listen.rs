//! Listening, over TLS where asked for, and ending: requests in flight finish, then the store is closed.

use crate::app::App;
use crate::auth::{self, Tokens};
use crate::limits::{FILES_CHECKED_EVERY, ROOMS_PER_SECOND_DEFAULT, SHUTDOWN_GRACE, SOCKETS_COUNTED_EVERY};
use crate::origins::{OriginError, Origins};
use crate::throttle::Throttle;
use crate::{census, routes};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use emberkeep_hot::Store;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};
use tokio::task::JoinHandle;

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
    /// Rooms that an address may create per second without a token; 0 is without a bound, as behind a proxy that has one.
    pub rooms_per_second: u32,
}

impl Settings {
    /// Plain HTTP on an address, without tokens; sockets for every page, all else for no foreign one.
    pub fn new(http: SocketAddr) -> Settings {
        Settings {
            http,
            tls: None,
            tokens: None,
            origins: Vec::new(),
            ws_origins: vec!["*".to_owned()],
            rooms_per_second: ROOMS_PER_SECOND_DEFAULT,
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

/// A server that listens.
pub struct Listening {
    address: SocketAddr,
    handle: Handle<SocketAddr>,
    serving: JoinHandle<io::Result<()>>,
    /// What watches files, listens to the rooms' channels, and counts keys. All end with the server.
    background: [JoinHandle<()>; 3],
    app: App,
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
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] auth::FileError),
    /// An origin of foreign pages is none.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
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

/// Listens and serves until [`Listening::end`].
pub async fn listen(store: Store, settings: &Settings) -> Result<Listening, ListenError> {
    let tokens = match &settings.tokens {
        Some(path) => Tokens::of(&auth::read_file(path)?),
        None if is_loopback(settings.http.ip()) => Tokens::open(),
        None => return Err(ListenError::OpenToAll { address: settings.http }),
    };
    let (origins, ws_origins) = (Origins::read(&settings.origins)?, Origins::read(&settings.ws_origins)?);
    let unusable = |error| ListenError::Address { address: settings.http, error };
    let listener = TcpListener::bind(settings.http).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let tls = match &settings.tls {
        Some(tls) => Some(tls.load().await?),
        None => None,
    };
    let throttle = Throttle::new(settings.rooms_per_second);
    let app = App::new(store, tokens.clone(), origins, ws_origins, throttle);
    let listening = tokio::spawn(app.sockets.clone().listen());
    let service = routes::router(app.clone());
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    let handle = Handle::new();
    let serving = match &tls {
        None => {
            let server = axum_server::from_tcp(listener).map_err(unusable)?.handle(handle.clone());
            tokio::spawn(server.serve(service))
        }
        Some(tls) => {
            let server = axum_server::from_tcp_rustls(listener, tls.clone()).map_err(unusable)?;
            tokio::spawn(server.handle(handle.clone()).serve(service))
        }
    };
    let watching = tokio::spawn(watch(settings.clone(), tokens, tls));
    let counting = tokio::spawn(census::run(app.clone()));
    Ok(Listening { address, handle, serving, background: [watching, listening, counting], app })
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

impl Tls {
    async fn load(&self) -> Result<RustlsConfig, ListenError> {
        // Somebody else in the process may have chosen a provider already: that one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        RustlsConfig::from_pem_file(&self.certificate, &self.key).await.map_err(|error| ListenError::Tls {
            certificate: self.certificate.display().to_string(),
            key: self.key.display().to_string(),
            error,
        })
    }
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests in flight finish for a while, and closes the store.
    pub async fn end(mut self) -> emberkeep_hot::Result<()> {
        self.app.sockets.end();
        self.handle.graceful_shutdown(Some(SHUTDOWN_GRACE));
        match (&mut self.serving).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the listener failed: {error}"),
            Err(error) => tracing::error!("the listener's task failed: {error}"),
        }
        self.until_sockets_ended().await;
        self.background.iter().for_each(JoinHandle::abort);
        self.app.store.close().await
    }

    /// Sockets have left the listener's connections, so it does not wait for them.
    async fn until_sockets_ended(&self) {
        let deadline = Instant::now() + SHUTDOWN_GRACE;
        while self.app.metrics.sockets.load(Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(SOCKETS_COUNTED_EVERY).await;
        }
    }
}

/// Looks every now and then whether tokens or certificate were replaced. What cannot be read leaves the old ones in
/// force. Ends when the server ends.
async fn watch(settings: Settings, tokens: Tokens, tls: Option<RustlsConfig>) {
    let mut token_file = settings.tokens.as_deref().map(Watched::new);
    let mut certificate =
        settings.tls.as_ref().map(|tls| (Watched::new(&tls.certificate), Watched::new(&tls.key)));
    loop {
        tokio::time::sleep(FILES_CHECKED_EVERY).await;
        if let Some(file) = token_file.as_mut()
            && file.changed()
        {
            match auth::read_file(&file.path) {
                Ok(entries) => tokens.replace(&entries),
                Err(error) => tracing::error!("the tokens of before stay in force: {error}"),
            }
        }
        let changed =
            certificate.as_mut().is_some_and(|(certificate, key)| certificate.changed() | key.changed());
        if let (true, Some(files), Some(tls)) = (changed, &settings.tls, &tls) {
            match tls.reload_from_pem_file(&files.certificate, &files.key).await {
                Ok(()) => tracing::info!("the certificate was replaced"),
                Err(error) => tracing::error!("the certificate of before stays in force: {error}"),
            }
        }
    }
}

/// A file, and when it was changed last.
struct Watched {
    path: PathBuf,
    changed: Option<SystemTime>,
}

impl Watched {
    fn new(path: &Path) -> Watched {
        Watched { path: path.to_owned(), changed: changed_at(path) }
    }

    /// Whether it was changed since the last look.
    fn changed(&mut self) -> bool {
        let now = changed_at(&self.path);
        let changed = now.is_some() && now != self.changed;
        self.changed = now.or(self.changed);
        changed
    }
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
