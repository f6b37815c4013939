//! A TCP proxy that loses and delays traffic on purpose.
//!
//! What happens to a request is decided when it has arrived whole (`requests`), then it waits in a
//! delay line (`delay_line`) until its time (`clock`), then it is carried out (`connection`). Replies take
//! the same way back. What is to be done is set at runtime in `faults`.
//!
//! The three ends of a connection that a test can order:
//! - *before*: the request never reaches the server, and the connection is cut;
//! - *after*: the request is executed, its reply is swallowed, then the connection is cut;
//! - *now*: everything in flight is lost, executed or not.
//!
//! One thread carries everything, so that the proxy costs little beside what it stands before.

mod clock;
mod connection;
mod control;
mod delay_line;
mod faults;
mod requests;

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use control::serve_proxy;
pub use faults::ProxyCounts;

use faults::Faults;

/// A proxy before one server; it ends, with all its connections, on drop.
#[derive(Debug)]
pub struct FaultProxy {
    faults: Arc<Faults>,
    target: Arc<Mutex<SocketAddr>>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy before `target`, at first without any fault.
    ///
    /// The target need not be up: a connection is then accepted and cut, as with a dead backend.
    pub fn start(target: impl ToSocketAddrs) -> io::Result<Self> {
        let target = Arc::new(Mutex::new(first_address(target)?));
        let listener = TcpListener::bind(("127.0.0.1", crate::port::free_port()))
            .or_else(|_| TcpListener::bind(("127.0.0.1", 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let faults = Arc::new(Faults::default());
        let (shared, to) = (Arc::clone(&faults), Arc::clone(&target));
        let thread = std::thread::Builder::new()
            .name("fault-proxy".into())
            .spawn(move || run(listener, &to, shared))?;
        Ok(Self { faults, target, port, thread: Some(thread) })
    }

    /// New connections lead to this server, as those of a host name that follows the primary; old ones stay.
    pub fn retarget(&self, target: impl ToSocketAddrs) -> io::Result<()> {
        let target = first_address(target)?;
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
        Ok(())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that clients connect to: `127.0.0.1:port`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL that clients connect to: `redis://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Adds this much to the way of every request and to the way of every reply: the round trip
    /// grows by the sum. Throughput does not suffer; what is under way keeps its old delay.
    pub fn delay(&self, requests: Duration, replies: Duration) {
        self.faults.set_delay(requests, replies);
    }

    /// Replies pass at most this many bytes a second on each connection; 0 = as fast as it goes.
    pub fn bandwidth(&self, bytes_per_s: u64) {
        self.faults.set_bandwidth(bytes_per_s);
    }

    /// Cuts the connections of the next `n` requests before these reach the server.
    pub fn drop_requests(&self, n: u64) {
        self.faults.drop_requests(n);
    }

    /// Lets the next `n` requests be executed, swallows their replies, then cuts their connections.
    /// The client sees the end of the stream only after the server has executed the request.
    pub fn drop_replies(&self, n: u64) {
        self.faults.drop_replies(n);
    }

    /// From now on each request meets either fate with these probabilities (0 to 1), drawn from
    /// `seed`. The same requests in the same order meet the same fates. `(seed, 0.0, 0.0)` ends it.
    pub fn random_drops(&self, seed: u64, request: f64, reply: f64) {
        self.faults.random_drops(seed, request, reply);
    }

    /// Ordered and random drops only hit requests that contain these bytes, such as `EVALSHA`: the
    /// handshake of a client library is spared. Empty means all requests.
    pub fn only_requests_with(&self, bytes: impl AsRef<[u8]>) {
        self.faults.only_requests_with(bytes.as_ref());
    }

    /// Cuts all connections that are open now; what is under way in either direction is lost.
    pub fn cut_all(&self) {
        self.faults.cut_all();
    }

    /// The backend is down: all connections are cut, new ones are cut as soon as they arrive.
    pub fn refuse(&self) {
        self.faults.set_refusing(true);
        self.faults.cut_all();
    }

    /// The backend is up again.
    pub fn accept(&self) {
        self.faults.set_refusing(false);
    }

    /// Swallows all bytes in both directions; connections stay open and new ones come in. A connection that
    /// lost a byte stays silent also after [`FaultProxy::speak`], like one whose peer has vanished.
    pub fn silence(&self) {
        self.faults.set_silent(true);
    }

    /// New connections, and old ones that have lost nothing, are served again.
    pub fn speak(&self) {
        self.faults.set_silent(false);
    }

    /// What it has done so far.
    pub fn counts(&self) -> ProxyCounts {
        self.faults.counts()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.faults.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn first_address(target: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    target.to_socket_addrs()?.next().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// The proxy's thread; returns when the proxy is dropped.
fn run(listener: TcpListener, target: &Mutex<SocketAddr>, faults: Arc<Faults>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime of one thread needs only an epoll descriptor");
    let clock = clock::Clock::start();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("it is non-blocking");
        let mut end = faults.ended();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = end.wait_for(|ended| *ended) => return,
            };
            // A client that gave up between SYN and accept is not worth a word.
            let Ok((client, _)) = accepted else { continue };
            // Taken before the question: a cut that is ordered from here on counts for it too.
            let cuts = faults.cuts();
            if faults.admit() {
                let target = *target.lock().unwrap_or_else(PoisonError::into_inner);
                tokio::spawn(connection::carry(client, target, cuts, Arc::clone(&faults), clock.clone()));
            }
        }
    });
}
