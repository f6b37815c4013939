//! The hubs of all rooms with connections in this process, and the one subscription that wakes them.
//!
//! A room is identified by its code and creation time, so that two rooms that use a code one after the other
//! never share a hub.

use super::hub::{Hub, HubCommand};
use super::subscriber::{Subscriber, SubscriberId};
use super::timing::Timing;
use crate::limit::connections::ConnectionLimiter;
use crate::limits::ROOMS_RETRY;
use crate::metrics::Metrics;
use emberkeep_games::party::{RoomCode, Rooms, Wakeup};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, watch};

/// The hubs of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hubs(Arc<Inner>);

struct Inner {
    rooms: Rooms,
    metrics: Arc<Metrics>,
    timing: Timing,
    connections: ConnectionLimiter,
    hubs: Mutex<BTreeMap<RoomKey, Handle>>,
    /// Set under the lock of the hubs, so that no hub starts after it.
    shutdown: watch::Sender<bool>,
    /// How often signals may have been lost.
    gaps: AtomicU64,
    next_id: AtomicU64,
}

/// A room: its code and creation time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoomKey {
    pub(super) code: RoomCode,
    pub(super) created_at: i64,
}

/// The senders of a hub's channels. Dropping them ends the hub.
struct Handle {
    commands: mpsc::UnboundedSender<HubCommand>,
    /// Changes with every signal.
    signals: watch::Sender<()>,
}

/// The server shuts down and accepts no subscriber.
#[derive(Debug)]
pub(super) struct ShutdownError;

impl Hubs {
    pub(crate) fn new(rooms: Rooms, metrics: Arc<Metrics>) -> Hubs {
        Hubs::with_timing(rooms, metrics, Timing::default())
    }

    pub(super) fn with_timing(rooms: Rooms, metrics: Arc<Metrics>, timing: Timing) -> Hubs {
        Hubs(Arc::new(Inner {
            rooms,
            metrics,
            timing,
            connections: ConnectionLimiter::default(),
            hubs: Mutex::default(),
            shutdown: watch::Sender::new(false),
            gaps: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
        }))
    }

    pub(super) fn rooms(&self) -> &Rooms {
        &self.0.rooms
    }

