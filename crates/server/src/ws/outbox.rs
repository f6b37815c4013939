//! What waits for a socket, in order.
//!
//! 1. *One queue*: answers, events and states leave in the order in which they came. The end of the connection comes last.
//! 2. *Bounded*: in messages and in bytes, and never more than one state: a newer one says all that an older one did.
//! 3. *News that do not fit* go, also those that wait: the state tells them. What is owed, answers and the loss of a player,
//!    is told in any case; a client to whom too much is owed does not keep up.
//! 4. *Welcome first*: while it is held, nothing leaves; the welcome goes before whatever the room has said since.

use super::ending::Ending;
use crate::limits::{SOCKET_QUEUE_BYTES_MAX, SOCKET_QUEUE_MESSAGES_MAX};
use axum::extract::ws::Utf8Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a socket is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outgoing {
    Text(Utf8Bytes),
    /// The last thing: a close frame.
    Close(Ending),
}

/// Whether a message may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The state says it, too.
    News,
    /// Only this message says it.
    Owed,
    /// The state itself.
    State,
}

/// The client does not keep up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lagging;

/// The way to a socket. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Outbox(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<(Weight, Utf8Bytes)>,
    is_held: bool,
    ending: Option<Ending>,
}

impl Outbox {
    /// What is to be sent next. There is one who asks, its socket.
    pub(super) async fn next(&self) -> Outgoing {
        loop {
            if let Some(next) = self.0.waiting.lock().next() {
                return next;
            }
            self.0.added.notified().await;
        }
    }

    /// Keeps everything back until the welcome.
    pub(super) fn hold(&self) {
        self.0.waiting.lock().is_held = true;
    }

    /// The first messages, however long: without them nothing else makes sense.
    pub(super) fn welcome(&self, texts: Vec<Utf8Bytes>) {
        let mut waiting = self.0.waiting.lock();
        waiting.is_held = false;
        texts.into_iter().rev().for_each(|text| waiting.messages.push_front((Weight::Owed, text)));
        drop(waiting);
        self.0.added.notify_one();
    }

    /// An answer, or something else that the state does not say.
    pub(super) fn owe(&self, text: Utf8Bytes) -> Result<(), Lagging> {
        self.add(|waiting| {
            let fits = waiting.fits(1, text.len());
            fits.then(|| waiting.messages.push_back((Weight::Owed, text))).ok_or(Lagging)
        })
    }

    /// What is new, and the state after it if there is one. `false` if the news did not fit: then they are left out, also
    /// those that wait, and the client needs the state.
    pub(super) fn tell(
        &self,
        mut said: Vec<(Weight, Utf8Bytes)>,
        state: Option<Utf8Bytes>,
    ) -> Result<bool, Lagging> {
        self.add(|waiting| {
            let fits = waiting.fits(said.len(), said.iter().map(|(_, text)| text.len()).sum());
            if !fits {
                said.retain(|(weight, _)| *weight == Weight::Owed);
                waiting.messages.retain(|(weight, _)| *weight == Weight::Owed);
            }
            if !waiting.fits(said.len(), said.iter().map(|(_, text)| text.len()).sum()) {
                return Err(Lagging);
            }
            waiting.messages.extend(said);
            if let Some(state) = state {
                waiting.messages.retain(|(weight, _)| *weight != Weight::State);
                waiting.messages.push_back((Weight::State, state));
            }
            Ok(fits)
        })
    }

    /// A sign of life, which is needless where something else is on the way.
    pub(super) fn ping(&self, text: Utf8Bytes) {
        let _ = self.add(|waiting| {
            if waiting.messages.is_empty() {
                waiting.messages.push_back((Weight::News, text));
            }
            Ok(())
        });
    }

    /// The end, after what waits and its last word. Nothing comes after it.
    pub(super) fn end(&self, ending: Ending) {
        let _ = self.add(|waiting| {
            waiting.messages.extend(ending.last_word().map(|text| (Weight::Owed, text)));
            waiting.ending = Some(ending);
            Ok(())
        });
    }

    /// Whether nothing is added any more.
    pub(super) fn has_ended(&self) -> bool {
        self.0.waiting.lock().ending.is_some()
    }

    fn add<T: Default>(&self, add: impl FnOnce(&mut Waiting) -> Result<T, Lagging>) -> Result<T, Lagging> {
        let mut waiting = self.0.waiting.lock();
        if waiting.ending.is_some() {
            return Ok(T::default());
        }
        let added = add(&mut waiting);
        drop(waiting);
        self.0.added.notify_one();
        added
    }
}

