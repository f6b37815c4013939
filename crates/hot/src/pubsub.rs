//! Subscriptions: a bounded queue per subscriber. A slow subscriber loses the oldest messages and gets their
//! number; it never blocks a writer.

use crate::limits::SUBSCRIBER_MESSAGES_MAX;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a subscriber receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message of a channel to which the subscriber listens.
    Message {
        /// The raw name of the channel, as its family renders it.
        channel: Bytes,
        /// The bytes that were published.
        payload: Bytes,
    },
    /// Messages were lost: the subscriber was too slow, or the connection broke. Read the log or the state.
    Missed {
        /// How many; `None` after a broken connection.
        count: Option<u64>,
    },
}

/// The receiving end. Dropping it unsubscribes.
pub struct Subscription {
    queue: Arc<Queue>,
    /// Unsubscribes when it is dropped.
    _guard: Option<Box<dyn std::any::Any + Send + Sync>>,
}

/// The sending end, held by an engine.
#[derive(Clone)]
pub struct Publisher {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    closed: bool,
}

impl Subscription {
    /// A queue; the guard lives as long as the subscription.
    pub fn channel(guard: Option<Box<dyn std::any::Any + Send + Sync>>) -> (Publisher, Subscription) {
        let queue = Arc::new(Queue { state: Mutex::default(), wake: Notify::new() });
        (Publisher { queue: queue.clone() }, Subscription { queue, _guard: guard })
    }

    /// Attaches what must live as long as the subscription.
    pub fn guarded_by(mut self, guard: Box<dyn std::any::Any + Send + Sync>) -> Subscription {
        self._guard = Some(guard);
        self
    }

    /// The next event; `None` when the engine closed.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            // `notify_one` stores a permit, so an event between this check and the wait is not lost.
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.queue.state.lock().closed {
                return self.try_next();
            }
            self.queue.wake.notified().await;
        }
    }

    /// The next event if one is there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.state.lock().events.pop_front()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
    }
}

impl Publisher {
    /// Queues a message without waiting. `false` = the subscription was dropped.
    pub fn send(&self, channel: &Bytes, payload: &Bytes) -> bool {
        let mut state = self.queue.state.lock();
        if state.closed {
            return false;
        }
        if state.events.len() >= SUBSCRIBER_MESSAGES_MAX {
            drop_oldest(&mut state.events);
        }
        state.events.push_back(Event::Message { channel: channel.clone(), payload: payload.clone() });
        drop(state);
        self.queue.wake.notify_one();
        true
    }

    /// Queues the event that an unknown number of messages was lost.
    pub fn missed(&self) {
        let mut state = self.queue.state.lock();
        // Merge adjacent gaps, so that a flapping connection does not fill the queue.
        if let Some(Event::Missed { count }) = state.events.back_mut() {
            *count = None;
        } else {
            state.events.push_back(Event::Missed { count: None });
        }
        drop(state);
        self.queue.wake.notify_one();
    }

    /// Closes the subscription. Queued events are still delivered.
    pub fn close(&self) {
        self.queue.state.lock().closed = true;
        self.queue.wake.notify_one();
    }
}

/// Replaces the oldest message by a gap at the front, or widens the existing gap.
fn drop_oldest(events: &mut VecDeque<Event>) {
    let mut gap = Some(0);
    // Two events make room for the gap and for one more message.
    for _ in 0..2 {
        let lost = match events.pop_front() {
            Some(Event::Missed { count }) => count,
            Some(Event::Message { .. }) => Some(1),
            None => Some(0),
        };
        gap = gap.zip(lost).map(|(gap, lost)| gap + lost);
    }
    events.push_front(Event::Missed { count: gap });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_subscriber_learns_how_many_it_missed() {
        let (publisher, mut subscription) = Subscription::channel(None);
        let channel = Bytes::from_static(b"c");
        let sent = SUBSCRIBER_MESSAGES_MAX as u64 + 10;
        for n in 0..sent {
            assert!(publisher.send(&channel, &Bytes::from(n.to_string())));
        }
        let Some(Event::Missed { count: Some(missed) }) = subscription.next().await else {
            panic!("the first event names the gap")
        };
        let Some(Event::Message { payload, .. }) = subscription.next().await else { panic!("then messages") };
        assert_eq!(payload, missed.to_string(), "the first message is the one after the gap");
        let mut received = 1;
        while subscription.try_next().is_some() {
            received += 1;
        }
        assert_eq!(missed + received, sent);
    }

    #[test]
    fn an_unknown_gap_stays_unknown_and_gaps_in_a_row_are_one() {
        let (publisher, mut subscription) = Subscription::channel(None);
        let (channel, payload) = (Bytes::from_static(b"c"), Bytes::from_static(b"m"));
        publisher.send(&channel, &payload);
        publisher.missed();
        publisher.missed();
        for _ in 0..SUBSCRIBER_MESSAGES_MAX {
            publisher.send(&channel, &payload);
        }
        assert_eq!(subscription.try_next(), Some(Event::Missed { count: None }));
        assert!(matches!(subscription.try_next(), Some(Event::Message { .. })));
    }

    #[tokio::test]
    async fn closing_delivers_what_is_queued_and_then_ends() {
        let (publisher, mut subscription) = Subscription::channel(None);
        publisher.send(&Bytes::from_static(b"c"), &Bytes::from_static(b"last"));
        publisher.close();
        assert!(matches!(subscription.next().await, Some(Event::Message { .. })));
        assert_eq!(subscription.next().await, None);
    }
}