    pub(super) fn timing(&self) -> Timing {
        self.0.timing
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn connections(&self) -> &ConnectionLimiter {
        &self.0.connections
    }

    /// How often signals may have been lost so far. A failover may have rolled a log back, and a log that
    /// grew again looks like the old one. So a state that was read before the last gap must be read again.
    pub(super) fn gaps(&self) -> u64 {
        self.0.gaps.load(SeqCst)
    }

    pub(super) fn next_subscriber_id(&self) -> SubscriberId {
        SubscriberId(self.0.next_id.fetch_add(1, Relaxed))
    }

    /// Adds a subscriber to the hub of its room, and starts the hub if there is none.
    pub(super) fn subscribe(&self, room: RoomKey, subscriber: Subscriber) -> Result<(), ShutdownError> {
        let mut hubs = self.0.hubs.lock();
        if *self.0.shutdown.borrow() {
            return Err(ShutdownError);
        }
        let handle = hubs.entry(room).or_insert_with(|| self.start_hub(room));
        // A hub removes itself under this lock and only with an empty channel, so that it receives this
        // command.
        if let Err(SendError(command)) = handle.commands.send(HubCommand::Subscribe(Box::new(subscriber))) {
            // The hub panicked and is not removed yet.
            *handle = self.start_hub(room);
            let _ = handle.commands.send(command);
        }
        self.update_metrics(&hubs);
        Ok(())
    }

    fn start_hub(&self, room: RoomKey) -> Handle {
        let ((commands, command_receiver), (signals, signal_receiver)) =
            (mpsc::unbounded_channel(), watch::channel(()));
        let hub = Hub::new(room, self.clone(), command_receiver, signal_receiver);
        let hubs = self.clone();
        tokio::spawn(async move {
            if AssertUnwindSafe(hub.run()).catch_unwind().await.is_err() {
                // The hub has closed its connections; the next subscriber starts a new hub.
                hubs.remove_dead(room);
                hubs.0.metrics.count_restart("hub");
                tracing::error!(room = %room.code, "the hub of a room panicked; its connections were closed");
            }
        });
        Handle { commands, signals }
    }

    pub(super) fn unsubscribe(&self, room: RoomKey, id: SubscriberId) {
        self.send(room, HubCommand::Unsubscribe(id));
    }

    /// Sends the state to a subscriber.
    pub(super) fn send_state(&self, room: RoomKey, id: SubscriberId) {
        self.send(room, HubCommand::SendState(id));
    }

    pub(super) fn send(&self, room: RoomKey, command: HubCommand) {
        if let Some(handle) = self.0.hubs.lock().get(&room) {
            let _ = handle.commands.send(command);
        }
    }

    /// Removes a hub without subscribers, unless a command is in its channel.
    pub(super) fn remove_if_idle(
        &self,
        room: RoomKey,
        commands: &mpsc::UnboundedReceiver<HubCommand>,
    ) -> bool {
        let mut hubs = self.0.hubs.lock();
        if commands.is_empty() {
            hubs.remove(&room);
            self.update_metrics(&hubs);
            return true;
        }
        false
    }

    /// Removes the hub of a room that has ended.
    pub(super) fn remove(&self, room: RoomKey) {
        let mut hubs = self.0.hubs.lock();
        hubs.remove(&room);
        self.update_metrics(&hubs);
    }

    /// Removes a hub that panicked, but not its successor.
    fn remove_dead(&self, room: RoomKey) {
        let mut hubs = self.0.hubs.lock();
        if hubs.get(&room).is_some_and(|handle| handle.commands.is_closed()) {
            hubs.remove(&room);
        }
        self.update_metrics(&hubs);
    }

    /// Replaces the hub of a room by one that has ended and is not removed.
    #[cfg(test)]
    pub(super) fn kill_hub(&self, room: RoomKey) {
        let handle = Handle { commands: mpsc::unbounded_channel().0, signals: watch::Sender::new(()) };
        self.0.hubs.lock().insert(room, handle);
    }

    fn update_metrics(&self, hubs: &BTreeMap<RoomKey, Handle>) {
        self.0.metrics.rooms.store(hubs.len() as i64, Relaxed);
    }

    /// Closes every connection, joined or not, and ends every hub.
    pub(crate) fn shutdown(&self) {
        let mut hubs = self.0.hubs.lock();
        self.0.shutdown.send_replace(true);
        hubs.clear();
        self.update_metrics(&hubs);
    }

    /// Waits until [`shutdown`](Self::shutdown) is called; returns at once after it.
    pub(super) async fn wait_shutdown(&self) {
        // The sender is in `self`, so it is never gone.
        let _ = self.0.shutdown.subscribe().wait_for(|is_set| *is_set).await;
    }

    /// Wakes hubs by signals of the rooms' channels. Without a subscription hubs poll their rooms.
    pub(crate) async fn listen(self) {
        loop {
            match self.0.rooms.subscribe_all().await {
                Ok(mut follower) => {
                    self.wake(None, Wakeup::Missed);
                    while let Some((code, signal)) = follower.next().await {
                        self.wake(code, signal);
                    }
                    return;
                }
                Err(error) => {
                    tracing::warn!("cannot subscribe to the channels of rooms: {error}");
                    tokio::time::sleep(ROOMS_RETRY).await;
                }
            }
        }
    }

    /// Wakes the hubs of a code, or all.
    pub(super) fn wake(&self, code: Option<RoomCode>, signal: Wakeup) {
        if signal == Wakeup::Missed {
            self.0.gaps.fetch_add(1, SeqCst);
        }
        let hubs = self.0.hubs.lock();
        match code {
            Some(code) => {
                let range = RoomKey { code, created_at: i64::MIN }..=RoomKey { code, created_at: i64::MAX };
                hubs.range(range).for_each(|(_, handle)| handle.wake());
            }
            None => hubs.values().for_each(|handle| handle.wake()),
        }
    }
}

impl Handle {
    fn wake(&self) {
        self.signals.send_replace(());
    }
}
