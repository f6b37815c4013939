//! How a connection ends that no network is needed for.

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

/// Both directions of a socket.
struct Line {
    takes: bool,
    sent: UnboundedSender<Message>,
    said: UnboundedReceiver<Message>,
}

/// A line, and its other end.
fn line() -> (Line, UnboundedSender<Message>, UnboundedReceiver<Message>) {
    let ((sent, hears), (says, said)) = (unbounded_channel(), unbounded_channel());
    (Line { takes: true, sent, said }, says, hears)
}

impl Stream for Line {
    type Item = Result<Message, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.said.poll_recv(cx).map(|message| message.map(Ok))
    }
}

impl Sink<Message> for Line {
    type Error = axum::Error;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        if self.takes { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), axum::Error> {
        self.sent.send(message).map_err(axum::Error::new)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_client_that_is_half_gone_is_ended() {
    let room = Fixture::new(Timing { poll_every: NEVER, ..FAST }).await;
    let session = room.session("phone").await;
    let (mut line, _says, mut hears) = line();
    // Its network takes what is sent, and nothing comes back: no pong either.
    assert_eq!(session.run(&mut line).await, Some(CloseReason::Idle));
    assert!(matches!(hears.recv().await, Some(Message::Ping(_))), "it was asked for a sign of life");
}

#[tokio::test]
async fn a_client_that_answers_pings_stays() {
    let (ping_every, idle_max) = (Duration::from_millis(50), Duration::from_millis(500));
    let room = Fixture::new(Timing { ping_every, idle_max, ..CALM }).await;
    let session = room.session("phone").await;
    let (mut line, says, mut hears) = line();
    let answers = async {
        for _ in 0..12 {
            assert!(matches!(hears.recv().await, Some(Message::Ping(_))));
            says.send(Message::Pong(Default::default())).unwrap();
        }
        says.send(Message::Close(None)).unwrap();
    };
    let (reason, ()) = tokio::join!(session.run(&mut line), answers);
    assert_eq!(reason, None, "twelve pings are longer than a client may be silent");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_too_slow() {
    let room = Fixture::new(Timing { write_timeout: FAST.write_timeout, ..CALM }).await;
    let session = room.session("phone").await;
    let (mut line, _says, _hears) = line();
    line.takes = false;
    assert_eq!(session.run(&mut line).await, Some(CloseReason::TooSlow));
    assert_eq!(room.metrics.sockets_too_slow.load(Relaxed), 1);
}

#[tokio::test]
async fn a_flood_of_pings_is_one_too() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut line, says, _hears) = line();
    for _ in 0..=SOCKET_MESSAGES_BURST + SOCKET_DROPS_MAX {
        says.send(Message::Ping(Default::default())).unwrap();
    }
    assert_eq!(session.run(&mut line).await, Some(CloseReason::Flood));
}

#[tokio::test]
async fn when_the_server_ends_a_connection_hears_it_at_once() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut line, _says, _hears) = line();
    room.hubs.shutdown();
    assert_eq!(session.run(&mut line).await, Some(CloseReason::Shutdown));
}

#[tokio::test]
async fn a_client_is_heard_while_there_is_more_to_say_to_it() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    let (mut line, says, mut hears) = line();
    for _ in 0..10 {
        session.queue.push_required("{}".into()).unwrap();
    }
    says.send(Message::Close(None)).unwrap();
    assert_eq!(session.run(&mut line).await, None);
    let mut texts = 0;
    while let Ok(message) = hears.try_recv() {
        texts += usize::from(matches!(message, Message::Text(_)));
    }
    assert!(texts <= 2, "it had to listen to {texts} messages before it was heard");
}

#[tokio::test]
async fn a_connection_whose_task_is_dropped_leaves_its_room() {
    let room = Fixture::new(CALM).await;
    let session = room.session("phone").await;
    assert_eq!(room.metrics.rooms.load(Relaxed), 1);
    let (mut line, _says, _hears) = line();
    assert!(session.run(&mut line).now_or_never().is_none(), "it goes on until it is dropped");
    let left = async {
        while room.metrics.rooms.load(Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("the hub ends with its last seat");
}