impl Waiting {
    fn next(&mut self) -> Option<Outgoing> {
        if self.is_held {
            return None;
        }
        match self.messages.pop_front() {
            Some((_, text)) => Some(Outgoing::Text(text)),
            None => self.ending.map(Outgoing::Close),
        }
    }

    /// Whether so many messages more fit. The one state that may wait is not counted.
    fn fits(&self, messages: usize, bytes: usize) -> bool {
        let waiting = self.messages.iter().filter(|(weight, _)| *weight != Weight::State);
        let (count, sum) = waiting.fold((0, 0), |(count, sum), (_, text)| (count + 1, sum + text.len()));
        count + messages <= SOCKET_QUEUE_MESSAGES_MAX && sum + bytes <= SOCKET_QUEUE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Utf8Bytes {
        Utf8Bytes::from(text.to_owned())
    }

    fn news(count: usize) -> Vec<(Weight, Utf8Bytes)> {
        (0..count).map(|_| (Weight::News, text("news"))).collect()
    }

    fn drained(outbox: &Outbox) -> Vec<Outgoing> {
        let mut waiting = outbox.0.waiting.lock();
        let mut all = Vec::new();
        while let Some(next) = waiting.next() {
            let last = matches!(next, Outgoing::Close(_));
            all.push(next);
            if last {
                break;
            }
        }
        all
    }

    fn texts(outbox: &Outbox) -> Vec<String> {
        let text = |next: &Outgoing| match next {
            Outgoing::Text(text) => text.to_string(),
            Outgoing::Close(ending) => format!("{ending:?}"),
        };
        drained(outbox).iter().map(text).collect()
    }

    #[test]
    fn one_state_waits_and_it_is_the_newest() {
        let outbox = Outbox::default();
        assert_eq!(outbox.tell(news(1), Some(text("state 1"))), Ok(true));
        assert_eq!(outbox.tell(news(1), None), Ok(true));
        outbox.owe(text("answer")).unwrap();
        assert_eq!(outbox.tell(vec![], Some(text("state 2"))), Ok(true));
        outbox.ping(text("needless"));
        outbox.end(Ending::RoomClosed);
        outbox.owe(text("too late")).unwrap();
        let last = message_of(Ending::RoomClosed);
        assert_eq!(texts(&outbox), ["news", "news", "answer", "state 2", &last, "RoomClosed"]);
    }

    fn message_of(ending: Ending) -> String {
        ending.last_word().map(|text| text.to_string()).unwrap_or_default()
    }

    #[test]
    fn news_that_do_not_fit_are_told_by_the_state_and_what_is_owed_stays() {
        let outbox = Outbox::default();
        outbox.owe(text("answer")).unwrap();
        assert_eq!(outbox.tell(news(SOCKET_QUEUE_MESSAGES_MAX - 1), None), Ok(true));
        let lost = (Weight::Owed, text("lost"));
        assert_eq!(outbox.tell(vec![lost, (Weight::News, text("news"))], None), Ok(false));
        assert_eq!(texts(&outbox), ["answer", "lost"]);
        let large = text(&"x".repeat(SOCKET_QUEUE_BYTES_MAX + 1));
        assert_eq!(outbox.tell(vec![(Weight::News, large)], Some(text("state 3"))), Ok(false));
        assert_eq!(texts(&outbox), ["state 3"], "bytes count, too");
    }

    #[test]
    fn a_client_to_whom_too_much_is_owed_lags() {
        let outbox = Outbox::default();
        for _ in 0..SOCKET_QUEUE_MESSAGES_MAX {
            outbox.owe(text("answer")).unwrap();
        }
        assert_eq!(outbox.owe(text("answer")), Err(Lagging));
        assert_eq!(outbox.tell(vec![(Weight::Owed, text("lost"))], Some(text("state"))), Err(Lagging));
        assert_eq!(outbox.tell(news(1), Some(text("state"))), Ok(false), "a state always fits");
    }

    #[test]
    fn nothing_leaves_before_the_welcome() {
        let outbox = Outbox::default();
        outbox.hold();
        outbox.tell(news(1), Some(text("state"))).unwrap();
        assert_eq!(drained(&outbox), []);
        outbox.welcome(vec![text("welcome"), text("lost")]);
        assert_eq!(texts(&outbox), ["welcome", "lost", "news", "state"]);
    }

    #[test]
    fn a_welcome_fits_however_long_it_is() {
        let outbox = Outbox::default();
        outbox.welcome(vec![text(&"s".repeat(SOCKET_QUEUE_BYTES_MAX + 1)), text("lost")]);
        assert_eq!(drained(&outbox).len(), 2);
    }
}
