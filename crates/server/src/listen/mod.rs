//! Listening, over TLS where asked for, and ending: requests in flight finish, then the store is closed.

mod connections;
mod prompt;
mod settings;
mod watch;

pub use settings::{ListenError, Settings, Tls, Waits};

use crate::app::{App, Doors};
use crate::auth::Tokens;
use crate::limits::*;
use crate::origins::Origins;
use crate::supervise::supervise;
use crate::throttle::Throttle;
use crate::{census, routes};
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server};
use connections::{Bound, Connections, Counting, Peer};
use emberkeep_hot::Store;
use hyper_util::rt::TokioTimer;
use prompt::Prompt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify};
use tokio::task::{JoinError, JoinHandle};
use watch::{CertificateFiles, TokenFile, Watched, watch};

/// A server that listens.
pub struct Listening {
    address: SocketAddr,
    handle: Handle<Peer>,
    /// `None` = it has failed.
    serving: Option<JoinHandle<io::Result<()>>>,
    /// What watches files, listens to the rooms' channels, and counts keys. All end with the server.
    background: [JoinHandle<()>; 3],
    reload: Arc<Notify>,
    app: App,
}

/// Listens and serves until [`Listening::end`].
pub async fn listen(store: Store, settings: &Settings) -> Result<Listening, ListenError> {
    let token_file = settings.tokens.as_deref().map(TokenFile::open).transpose()?;
    let tokens = match &token_file {
        Some(file) => file.tokens(),
        None if settings.is_loopback() => Tokens::open(),
        None => return Err(ListenError::OpenToAll { address: settings.http }),
    };
    let (origins, ws_origins) = (Origins::read(&settings.origins)?, Origins::read(&settings.ws_origins)?);
    if tokens.is_open() && origins.is_all() {
        return Err(ListenError::OpenToAllPages);
    }
    let unusable = |error| ListenError::Address { address: settings.http, error };
    let listener = TcpListener::bind(settings.http).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let certificate = match &settings.tls {
        Some(files) => Some(CertificateFiles::open(files).await?),
        None => None,
    };
    let throttle = Throttle::new(settings.rooms_per_second);
    let missing_rooms_per_minute = settings.missing_rooms_per_minute;
    let doors =
        Doors { tokens, origins, ws_origins, throttle, missing_rooms_per_minute, waits: settings.waits };
    let app = App::new(store, doors, (settings.poison_rule, settings.hit_rules));
    // Only the first counts, and this is the first.
    let _ = app.metrics.bounds.log_lines_dropped.set(settings.log_lines_dropped.clone());
    let bound = Bound { sum: settings.connections_max, per_address: settings.connections_per_address };
    let listener = Counting { listener, connections: Connections::new(bound, app.metrics.clone()) };
    let (handle, reload) = (Handle::new(), Arc::new(Notify::new()));
    let tls = certificate.as_ref().map(CertificateFiles::config);
    let serving = serve(listener, tls, &app, handle.clone());
    let background = supervised(&app, Watched { tokens: token_file, certificate }, &reload);
    Ok(Listening { address, handle, serving: Some(serving), background, reload, app })
}

/// Begins what goes on beside the requests, for as long as the server runs.
fn supervised(app: &App, files: Watched, reload: &Arc<Notify>) -> [JoinHandle<()>; 3] {
    let (files, reload) = (Arc::new(Mutex::new(files)), reload.clone());
    let (sockets, counted) = (app.sockets.clone(), app.clone());
    [
        supervise("files", app.metrics.clone(), move || watch(files.clone(), reload.clone())),
        supervise("rooms", app.metrics.clone(), move || sockets.clone().listen()),
        supervise("keys", app.metrics.clone(), move || census::run(counted.clone())),
    ]
}

/// Begins to serve, over TLS where there is a certificate.
fn serve(
    listener: Counting,
    tls: Option<RustlsConfig>,
    app: &App,
    handle: Handle<Peer>,
) -> JoinHandle<io::Result<()>> {
    let service = routes::router(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
    let wait = app.doors.waits.head;
    let server = Server::<Peer>::from_listener(listener).handle(handle);
    match tls {
        None => tokio::spawn(bounded(server, wait).serve(service)),
        Some(tls) => {
            let server = server.acceptor(RustlsAcceptor::new(tls));
            tokio::spawn(bounded(server, wait).serve(service))
        }
    }
}

/// The same server, which bounds what a connection may take in memory, and ends one whose requests do not arrive, or whose peer is
/// gone.
fn bounded<A>(server: Server<Peer, A>, head_wait: Duration) -> Server<Peer, Prompt<A>> {
    let mut server = server.map(|inner| Prompt { inner, wait: head_wait.min(FIRST_HEAD_WAIT) });
    let builder = server.http_builder();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_wait).max_buf_size(HEAD_BYTES_MAX);
    // A connection of HTTP/2 rests between its requests for as long as its peer answers.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(head_wait)
        .keep_alive_timeout(head_wait)
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX as u32);
    server
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads tokens and certificate again, at once.
    pub fn reload(&self) {
        self.reload.notify_one();
    }

    /// Waits until the listener fails, and says how: nobody can connect any more. While it works, this does not end.
    pub async fn failed(&mut self) -> io::Error {
        let Some(serving) = &mut self.serving else { return std::future::pending().await };
        let how = ended(serving.await);
        self.serving = None;
        how.err().unwrap_or_else(|| io::Error::other("it ended, and nobody told it to"))
    }

    /// Takes no more connections, lets requests in flight finish for a while, and closes the store.
    pub async fn end(mut self) -> emberkeep_hot::Result<()> {
        self.app.sockets.end();
        self.handle.graceful_shutdown(Some(SHUTDOWN_GRACE));
        if let Some(serving) = self.serving.take()
            && let Err(error) = ended(serving.await)
        {
            tracing::error!("the listener failed: {error}");
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

/// How the listener's task ended.
fn ended(task: Result<io::Result<()>, JoinError>) -> io::Result<()> {
    task.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_hot::embedded::Embedded;

    #[tokio::test]
    async fn a_listener_that_died_is_noticed_and_the_rest_ends_in_order() {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let settings = Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut listening = listen(store, &settings).await.unwrap();
        listening.serving.as_ref().unwrap().abort();
        let how = listening.failed().await.to_string();
        assert!(how.contains("cancelled"), "{how}");
        listening.end().await.unwrap();
    }
}
