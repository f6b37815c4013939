//! How a connection ends that no network is needed for.

use super::table::*;
use crate::limits::{SOCKET_MESSAGES_BURST, SOCKET_OVER_PACE_MAX};
use crate::ws::ending::Ending;
use crate::ws::rhythm::Rhythm;
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
    let table = Table::set(Rhythm { look_every: NEVER, ..FAST }).await;
    let client = table.client("phone").await;
    let (mut line, _says, mut hears) = line();
    // Its network takes what is sent, and nothing comes back: no pong either.
    assert_eq!(client.converse(&mut line).await, Some(Ending::Idle));
    assert!(matches!(hears.recv().await, Some(Message::Ping(_))), "it was asked for a sign of life");
}

#[tokio::test]
async fn a_client_that_answers_pings_stays() {
    let (ping_every, idle_max) = (Duration::from_millis(50), Duration::from_millis(500));
    let table = Table::set(Rhythm { ping_every, idle_max, ..CALM }).await;
    let client = table.client("phone").await;
    let (mut line, says, mut hears) = line();
    let answers = async {
        for _ in 0..12 {
            assert!(matches!(hears.recv().await, Some(Message::Ping(_))));
            says.send(Message::Pong(Default::default())).unwrap();
        }
        says.send(Message::Close(None)).unwrap();
    };
    let (ending, ()) = tokio::join!(client.converse(&mut line), answers);
    assert_eq!(ending, None, "twelve pings are longer than a client may be silent");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_too_slow() {
    let table = Table::set(Rhythm { write_wait: FAST.write_wait, ..CALM }).await;
    let client = table.client("phone").await;
    let (mut line, _says, _hears) = line();
    line.takes = false;
    assert_eq!(client.converse(&mut line).await, Some(Ending::TooSlow));
    assert_eq!(table.metrics.sockets_too_slow.load(Relaxed), 1);
}

#[tokio::test]
async fn a_flood_of_pings_is_one_too() {
    let table = Table::set(CALM).await;
    let client = table.client("phone").await;
    let (mut line, says, _hears) = line();
    for _ in 0..=SOCKET_MESSAGES_BURST + SOCKET_OVER_PACE_MAX {
        says.send(Message::Ping(Default::default())).unwrap();
    }
    assert_eq!(client.converse(&mut line).await, Some(Ending::TooMuch));
}

#[tokio::test]
async fn when_the_server_ends_a_connection_hears_it_at_once() {
    let table = Table::set(CALM).await;
    let client = table.client("phone").await;
    let (mut line, _says, _hears) = line();
    table.registry.end();
    assert_eq!(client.converse(&mut line).await, Some(Ending::ServerEnds));
}

#[tokio::test]
async fn a_client_is_heard_while_there_is_more_to_say_to_it() {
    let table = Table::set(CALM).await;
    let client = table.client("phone").await;
    let (mut line, says, mut hears) = line();
    for _ in 0..10 {
        client.outbox.owe("{}".into()).unwrap();
    }
    says.send(Message::Close(None)).unwrap();
    assert_eq!(client.converse(&mut line).await, None);
    let mut texts = 0;
    while let Ok(message) = hears.try_recv() {
        texts += usize::from(matches!(message, Message::Text(_)));
    }
    assert!(texts <= 2, "it had to listen to {texts} messages before it was heard");
}

#[tokio::test]
async fn a_connection_whose_task_is_dropped_leaves_its_room() {
    let table = Table::set(CALM).await;
    let client = table.client("phone").await;
    assert_eq!(table.metrics.rooms.load(Relaxed), 1);
    let (mut line, _says, _hears) = line();
    assert!(client.converse(&mut line).now_or_never().is_none(), "it goes on until it is dropped");
    let left = async {
        while table.metrics.rooms.load(Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("the hub ends with its last seat");
}
