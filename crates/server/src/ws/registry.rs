//! The rooms that have a socket in this process, and the one subscription that wakes them.

use super::hub::{Heard, Hub, Identity, Told};
use super::seat::{Ending, Outgoing, Seat, SeatId};
use crate::limits::ROOMS_RETRY;
use crate::metrics::Metrics;
use emberkeep_games::party::{RoomCode, Rooms, Signal};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{mpsc, watch};

/// The rooms of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Registry(Arc<Inner>);

struct Inner {
    rooms: Rooms,
    metrics: Arc<Metrics>,
    hubs: Mutex<HashMap<RoomCode, Handle>>,
    next_seat: AtomicU64,
}

/// The ends of a hub's channels. Dropping them ends it.
struct Handle {
    told: mpsc::UnboundedSender<Told>,
    heard: watch::Sender<Heard>,
}

impl Registry {
    pub(crate) fn new(rooms: Rooms, metrics: Arc<Metrics>) -> Registry {
        Registry(Arc::new(Inner { rooms, metrics, hubs: Mutex::default(), next_seat: AtomicU64::new(1) }))
    }

    pub(super) fn seat_id(&self) -> SeatId {
        SeatId(self.0.next_seat.fetch_add(1, Relaxed))
    }

    /// Gives a seat to a socket, and a hub to its room if it has none here.
    pub(super) fn enter(&self, code: RoomCode, seat: Seat, identity: Identity) {
        let mut hubs = self.0.hubs.lock();
        let handle = hubs.entry(code).or_insert_with(|| self.begin(code));
        // A hub forgets itself under this lock and only without a word in its channel, so it hears this one.
        let _ = handle.told.send(Told::Enter(Box::new(seat), identity));
        self.0.metrics.rooms.store(hubs.len() as i64, Relaxed);
    }

    fn begin(&self, code: RoomCode) -> Handle {
        let ((told, hears), (heard, wakes)) = (mpsc::unbounded_channel(), watch::channel(Heard::default()));
        let hub = Hub::new(code, self.0.rooms.clone(), self.clone(), hears, wakes);
        tokio::spawn(hub.run());
        Handle { told, heard }
    }

    pub(super) fn leave(&self, code: RoomCode, id: SeatId) {
        if let Some(handle) = self.0.hubs.lock().get(&code) {
            let _ = handle.told.send(Told::Leave(id));
        }
    }

    /// Forgets a room without seats, unless somebody is on the way to it.
    pub(super) fn forget_if_idle(&self, code: RoomCode, told: &mpsc::UnboundedReceiver<Told>) -> bool {
        let mut hubs = self.0.hubs.lock();
        if told.is_empty() {
            hubs.remove(&code);
            self.0.metrics.rooms.store(hubs.len() as i64, Relaxed);
            return true;
        }
        false
    }

    /// Forgets a room that is over: who comes for its code from now on gets a new hub.
    pub(super) fn forget(&self, code: RoomCode) {
        let mut hubs = self.0.hubs.lock();
        hubs.remove(&code);
        self.0.metrics.rooms.store(hubs.len() as i64, Relaxed);
    }

    /// Ends all hubs; they close their sockets.
    pub(crate) fn end(&self) {
        self.0.hubs.lock().clear();
    }

    /// Lets go of a seat that does not keep up: its socket ends when it has sent what is in its queue.
    pub(super) fn too_slow(&self, seat: &Seat) {
        self.0.metrics.sockets_too_slow.fetch_add(1, Relaxed);
        let _ = seat.queue.try_send(Outgoing::Close(Ending::TooSlow));
    }

    /// Wakes hubs by what is heard on the rooms' channels, for as long as the process runs. While there is no
    /// subscription, hubs look by themselves every now and then.
    pub(crate) async fn listen(self) {
        loop {
            match self.0.rooms.subscribe_all().await {
                Ok(mut follower) => {
                    self.wake_all();
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

    fn wake(&self, code: Option<RoomCode>, signal: Signal) {
        match code {
            Some(code) => {
                if let Some(handle) = self.0.hubs.lock().get(&code) {
                    handle.heard.send_modify(|heard| heard.hear(&signal));
                }
            }
            None => self.wake_all(),
        }
    }

    fn wake_all(&self) {
        for handle in self.0.hubs.lock().values() {
            handle.heard.send_modify(|heard| heard.hear(&Signal::Missed));
        }
    }
}
