//! One pipelined connection: opened when needed, dropped as soon as it cannot be trusted.

use super::activity::{ActivityMonitor, LastActivity, MonitoredStream};
use crate::failure::Failure;
use crate::limits::CONNECT_WAIT;
use crate::script;
use emberkeep_hot::Error;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, Value,
};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

/// A connection that is opened again after it broke.
pub(crate) struct Connection {
    open: Mutex<Option<OpenConnection>>,
    /// Locked while connecting, so that a burst of calls opens one connection.
    connecting: tokio::sync::Mutex<()>,
    /// When the last attempt to connect failed, and why: callers that waited for it share its failure.
    failed: Mutex<Option<(Instant, Failure)>>,
    generations: AtomicU64,
    /// A reply counts as lost when nothing arrives for so long; `None` = never.
    reply_wait: Option<Duration>,
    tls: Option<TlsConnector>,
}

/// A connection that was opened, shared by its clones.
#[derive(Clone)]
pub(crate) struct OpenConnection {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) generation: u64,
    /// Until it breaks, all of its answers come from one process.
    pub(crate) opened: Instant,
    pub(crate) monitor: ActivityMonitor,
    /// Ends the connection when the last clone is dropped.
    _driver: Arc<Driver>,
    /// The server's `run_id`, once [`OpenConnection::run_id`] has asked for it.
    run_id: Arc<OnceCell<String>>,
}

impl OpenConnection {
    /// The server's `run_id`: it differs after every restart, and where a host name leads to another server.
    /// Asked once; empty where our user may not run INFO.
    pub(crate) async fn run_id(&self, name: &str) -> Result<String, Failure> {
        let run_id = self.run_id.get_or_try_init(async || {
            let (mut connection, mut info) = (self.connection.clone(), redis::cmd("INFO"));
            let answer = self.monitor.reply(info.arg("server").query_async::<Value>(&mut connection)).await;
            match answer.map_err(|error| Failure::of(name, error)) {
                Ok(info) => Ok(parse_run_id(&script::text(&info))),
                Err(Failure::Refused(Error::Denied { .. })) => Ok(String::new()),
                Err(failure) => Err(failure),
            }
        });
        run_id.await.cloned()
    }
}

/// The line `run_id:…` of INFO.
fn parse_run_id(info: &str) -> String {
    info.lines().find_map(|line| line.trim().strip_prefix("run_id:")).unwrap_or_default().to_owned()
}

/// The task that drives a connection of our own.
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a connection on a monitored stream. With TLS the stream below is monitored, so that a part of an
/// encrypted block counts as well.
async fn open(
    client: &Client,
    tls: Option<&TlsConnector>,
) -> RedisResult<(MultiplexedConnection, Arc<LastActivity>, Arc<Driver>)> {
    let info = client.get_connection_info();
    let (host, port, tls) = match (info.addr(), tls) {
        (ConnectionAddr::Tcp(host, port), None) => (host, *port, None),
        (ConnectionAddr::TcpTls { host, port, insecure: false, .. }, Some(tls)) => (host, *port, Some(tls)),
        _ => {
            let problem = "it must be TCP, or TLS with a certificate that is verified";
            return Err(RedisError::from((ErrorKind::InvalidClientConfig, problem)));
        }
    };
    let (stream, activity) = MonitoredStream::connect(host, port).await?;
    let (connection, driver) = match tls {
        None => handshake(info, stream).await?,
        Some(tls) => {
            let name = ServerName::try_from(host.as_str())?.to_owned();
            handshake(info, tls.connect(name, stream).await?).await?
        }
    };
    Ok((connection, activity, Arc::new(driver)))
}

/// Logs in on this stream and selects the database.
async fn handshake(
    info: &ConnectionInfo,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> RedisResult<(MultiplexedConnection, Driver)> {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_WAIT)).set_response_timeout(None);
    let settings = info.redis_settings();
    let (connection, driver) = MultiplexedConnection::new_with_config(settings, stream, config).await?;
    Ok((connection, Driver(tokio::spawn(driver))))
}

impl Connection {
    pub(crate) fn new(reply_wait: Option<Duration>, tls: Option<TlsConnector>) -> Connection {
        Connection {
            open: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
            failed: Mutex::new(None),
            generations: AtomicU64::new(0),
            reply_wait,
            tls,
        }
    }

    /// Whether something arrived lately.
    pub(crate) fn is_receiving(&self) -> bool {
        self.open.lock().as_ref().is_some_and(|open| open.monitor.is_receiving())
    }

    /// Whether a connection is open; it may have broken since its last use.
    pub(crate) fn is_open(&self) -> bool {
        self.open.lock().is_some()
    }

    /// The open connection, or a new one.
    pub(crate) async fn connected(&self, client: &Client, name: &str) -> Result<OpenConnection, Failure> {
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        let asked = Instant::now();
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        if let Some((at, failure)) = &*self.failed.lock()
            && *at > asked
        {
            return Err(failure.clone());
        }
        let opened = self.connect(client, name).await;
        if let Err(failure) = &opened {
            *self.failed.lock() = Some((Instant::now(), failure.clone()));
        }
        opened
    }

    async fn connect(&self, client: &Client, name: &str) -> Result<OpenConnection, Failure> {
        // The library's own time-out does not cover the handshake with a server that hangs.
        let opened = open(client, self.tls.as_ref());
        let (connection, activity, driver) = match tokio::time::timeout(CONNECT_WAIT, opened).await {
            Ok(opened) => opened.map_err(|error| Failure::of_connecting(name, error))?,
            Err(_) => {
                return Err(Failure::Unreachable { reason: format!("no greeting within {CONNECT_WAIT:?}") });
            }
        };
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        let open = OpenConnection {
            connection,
            generation,
            opened: Instant::now(),
            monitor: ActivityMonitor::new(activity, self.reply_wait),
            _driver: driver,
            run_id: Arc::default(),
        };
        *self.open.lock() = Some(open.clone());
        Ok(open)
    }

    /// The next call opens another connection.
    pub(crate) fn renew(&self) {
        *self.open.lock() = None;
    }

    /// Drops a connection that cannot be trusted any more, unless it was already replaced.
    pub(crate) fn forget(&self, generation: u64) {
        let mut open = self.open.lock();
        if open.as_ref().is_some_and(|open| open.generation == generation) {
            *open = None;
        }
    }
}
