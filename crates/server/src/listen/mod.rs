//! Listening, over TLS where asked for, and ending: requests in flight finish, then the store is closed.

mod prompt;
mod settings;

pub use settings::{ListenError, Settings, Tls, Waits};

use crate::app::App;
use crate::auth::{self, Tokens};
use crate::limits::{FILES_CHECKED_EVERY, SHUTDOWN_GRACE, SOCKETS_COUNTED_EVERY};
use crate::origins::Origins;
use crate::{census, routes};
use axum_server::tls_rustls::RustlsConfig;
use axum_server::{Handle, Server};
use emberkeep_hot::Store;
use hyper_util::rt::TokioTimer;
use prompt::Prompt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinHandle;

/// A server that listens.
pub struct Listening {
    address: SocketAddr,
    handle: Handle<SocketAddr>,
    serving: JoinHandle<io::Result<()>>,
    /// What watches files, listens to the rooms' channels, and counts keys. All end with the server.
    background: [JoinHandle<()>; 3],
    app: App,
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
    let app = App::new(store, tokens.clone(), origins, ws_origins, settings.waits);
    let listening = tokio::spawn(app.sockets.clone().listen());
    let service = routes::router(app.clone());
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    let handle = Handle::new();
    let wait = settings.waits.head;
    let serving = match &tls {
        None => {
            let server = axum_server::from_tcp(listener).map_err(unusable)?.handle(handle.clone());
            let server = server.map(|inner| Prompt { inner, wait });
            tokio::spawn(impatient(server, wait).serve(service))
        }
        Some(tls) => {
            let server = axum_server::from_tcp_rustls(listener, tls.clone()).map_err(unusable)?;
            let server = server.handle(handle.clone()).map(|inner| Prompt { inner, wait });
            tokio::spawn(impatient(server, wait).serve(service))
        }
    };
    let watching = tokio::spawn(watch(settings.clone(), tokens, tls));
    let counting = tokio::spawn(census::run(app.clone()));
    Ok(Listening { address, handle, serving, background: [watching, listening, counting], app })
}

/// The same server, which ends a connection whose requests do not arrive, or whose peer is gone.
fn impatient<A>(mut server: Server<SocketAddr, A>, head_wait: Duration) -> Server<SocketAddr, A> {
    let builder = server.http_builder();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_wait);
    // A connection of HTTP/2 rests between its requests for as long as its peer answers.
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(head_wait).keep_alive_timeout(head_wait);
    server
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
