//! The listener with optional TLS, background tasks, and graceful shutdown.

mod accept;
mod connections;
mod reload;
mod settings;
mod stream;
mod tls;

pub use settings::{ListenError, Settings, Timeouts, Tls};

use crate::auth::Tokens;
use crate::darkages_sweep;
use crate::history::HistoryTier;
use crate::limit::per_ip::PerIpLimiter;
use crate::limits::*;
use crate::metrics::key_counts;
use crate::routes;
use crate::run_history::RunningHistory;
use crate::security::client_ip::TrustedProxies;
use crate::security::cors::AllowedOrigins;
use crate::state::{AccessPolicy, AppState};
use crate::supervise::supervise;
use accept::Acceptor;
use connections::{ConnectionLimits, Connections, LimitedListener};
use emberkeep_games::darkages::DarkAges;
use emberkeep_hot::Store;
use reload::{CertificateFiles, ReloadableFiles, TokenFile};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;

/// A server that listens, until it is shut down.
pub struct RunningServer {
    address: SocketAddr,
    stop: watch::Sender<()>,
    /// `None` once it has failed.
    serving: Option<JoinHandle<()>>,
    /// File reload, room signals, key counts, the sweep of sessions, and Galaxy's ticks and presence. They end with the
    /// server.
    background: [JoinHandle<()>; 6],
    reload: Arc<Notify>,
    history: Option<RunningHistory>,
    app: AppState,
}

impl Settings {
    /// Refuses what [`listen`] would refuse, without listening: reads the files of tokens and certificate,
    /// the origins and the networks. Only the address is not tried.
    pub fn check(&self) -> Result<(), ListenError> {
        read(self).map(drop)
    }
}

/// Listens and serves until [`RunningServer::end`], without history.
pub async fn listen(store: Store, settings: &Settings) -> Result<RunningServer, ListenError> {
    listen_with_history(store, None, settings).await
}

/// Listens and serves until [`RunningServer::end`], and runs the consumers of history beside it.
pub async fn listen_with_history(
    store: Store,
    history: Option<HistoryTier>,
    settings: &Settings,
) -> Result<RunningServer, ListenError> {
    let (files, access) = read(settings)?;
    let unusable = |error| ListenError::Address { address: settings.http, error };
    let listener = TcpListener::bind(settings.http).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let trusted_proxies = access.trusted_proxies.clone();
    let darkages =
        DarkAges::new(store.clone(), &settings.server_instance).map_err(ListenError::ServerInstance)?;
    let darkages = darkages.with_shards(settings.darkages_shards.clone());
    let app = AppState::new(store, access, (settings.poison_rule, settings.hit_rules), darkages);
    // State and metrics are new, so that the cells are empty.
    let history = history.map(|tier| {
        let _ = app.history.set(tier.clone());
        RunningHistory::start(tier, &app.metrics)
    });
    let _ = app.metrics.limits.log_lines_dropped.set(settings.log_lines_dropped.clone());
    let limits =
        ConnectionLimits { total: settings.connections_max, per_address: settings.connections_per_address };
    let connections = Connections::new(limits, trusted_proxies, app.metrics.clone());
    let listener = LimitedListener { listener, connections };
    let ((stop, stopped), reload) = (watch::channel(()), Arc::new(Notify::new()));
    let acceptor = Acceptor {
        router: routes::router(app.clone()),
        tls: files.certificate.as_ref().map(CertificateFiles::config),
        head_timeout: settings.timeouts.head,
        stop: stopped,
    };
    let serving = Some(tokio::spawn(acceptor.serve(listener)));
    let background = spawn_background(&app, files, &reload);
    Ok(RunningServer { address, stop, serving, background, reload, history, app })
}

