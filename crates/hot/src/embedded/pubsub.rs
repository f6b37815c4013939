//! The subscriptions of the engine. Messages are published under the locks of their transaction, so that
//! those of one channel arrive in commit order. Publishing never waits: subscriber queues are bounded and
//! drop the oldest.

use super::glob;
use crate::pubsub::{Publisher, Subscription};
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

type Subscribers<K> = HashMap<K, Vec<(u64, Publisher)>, foldhash::fast::RandomState>;

/// The registry of subscriptions.
#[derive(Default)]
pub(super) struct PubSub {
    state: RwLock<State>,
    /// Number of subscriptions: without any, publishing takes no lock.
    subscriptions: AtomicUsize,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    exact: Subscribers<Bytes>,
    patterns: Subscribers<Bytes>,
    closed: bool,
}

impl PubSub {
    /// Messages of these channels and patterns from now on.
    pub(super) fn subscribe(self: &Arc<Self>, channels: Vec<Bytes>, patterns: Vec<Bytes>) -> Subscription {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (publisher, subscription) = Subscription::channel(None);
        let mut state = self.state.write();
        if state.closed {
            publisher.close();
            return subscription;
        }
        self.subscriptions.fetch_add(1, Ordering::SeqCst);
        for channel in &channels {
            enter(&mut state.exact, channel, id, &publisher);
        }
        for pattern in &patterns {
            enter(&mut state.patterns, pattern, id, &publisher);
        }
        drop(state);
        subscription.guarded_by(Box::new(Registration { registry: self.clone(), id, channels, patterns }))
    }

    /// Whether there is no subscription: a message would reach no subscriber.
    pub(super) fn is_idle(&self) -> bool {
        self.subscriptions.load(Ordering::SeqCst) == 0
    }

    /// Hands a message to all subscribers; returns how many there are.
    pub(super) fn publish(&self, channel: &Bytes, payload: &Bytes) -> usize {
        if self.is_idle() {
            return 0;
        }
        let state = self.state.read();
        let mut reached = 0;
        for (_, publisher) in state.exact.get(channel).into_iter().flatten() {
            reached += publisher.send(channel, payload) as usize;
        }
        for (pattern, publishers) in &state.patterns {
            if glob::matches(pattern, channel) {
                reached +=
                    publishers.iter().filter(|(_, publisher)| publisher.send(channel, payload)).count();
            }
        }
        reached
    }

    /// Ends every subscription; what is queued is still delivered.
    pub(super) fn close(&self) {
        let mut state = self.state.write();
        state.closed = true;
        for (_, publisher) in state.exact.values().chain(state.patterns.values()).flatten() {
            publisher.close();
        }
        state.exact.clear();
        state.patterns.clear();
    }
}

/// A subscription enters a name once, however often it was given: a message comes once.
fn enter(listeners: &mut Subscribers<Bytes>, name: &Bytes, id: u64, publisher: &Publisher) {
    let list = listeners.entry(name.clone()).or_default();
    if list.last().is_none_or(|(last, _)| *last != id) {
        list.push((id, publisher.clone()));
    }
}

fn leave(listeners: &mut Subscribers<Bytes>, name: &Bytes, id: u64) {
    if let Some(list) = listeners.get_mut(name) {
        list.retain(|(held, _)| *held != id);
        if list.is_empty() {
            listeners.remove(name);
        }
    }
}

/// Lives in the subscription and takes it off the registry when it is dropped.
struct Registration {
    registry: Arc<PubSub>,
    id: u64,
    channels: Vec<Bytes>,
    patterns: Vec<Bytes>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.registry.state.write();
        self.channels.iter().for_each(|name| leave(&mut state.exact, name, self.id));
        self.patterns.iter().for_each(|name| leave(&mut state.patterns, name, self.id));
        self.registry.subscriptions.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::Event;

    fn name(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn messages_reach_channels_and_patterns_until_the_subscription_is_dropped() {
        let channels = Arc::new(PubSub::default());
        assert_eq!(channels.publish(&name("room:1"), &name("unheard")), 0);
        let mut exact = channels.subscribe(vec![name("room:1"), name("room:1")], vec![]);
        let mut pattern = channels.subscribe(vec![], vec![name("room:*")]);
        assert_eq!(channels.publish(&name("room:1"), &name("hello")), 2);
        assert_eq!(channels.publish(&name("room:2"), &name("only the pattern")), 1);
        let payload = |event: Option<Event>| match event {
            Some(Event::Message { payload, .. }) => payload,
            other => panic!("{other:?}"),
        };
        assert_eq!(payload(exact.try_next()), "hello");
        assert_eq!(exact.try_next(), None);
        assert_eq!(payload(pattern.try_next()), "hello");
        assert_eq!(payload(pattern.try_next()), "only the pattern");
        drop((exact, pattern));
        assert_eq!(channels.publish(&name("room:1"), &name("gone")), 0);
        assert!(channels.state.read().exact.is_empty() && channels.state.read().patterns.is_empty());
    }

    #[tokio::test]
    async fn closing_ends_subscriptions_and_later_ones_end_at_once() {
        let channels = Arc::new(PubSub::default());
        let mut before = channels.subscribe(vec![name("c")], vec![]);
        channels.close();
        assert_eq!(before.next().await, None);
        assert_eq!(channels.subscribe(vec![name("c")], vec![]).next().await, None);
    }
}
