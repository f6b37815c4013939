//! A delay line: what goes in comes out in the same order, each item at its own time.
//!
//! The line holds any amount in flight, as a long cable does, so a delay costs no throughput.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::clock::Clock;

/// What travels along a line.
#[derive(Debug)]
pub(super) enum Item {
    /// Bytes to pass on.
    Data(Vec<u8>),
    /// Bytes to pass on, and nothing after them: the answer will be swallowed.
    Last(Vec<u8>),
    /// Cut the connection here.
    Cut,
}

/// The end into which bytes are put.
#[derive(Debug)]
pub(super) struct Entry {
    items: UnboundedSender<(Instant, Item)>,
}

/// The end at which they come out after the delay.
#[derive(Debug)]
pub(super) struct Exit {
    items: UnboundedReceiver<(Instant, Item)>,
    clock: Clock,
}

pub(super) fn line(clock: Clock) -> (Entry, Exit) {
    let (entry, exit) = unbounded_channel();
    (Entry { items: entry }, Exit { items: exit, clock })
}

impl Entry {
    pub(super) fn put(&self, delay: Duration, item: Item) {
        // The far end is only gone when the connection is.
        let _ = self.items.send((Instant::now() + delay, item));
    }
}

impl Exit {
    /// The next item, when its time has come; `Cut` when the near end is gone.
    pub(super) async fn take(&mut self) -> Item {
        let Some((due, item)) = self.items.recv().await else { return Item::Cut };
        self.clock.until(due).await;
        item
    }
}