/// What the settings name: the files, and who may call.
fn read(settings: &Settings) -> Result<(ReloadableFiles, AccessPolicy), ListenError> {
    let token_file = settings.tokens.as_deref().map(TokenFile::open).transpose()?;
    let tokens = match &token_file {
        Some(file) => file.tokens(),
        None if settings.is_loopback() => Tokens::open(),
        None => return Err(ListenError::OpenToAll { address: settings.http }),
    };
    let (origins, ws_origins) =
        (AllowedOrigins::parse(&settings.origins)?, AllowedOrigins::parse(&settings.ws_origins)?);
    if tokens.is_open() && origins.is_all() {
        return Err(ListenError::OpenToAllPages);
    }
    let access = AccessPolicy {
        tokens,
        origins,
        ws_origins,
        trusted_proxies: TrustedProxies::parse(&settings.trusted_proxies)?,
        room_rate: PerIpLimiter::new(settings.rooms_per_second),
        missing_rooms_per_minute: settings.missing_rooms_per_minute,
        body_timeout: settings.timeouts.body,
    };
    let certificate = settings.tls.as_ref().map(CertificateFiles::open).transpose()?;
    Ok((ReloadableFiles { tokens: token_file, certificate }, access))
}

/// Starts the background tasks.
fn spawn_background(app: &AppState, files: ReloadableFiles, reload: &Arc<Notify>) -> [JoinHandle<()>; 6] {
    let (files, notified) = (Arc::new(Mutex::new(files)), reload.clone());
    let (hubs, store, metrics) = (app.hubs.clone(), app.store.clone(), app.metrics.clone());
    let (darkages, counted) = (app.darkages.clone(), app.metrics.clone());
    let (feeds, gateway) = (app.galaxy_feeds.clone(), app.galaxy_gateway.clone());
    [
        supervise("files", app.metrics.clone(), move || reload::watch(files.clone(), notified.clone())),
        supervise("rooms", app.metrics.clone(), move || hubs.clone().listen()),
        supervise("keys", app.metrics.clone(), move || key_counts::run(store.clone(), metrics.clone())),
        supervise("darkages-sweep", app.metrics.clone(), move || {
            darkages_sweep::run(darkages.clone(), counted.clone())
        }),
        supervise("galaxy-ticks", app.metrics.clone(), move || feeds.clone().run()),
        supervise("galaxy-presence", app.metrics.clone(), move || gateway.clone().run()),
    ]
}

impl RunningServer {
    /// The address that was bound, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reloads token file, certificate and key at once.
    pub fn reload(&self) {
        self.reload.notify_one();
    }

    /// Adds a link to the start page, beside those that every server has.
    pub fn add_home_link(&self, label: impl Into<String>, url: impl Into<String>) {
        self.app.home_links.lock().push((label.into(), url.into()));
    }

    /// Waits until the listener fails. Pending while it works.
    pub async fn failed(&mut self) -> io::Error {
        let Some(serving) = &mut self.serving else { return std::future::pending().await };
        let outcome = serving.await;
        self.serving = None;
        outcome.map_or_else(io::Error::other, |()| io::Error::other("it ended without a shutdown"))
    }

    /// Graceful shutdown: refuses new connections, waits for requests in flight, stops the consumers of history, and
    /// closes history and the store.
    pub async fn end(mut self) -> emberkeep_hot::Result<()> {
        self.app.hubs.shutdown();
        self.app.streams.shutdown();
        self.app.galaxy_feeds.shutdown();
        self.stop.send_replace(());
        if let Some(serving) = self.serving.take()
            && let Err(error) = serving.await
        {
            tracing::error!("the listener failed: {error}");
        }
        self.wait_for_websockets().await;
        self.background.iter().for_each(JoinHandle::abort);
        if let Some(history) = self.history.take() {
            history.end().await;
        }
        self.app.store.close().await
    }

    /// The listener does not wait for upgraded connections.
    async fn wait_for_websockets(&self) {
        let deadline = Instant::now() + SHUTDOWN_GRACE;
        while self.app.metrics.sockets.load(Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(SOCKETS_COUNTED_EVERY).await;
        }
    }
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
