//! One connection through the proxy: two delay lines and four small loops.
//!
//! How "executed, but the reply is lost" is made certain: the request is passed on, then the way to
//! the server is closed for writing. Redis executes what it has read before it notices the end of
//! the stream, then closes its side. Only when that end arrives here is the client cut. So when the
//! client sees its connection end, the request has been executed, whatever was pipelined before it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

use super::clock::Clock;
use super::delay_line::{Entry, Exit, Item, line};
use super::faults::{Decision, Faults};
use super::requests::first_request;

const READ_BYTES: usize = 64 * 1024;
/// Bytes that pass at once where the bandwidth is limited.
const PIECE_BYTES: usize = 16 * 1024;

/// Carries a connection until either side ends it or a fault does; then both sides are closed.
pub(super) async fn carry(
    client: TcpStream,
    target: SocketAddr,
    mut cuts: watch::Receiver<u64>,
    faults: Arc<Faults>,
    clock: Clock,
) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let (requests_in, requests_out) = line(clock.clone());
    let (replies_in, replies_out) = line(clock.clone());
    let (swallow, lost) = (AtomicBool::new(false), AtomicBool::new(false));
    tokio::select! {
        () = take_requests(client_in, requests_in, &faults, &lost) => {}
        () = give_requests(requests_out, server_out, &swallow) => {}
        () = take_replies(server_in, replies_in, &faults, (&swallow, &lost)) => {}
        () = give_replies(replies_out, client_out, &faults, &clock) => {}
        _ = cuts.changed() => {}
    }
}

/// Client → line. Decides each request's fate; never returns, the line's far end does.
async fn take_requests(mut from: OwnedReadHalf, to: Entry, faults: &Faults, lost: &AtomicBool) {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        if !matches!(from.read_buf(&mut buffer).await, Ok(1..)) {
            // The client left: what it sent before is still delivered.
            to.put(faults.request_delay(), Item::Cut);
            return std::future::pending().await;
        }
        if faults.swallows(lost) {
            buffer.clear();
        } else if sort_requests(&mut buffer, &to, faults) {
            return std::future::pending().await;
        }
        buffer.reserve(READ_BYTES);
    }
}

/// Puts all whole requests into the line; true when one of them ended the connection.
fn sort_requests(buffer: &mut Vec<u8>, to: &Entry, faults: &Faults) -> bool {
    let delay = faults.request_delay();
    let mut passed = 0;
    while let Some(len) = first_request(&buffer[passed..]) {
        match faults.decide(&buffer[passed..passed + len]) {
            Decision::Pass => passed += len,
            Decision::DropRequest => {
                to.put(delay, Item::Data(buffer[..passed].to_vec()));
                to.put(delay, Item::Cut);
                return true;
            }
            Decision::DropReply => {
                to.put(delay, Item::Last(buffer[..passed + len].to_vec()));
                return true;
            }
        }
    }
    if passed > 0 {
        to.put(delay, Item::Data(buffer.drain(..passed).collect()));
    }
    false
}

/// Passes requests on from the delay line to the server.
async fn give_requests(mut from: Exit, mut to: OwnedWriteHalf, swallow: &AtomicBool) {
    loop {
        let written = match from.take().await {
            Item::Data(bytes) => to.write_all(&bytes).await,
            Item::Last(bytes) => {
                swallow.store(true, Relaxed);
                let _ = to.write_all(&bytes).await;
                let _ = to.shutdown().await;
                return std::future::pending().await;
            }
            Item::Cut => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// Server → line, or into the void once the connection is doomed or lost. The client of a lost one does not
/// even learn that the server has closed it.
async fn take_replies(
    mut from: OwnedReadHalf,
    to: Entry,
    faults: &Faults,
    (swallow, lost): (&AtomicBool, &AtomicBool),
) {
    loop {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let ended = !matches!(from.read_buf(&mut buffer).await, Ok(1..));
        let lost = faults.swallows(lost);
        if ended {
            if !lost {
                to.put(faults.reply_delay(), Item::Cut);
            }
            return std::future::pending().await;
        }
        if !lost && !swallow.load(Relaxed) {
            to.put(faults.reply_delay(), Item::Data(buffer));
        }
    }
}

/// Passes replies on from the delay line to the client.
async fn give_replies(mut from: Exit, mut to: OwnedWriteHalf, faults: &Faults, clock: &Clock) {
    while let Item::Data(bytes) | Item::Last(bytes) = from.take().await {
        for piece in bytes.chunks(PIECE_BYTES) {
            clock.until(Instant::now() + faults.reply_time(piece.len())).await;
            if to.write_all(piece).await.is_err() {
                return;
            }
        }
    }
}
