//! The bounded queue of messages to one client.
//!
//! 1. *One queue*: answers, events and states are sent in order. The close frame comes last.
//! 2. *Bounded* in messages and bytes, with at most one state, because a newer state replaces an older one.
//! 3. *Events that do not fit* are dropped, also queued ones, because the state shows them. Answers and the
//!    loss of a player are required; a client with too many of them is too slow.
//! 4. *Welcome first*: while the queue is on hold nothing is sent; the welcome goes before everything that
//!    was queued.

use super::close::CloseReason;
use crate::limits::{SOCKET_QUEUE_BYTES_MAX, SOCKET_QUEUE_MESSAGES_MAX};
use axum::extract::ws::Utf8Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// The next thing to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outgoing {
    Text(Utf8Bytes),
    /// The close frame; nothing follows it.
    Close(CloseReason),
}

/// Whether a message may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// The state shows it, too.
    Droppable,
    /// Only this message says it.
    Required,
    /// The state of the room. A later one replaces it while it waits.
    State,
}

/// The client is too slow: required messages do not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

/// The messages that wait for one client. Clones share them.
#[derive(Clone, Default)]
pub(super) struct SendQueue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queued: Mutex<QueueState>,
    added: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<(Priority, Utf8Bytes)>,
    on_hold: bool,
    close_reason: Option<CloseReason>,
}

impl SendQueue {
    /// Waits for the next message. Only one task may call it.
    pub(super) async fn next(&self) -> Outgoing {
        loop {
            if let Some(next) = self.0.queued.lock().next() {
                return next;
            }
            self.0.added.notified().await;
        }
    }

    /// Sends nothing until [`release_with`](Self::release_with).
    pub(super) fn hold(&self) {
        self.0.queued.lock().on_hold = true;
    }

    /// Puts messages in front, however long, and starts sending.
    pub(super) fn release_with(&self, texts: Vec<Utf8Bytes>) {
        let mut queued = self.0.queued.lock();
        queued.on_hold = false;
        texts.into_iter().rev().for_each(|text| queued.messages.push_front((Priority::Required, text)));
        drop(queued);
        self.0.added.notify_one();
    }

    /// Queues a message that must not be dropped, such as the answer to a request.
    pub(super) fn push_required(&self, text: Utf8Bytes) -> Result<(), QueueFull> {
        self.add(|queued| {
            let fits = queued.fits(1, text.len());
            fits.then(|| queued.messages.push_back((Priority::Required, text))).ok_or(QueueFull)
        })
    }

    /// Queues events, then a state. `false` if the events did not fit: then all droppable ones are removed,
    /// and the client needs the state.
    pub(super) fn push(
        &self,
        mut events: Vec<(Priority, Utf8Bytes)>,
        state: Option<Utf8Bytes>,
    ) -> Result<bool, QueueFull> {
        self.add(|queued| {
            let fits = queued.fits(events.len(), events.iter().map(|(_, text)| text.len()).sum());
            if !fits {
                events.retain(|(weight, _)| *weight == Priority::Required);
                queued.messages.retain(|(weight, _)| *weight == Priority::Required);
            }
            if !queued.fits(events.len(), events.iter().map(|(_, text)| text.len()).sum()) {
                return Err(QueueFull);
            }
            queued.messages.extend(events);
            if let Some(state) = state {
                queued.messages.retain(|(weight, _)| *weight != Priority::State);
                queued.messages.push_back((Priority::State, state));
            }
            Ok(fits)
        })
    }

    /// Queues a ping, unless another message is queued.
    pub(super) fn ping(&self, text: Utf8Bytes) {
        let _ = self.add(|queued| {
            if queued.messages.is_empty() {
                queued.messages.push_back((Priority::Droppable, text));
            }
            Ok(())
        });
    }

    /// Closes the connection after the queued messages and the reason's final message.
    pub(super) fn close(&self, reason: CloseReason) {
        let _ = self.add(|queued| {
            queued.messages.extend(reason.final_message().map(|text| (Priority::Required, text)));
            queued.close_reason = Some(reason);
            Ok(())
        });
    }

    /// Whether further messages are ignored.
    pub(super) fn is_closed(&self) -> bool {
        self.0.queued.lock().close_reason.is_some()
    }

    fn add<T: Default>(
        &self,
        add: impl FnOnce(&mut QueueState) -> Result<T, QueueFull>,
    ) -> Result<T, QueueFull> {
        let mut queued = self.0.queued.lock();
        if queued.close_reason.is_some() {
            return Ok(T::default());
        }
        let added = add(&mut queued);
        drop(queued);
        self.0.added.notify_one();
        added
    }
}

