//! A room on a store whose time a test holds, and subscribers in it whose sockets are the test itself.

use crate::metrics::Metrics;
use crate::ws::close::CloseReason;
use crate::ws::hubs::{Hubs, RoomKey};
use crate::ws::send_queue::{Outgoing, SendQueue};
use crate::ws::session::Session;
use crate::ws::subscriber::Subscriber;
use crate::ws::timing::Timing;
use bytes::Bytes;
use emberkeep_games::party::*;
use emberkeep_hot::command::Write;
use emberkeep_hot::embedded::{Clock, ManualClock, Options};
use emberkeep_hot::{self as hot, Store, Tx};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a message may take. Nothing waits for it to pass.
const WAIT: Duration = Duration::from_secs(20);
/// Never, as far as a test is concerned.
pub(super) const NEVER: Duration = Duration::from_secs(3_600);

pub(in crate::ws) const CALM: Timing = Timing {
    poll_every: NEVER,
    state_every: Duration::ZERO,
    ping_every: NEVER,
    idle_max: NEVER,
    write_timeout: NEVER,
};
pub(in crate::ws) const FAST: Timing = Timing {
    poll_every: Duration::from_millis(20),
    state_every: Duration::ZERO,
    ping_every: Duration::from_millis(20),
    idle_max: Duration::from_millis(60),
    write_timeout: Duration::from_millis(20),
};

pub(super) fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

pub(super) fn player(n: u32) -> PlayerId {
    PlayerId::new(format!("p{n}")).unwrap()
}

/// A room of two players, and what serves it. No task listens to its channel: the test wakes the hubs.
pub(super) struct Fixture {
    pub(super) hubs: Hubs,
    pub(super) metrics: Arc<Metrics>,
    pub(super) rooms: Rooms,
    pub(super) store: Store,
    pub(super) clock: ManualClock,
    pub(super) code: RoomCode,
    pub(super) master: Master,
}

impl Fixture {
    pub(super) async fn new(timing: Timing) -> Fixture {
        let clock = ManualClock::at(1_700_000_000_000);
        let engine = Options::default().clock(Clock::Manual(clock.clone())).open().unwrap();
        let store = Store::new(Arc::new(engine));
        let (rooms, metrics) = (Rooms::new(store.clone()), Arc::new(Metrics::default()));
        let created = rooms.create().await.unwrap();
        let master = rooms.master(created.room_code, &created.master_key).await.unwrap();
        rooms.setup(&master, setup()).await.unwrap();
        let hubs = Hubs::with_timing(rooms.clone(), metrics.clone(), timing);
        Fixture { hubs, metrics, rooms, store, clock, code: created.room_code, master }
    }

    /// The same, with an item open; `ann` has the first player and `ben` the second.
    pub(super) async fn voting(timing: Timing) -> Fixture {
        let room = Fixture::new(timing).await;
        for (name, n) in [("ann", 1), ("ben", 2)] {
            room.rooms.take_player(room.code, &device(name), &player(n)).await.unwrap();
        }
        room.rooms.start_game(&room.master).await.unwrap();
        let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
        room.rooms.open_item(&room.master, &round, &item).await.unwrap();
        room
    }

    pub(super) async fn rename(&self, name: &str) {
        self.rooms.rename_player(&self.master, &player(1), name).await.unwrap();
    }

    /// A subscriber with the current state, as a join creates it.
    pub(super) async fn subscriber(&self, name: &str, is_master: bool) -> (RoomKey, Subscriber) {
        let gaps = self.hubs.gaps();
        let look = self.rooms.snapshot(self.code).await.unwrap();
        let room = RoomKey { code: self.code, created_at: look.created_at() };
        (room, Subscriber::new(self.hubs.next_subscriber_id(), device(name), is_master, gaps, &look))
    }

    /// Subscribes, and returns the queue of its connection.
    pub(super) async fn subscribe(&self, name: &str, is_master: bool) -> SendQueue {
        let (key, subscriber) = self.subscriber(name, is_master).await;
        let queue = subscriber.queue.clone();
        self.hubs.subscribe(key, subscriber).unwrap();
        queue
    }

    /// A connection that has joined.
    pub(super) async fn session(&self, name: &str) -> Session {
        let (key, subscriber) = self.subscriber(name, false).await;
        let (id, queue) = (subscriber.id, subscriber.queue.clone());
        self.hubs.subscribe(key, subscriber).unwrap();
        Session { hubs: self.hubs.clone(), room: key, id, device: device(name), master: None, queue }
    }

    /// Lets the hub finish what it was woken for, such as a new subscriber. All tasks share the thread of the test.
    pub(super) async fn let_the_hub_read(&self) {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    /// Wakes the room's hub.
    pub(super) fn wake(&self) {
        self.hubs.wake(Some(self.code), Wakeup::Events { last: 0 });
    }

    /// A write of an external client.
    pub(super) async fn external(&self, writes: Vec<(Bytes, Write)>) {
        let transaction = move |tx: &mut Tx<'_, Room>| {
            writes.iter().try_for_each(|(key, write)| tx.raw_write(key.clone(), write.clone()))
        };
        self.store.scope(Room(self.code)).transact::<(), hot::Error, _>(transaction).await.unwrap();
    }

    /// A write of an external client to the room's log.
    pub(super) async fn external_log(&self, write: Write) {
        let log = ROOM_LOG.key().to_text(self.store.key_layout(), &Room(self.code));
        self.external(vec![(Bytes::from(log), write)]).await;
    }

    /// Drops the last entry of the room's log, as a failover does.
    pub(super) async fn set_log_back(&self) {
        self.external_log(Write::LTrim(0, -2)).await;
    }

    /// An entry of the room's log that this version did not write.
    pub(super) async fn external_entry(&self, sequence: u64, event: &str) {
        let entry = Bytes::from(format!("{sequence}:00000000:{event}"));
        self.external_log(Write::RPush(vec![entry])).await;
    }
}

fn setup() -> Setup {
    let sender = |id: &str| SetupSender {
        sender_id: SenderId::new(id).unwrap(),
        name: id.to_owned(),
        active: true,
        reels_count: 1,
    };
    let item = SetupItem {
        item_id: ItemId::new("i1").unwrap(),
        reel_url: "https://reels.example/1".into(),
        k: 1,
        true_sender_ids: vec![SenderId::new("s1").unwrap()],
    };
    Setup {
        senders: vec![sender("s1"), sender("s2")],
        rounds: vec![SetupRound { round_id: RoundId::new("r1").unwrap(), items: vec![item] }],
        players: (1..=2).map(|n| SetupPlayer::new(player(n), format!("Player {n}"))).collect(),
    }
}

/// What a subscriber is sent next, or how its connection ends.
pub(super) async fn next(queue: &SendQueue) -> std::result::Result<Value, CloseReason> {
    match tokio::time::timeout(WAIT, queue.next()).await.expect("something comes") {
        Outgoing::Text(text) => Ok(serde_json::from_str(&text).unwrap()),
        Outgoing::Close(reason) => Err(reason),
    }
}

/// The next message, of this type.
pub(super) async fn expect_next(queue: &SendQueue, kind: &str) -> Value {
    let message = next(queue).await.unwrap();
    assert_eq!(message["type"], kind, "{message}");
    message
}

/// The next message of this type; others are passed over.
pub(super) async fn expect(queue: &SendQueue, kind: &str) -> Value {
    loop {
        let message = next(queue).await.unwrap();
        if message["type"] == kind {
            return message;
        }
    }
}
