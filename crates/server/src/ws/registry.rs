//! The rooms that have a socket in this process, and the one subscription that wakes them.
//!
//! A room is known by its code and when it was created: two rooms that had one code after the other never share a hub.

use super::crowd::Crowd;
use super::hub::{Hub, Told};
use super::rhythm::Rhythm;
use super::seat::{Seat, SeatId};
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

/// The rooms of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Registry(Arc<Inner>);

struct Inner {
    rooms: Rooms,
    metrics: Arc<Metrics>,
    rhythm: Rhythm,
    crowd: Crowd,
    hubs: Mutex<BTreeMap<Which, Handle>>,
    /// Whether the server ends. Set under the lock of the hubs, so that none begins after it.
    ending: watch::Sender<bool>,
    /// How often signals were lost.
    gaps: AtomicU64,
    next_seat: AtomicU64,
}

/// Which room: its code, and when it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Which {
    pub(super) code: RoomCode,
    pub(super) created_at: i64,
}

/// The ends of a hub's channels. Dropping them ends it.
struct Handle {
    told: mpsc::UnboundedSender<Told>,
    /// Changes with every reason to look.
    heard: watch::Sender<()>,
}

/// The server ends: nobody enters any more.
#[derive(Debug)]
pub(super) struct ServerEnds;

impl Registry {
    pub(crate) fn new(rooms: Rooms, metrics: Arc<Metrics>) -> Registry {
        Registry::with_rhythm(rooms, metrics, Rhythm::default())
    }

    pub(super) fn with_rhythm(rooms: Rooms, metrics: Arc<Metrics>, rhythm: Rhythm) -> Registry {
        Registry(Arc::new(Inner {
            rooms,
            metrics,
            rhythm,
            crowd: Crowd::default(),
            hubs: Mutex::default(),
            ending: watch::Sender::new(false),
            gaps: AtomicU64::new(0),
            next_seat: AtomicU64::new(1),
        }))
    }

    pub(super) fn rooms(&self) -> &Rooms {
        &self.0.rooms
    }

    pub(super) fn rhythm(&self) -> Rhythm {
        self.0.rhythm
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Who has how many sockets.
    pub(super) fn crowd(&self) -> &Crowd {
        &self.0.crowd
    }

    /// How often signals were lost so far. What somebody has seen before the last time may be of a history that is no
    /// more: a log that a failover set back, and that went on since, looks like the one of before.
    pub(super) fn gaps(&self) -> u64 {
        self.0.gaps.load(SeqCst)
    }

    pub(super) fn seat_id(&self) -> SeatId {
        SeatId(self.0.next_seat.fetch_add(1, Relaxed))
    }

    /// Gives a seat to a socket, and a hub to its room if it has none here.
    pub(super) fn enter(&self, which: Which, seat: Seat) -> Result<(), ServerEnds> {
        let mut hubs = self.0.hubs.lock();
        if *self.0.ending.borrow() {
            return Err(ServerEnds);
        }
        let handle = hubs.entry(which).or_insert_with(|| self.begin(which));
        // A hub forgets itself under this lock and only without a word in its channel, so it hears this one.
        if let Err(SendError(enter)) = handle.told.send(Told::Enter(Box::new(seat))) {
            // The hub panicked and was not forgotten yet.
            *handle = self.begin(which);
            let _ = handle.told.send(enter);
        }
        self.count(&hubs);
        Ok(())
    }

    fn begin(&self, which: Which) -> Handle {
        let ((told, hears), (heard, wakes)) = (mpsc::unbounded_channel(), watch::channel(()));
        let hub = Hub::new(which, self.clone(), hears, wakes);
        let registry = self.clone();
        tokio::spawn(async move {
            if AssertUnwindSafe(hub.run()).catch_unwind().await.is_err() {
                // The hub has ended its sockets; the next one to join gets a new hub.
                registry.forget_dead(which);
                registry.0.metrics.count_restart("hub");
                tracing::error!(room = %which.code, "the hub of a room panicked; its sockets were ended");
            }
        });
        Handle { told, heard }
    }

    pub(super) fn leave(&self, which: Which, id: SeatId) {
        self.tell(which, Told::Leave(id));
    }

    /// Lets a seat have the state.
    pub(super) fn show(&self, which: Which, id: SeatId) {
        self.tell(which, Told::Show(id));
    }

    pub(super) fn tell(&self, which: Which, told: Told) {
        if let Some(handle) = self.0.hubs.lock().get(&which) {
            let _ = handle.told.send(told);
        }
    }

    /// Forgets a room without seats, unless somebody is on the way to it.
    pub(super) fn forget_if_idle(&self, which: Which, told: &mpsc::UnboundedReceiver<Told>) -> bool {
        let mut hubs = self.0.hubs.lock();
        if told.is_empty() {
            hubs.remove(&which);
            self.count(&hubs);
            return true;
        }
        false
    }

    /// Forgets a room that is over.
    pub(super) fn forget(&self, which: Which) {
        let mut hubs = self.0.hubs.lock();
        hubs.remove(&which);
        self.count(&hubs);
    }

    /// Forgets a hub that panicked, and not the one that has taken its place.
    fn forget_dead(&self, which: Which) {
        let mut hubs = self.0.hubs.lock();
        if hubs.get(&which).is_some_and(|handle| handle.told.is_closed()) {
            hubs.remove(&which);
        }
        self.count(&hubs);
    }

    /// Puts a hub in the place of a room's that has ended and was not forgotten.
    #[cfg(test)]
    pub(super) fn kill_hub(&self, which: Which) {
        let handle = Handle { told: mpsc::unbounded_channel().0, heard: watch::Sender::new(()) };
        self.0.hubs.lock().insert(which, handle);
    }

    fn count(&self, hubs: &BTreeMap<Which, Handle>) {
        self.0.metrics.rooms.store(hubs.len() as i64, Relaxed);
    }

    /// The server ends: every socket hears of it, whether it is in a room or not, and every hub ends.
    pub(crate) fn end(&self) {
        let mut hubs = self.0.hubs.lock();
        self.0.ending.send_replace(true);
        hubs.clear();
        self.count(&hubs);
    }

    /// Waits until the server ends.
    pub(super) async fn ended(&self) {
        // The sender is in `self`, so it is never gone.
        let _ = self.0.ending.subscribe().wait_for(|ending| *ending).await;
    }

    /// Wakes hubs by what is heard on the rooms' channels, for as long as the process runs. While there is no
    /// subscription, hubs look by themselves every now and then.
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
                    tracing::warn!("cannot listen to the rooms' channels: {error}");
                    tokio::time::sleep(ROOMS_RETRY).await;
                }
            }
        }
    }

    /// Gives the hubs of a code, or all, a reason to look.
    pub(super) fn wake(&self, code: Option<RoomCode>, signal: Wakeup) {
        if signal == Wakeup::Missed {
            self.0.gaps.fetch_add(1, SeqCst);
        }
        let hubs = self.0.hubs.lock();
        match code {
            Some(code) => {
                let of_code = Which { code, created_at: i64::MIN }..=Which { code, created_at: i64::MAX };
                hubs.range(of_code).for_each(|(_, handle)| handle.wake());
            }
            None => hubs.values().for_each(|handle| handle.wake()),
        }
    }
}

impl Handle {
    fn wake(&self) {
        self.heard.send_replace(());
    }
}