impl QueueState {
    fn next(&mut self) -> Option<Outgoing> {
        if self.on_hold {
            return None;
        }
        match self.messages.pop_front() {
            Some((_, text)) => Some(Outgoing::Text(text)),
            None => self.close_reason.map(Outgoing::Close),
        }
    }

    /// Whether this many more messages fit. The state is not counted.
    fn fits(&self, messages: usize, bytes: usize) -> bool {
        let counted = self.messages.iter().filter(|(weight, _)| *weight != Priority::State);
        let (count, sum) = counted.fold((0, 0), |(count, sum), (_, text)| (count + 1, sum + text.len()));
        count + messages <= SOCKET_QUEUE_MESSAGES_MAX && sum + bytes <= SOCKET_QUEUE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Utf8Bytes {
        Utf8Bytes::from(text.to_owned())
    }

    fn events(count: usize) -> Vec<(Priority, Utf8Bytes)> {
        (0..count).map(|_| (Priority::Droppable, text("event"))).collect()
    }

    fn drained(queue: &SendQueue) -> Vec<Outgoing> {
        let mut queued = queue.0.queued.lock();
        let mut all = Vec::new();
        while let Some(next) = queued.next() {
            let last = matches!(next, Outgoing::Close(_));
            all.push(next);
            if last {
                break;
            }
        }
        all
    }

    fn texts(queue: &SendQueue) -> Vec<String> {
        let text = |next: &Outgoing| match next {
            Outgoing::Text(text) => text.to_string(),
            Outgoing::Close(reason) => format!("{reason:?}"),
        };
        drained(queue).iter().map(text).collect()
    }

    #[test]
    fn one_state_waits_and_it_is_the_newest() {
        let queue = SendQueue::default();
        assert_eq!(queue.push(events(1), Some(text("state 1"))), Ok(true));
        assert_eq!(queue.push(events(1), None), Ok(true));
        queue.push_required(text("answer")).unwrap();
        assert_eq!(queue.push(vec![], Some(text("state 2"))), Ok(true));
        queue.ping(text("needless"));
        queue.close(CloseReason::RoomClosed);
        queue.push_required(text("too late")).unwrap();
        let last = message_of(CloseReason::RoomClosed);
        assert_eq!(texts(&queue), ["event", "event", "answer", "state 2", &last, "RoomClosed"]);
    }

    fn message_of(reason: CloseReason) -> String {
        reason.final_message().map(|text| text.to_string()).unwrap_or_default()
    }

    #[test]
    fn events_that_do_not_fit_are_dropped_and_required_messages_stay() {
        let queue = SendQueue::default();
        queue.push_required(text("answer")).unwrap();
        assert_eq!(queue.push(events(SOCKET_QUEUE_MESSAGES_MAX - 1), None), Ok(true));
        let lost = (Priority::Required, text("lost"));
        assert_eq!(queue.push(vec![lost, (Priority::Droppable, text("event"))], None), Ok(false));
        assert_eq!(texts(&queue), ["answer", "lost"]);
        let large = text(&"x".repeat(SOCKET_QUEUE_BYTES_MAX + 1));
        assert_eq!(queue.push(vec![(Priority::Droppable, large)], Some(text("state 3"))), Ok(false));
        assert_eq!(texts(&queue), ["state 3"], "bytes count, too");
    }

    #[test]
    fn too_many_required_messages_are_an_error() {
        let queue = SendQueue::default();
        for _ in 0..SOCKET_QUEUE_MESSAGES_MAX {
            queue.push_required(text("answer")).unwrap();
        }
        assert_eq!(queue.push_required(text("answer")), Err(QueueFull));
        assert_eq!(queue.push(vec![(Priority::Required, text("lost"))], Some(text("state"))), Err(QueueFull));
        assert_eq!(queue.push(events(1), Some(text("state"))), Ok(false), "a state always fits");
    }

    #[test]
    fn nothing_leaves_before_the_welcome() {
        let queue = SendQueue::default();
        queue.hold();
        queue.push(events(1), Some(text("state"))).unwrap();
        assert_eq!(drained(&queue), []);
        queue.release_with(vec![text("welcome"), text("lost")]);
        assert_eq!(texts(&queue), ["welcome", "lost", "event", "state"]);
    }

    #[test]
    fn a_welcome_fits_however_long_it_is() {
        let queue = SendQueue::default();
        queue.release_with(vec![text(&"s".repeat(SOCKET_QUEUE_BYTES_MAX + 1)), text("lost")]);
        assert_eq!(drained(&queue).len(), 2);
    }
}
