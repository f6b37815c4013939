//! How sessions end, tested without a network.

use super::fixture::*;
use crate::limits::{SOCKET_DROPS_MAX, SOCKET_MESSAGES_BURST};
use crate::ws::close::CloseReason;
use crate::ws::timing::Timing;
use axum::extract::ws::Message;
use futures_util::{FutureExt as _, Sink, Stream};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A socket in memory.
pub(in crate::ws) struct FakeSocket {
    writable: bool,
    outgoing: UnboundedSender<Message>,
    incoming: UnboundedReceiver<Message>,
}

/// A socket, and the client's sender and receiver.
pub(in crate::ws) fn socket() -> (FakeSocket, UnboundedSender<Message>, UnboundedReceiver<Message>) {
    let ((outgoing, receiver), (sender, incoming)) = (unbounded_channel(), unbounded_channel());
    (FakeSocket { writable: true, outgoing, incoming }, sender, receiver)
}

impl Stream for FakeSocket {
    type Item = Result<Message, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_recv(cx).map(|message| message.map(Ok))
    }
}

impl Sink<Message> for FakeSocket {
    type Error = axum::Error;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        if self.writable { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), axum::Error> {
        self.outgoing.send(message).map_err(axum::Error::new)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_client_that_never_answers_is_disconnected() {
    let room = Fixture::new(Timing { poll_every: NEVER, ..FAST }).await;
    let session = room.session("phone").await;
    let (mut socket, _sender, mut receiver) = socket();
    // Messages can be sent to it, and nothing comes back, not even a pong.
    assert_eq!(session.run(&mut socket).await, Some(CloseReason::Idle));
    assert!(matches!(receiver.recv().await, Some(Message::Ping(_))), "it was pinged");
}

#[tokio::test]
async fn a_client_that_answers_pings_stays() {
    let (ping_every, idle_max) = (Duration::from_millis(50), Duration::from_millis(500));
    let room = Fixture::new(Timing { ping_every, idle_max, ..CALM }).await;
    let session = room.session("phone").await;
    let (mut socket, sender, mut receiver) = socket();
    let pongs = async {
        for _ in 0..12 {
            assert!(matches!(receiver.recv().await, Some(Message::Ping(_))));
            sender.send(Message::Pong(Default::default())).unwrap();
        }
        sender.send(Message::Close(None)).unwrap();
    };
    let (reason, ()) = tokio::join!(session.run(&mut socket), pongs);
    assert_eq!(reason, None, "twelve pings take longer than a client may be silent");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_too_slow() {
    let room = Fixture::new(Timing { write_timeout: FAST.write_timeout, ..CALM }).await;
    let session = room.session("phone").await;
    let (mut socket, _sender, _receiver) = socket();
    socket.writable = false;
    assert_eq!(session.run(&mut socket).await, Some(CloseReason::TooSlow));
    assert_eq!(room.metrics.sockets_too_slow.load(Relaxed), 1);
}

#[tokio::test]
async fn a_flood_of_pings_is_a_flood() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut socket, sender, _receiver) = socket();
    for _ in 0..=SOCKET_MESSAGES_BURST + SOCKET_DROPS_MAX {
        sender.send(Message::Ping(Default::default())).unwrap();
    }
    assert_eq!(session.run(&mut socket).await, Some(CloseReason::Flood));
}

#[tokio::test]
async fn a_session_ends_at_once_with_the_server() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut socket, _sender, _receiver) = socket();
    room.hubs.shutdown();
    assert_eq!(session.run(&mut socket).await, Some(CloseReason::Shutdown));
}

#[tokio::test]
async fn incoming_messages_are_read_while_the_send_queue_is_full() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut socket, sender, mut receiver) = socket();
    for _ in 0..10 {
        session.queue.push_required("{}".into()).unwrap();
    }
    sender.send(Message::Close(None)).unwrap();
    assert_eq!(session.run(&mut socket).await, None);
    let mut texts = 0;
    while let Ok(message) = receiver.try_recv() {
        texts += usize::from(matches!(message, Message::Text(_)));
    }
    assert!(texts <= 2, "{texts} messages were sent before one was read");
}

#[tokio::test]
async fn a_session_whose_task_is_dropped_leaves_its_room() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    assert_eq!(room.metrics.rooms.load(Relaxed), 1);
    let (mut socket, _sender, _receiver) = socket();
    assert!(session.run(&mut socket).now_or_never().is_none(), "it runs until it is dropped");
    let left = async {
        while room.metrics.rooms.load(Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("the hub ends with its last subscriber");
}
