//! A room on a store whose time a test holds, and seats in it whose sockets are the test itself.

use crate::metrics::Metrics;
use crate::ws::client::Client;
use crate::ws::ending::Ending;
use crate::ws::outbox::{Outbox, Outgoing};
use crate::ws::registry::{Registry, Which};
use crate::ws::rhythm::Rhythm;
use crate::ws::seat::Seat;
use bytes::Bytes;
use emberkeep_games::party::*;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::embedded::{Clock, ManualClock, Options};
use emberkeep_hot::{self as hot, Store, Tx, store::log_keys};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a message may take. Nothing waits for it to pass.
const WAIT: Duration = Duration::from_secs(20);
/// Never, as far as a test is concerned.
pub(super) const NEVER: Duration = Duration::from_secs(3_600);

pub(super) const CALM: Rhythm = Rhythm {
    look_every: NEVER,
    state_every: Duration::ZERO,
    ping_every: NEVER,
    idle_max: NEVER,
    write_wait: NEVER,
};
pub(super) const FAST: Rhythm = Rhythm {
    look_every: Duration::from_millis(20),
    state_every: Duration::ZERO,
    ping_every: Duration::from_millis(20),
    idle_max: Duration::from_millis(60),
    write_wait: Duration::from_millis(20),
};

pub(super) fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

pub(super) fn player(n: u32) -> PlayerId {
    PlayerId::new(format!("p{n}")).unwrap()
}

/// A room of two players, and what serves it. Nobody listens to its channel: hubs are woken by hand.
pub(super) struct Table {
    pub(super) registry: Registry,
    pub(super) metrics: Arc<Metrics>,
    pub(super) rooms: Rooms,
    pub(super) store: Store,
    pub(super) clock: ManualClock,
    pub(super) code: RoomCode,
    pub(super) master: Master,
}

impl Table {
    pub(super) async fn set(rhythm: Rhythm) -> Table {
        let clock = ManualClock::at(1_700_000_000_000);
        let engine = Options::default().clock(Clock::Manual(clock.clone())).open().unwrap();
        let store = Store::new(Arc::new(engine));
        let (rooms, metrics) = (Rooms::new(store.clone()), Arc::new(Metrics::default()));
        let created = rooms.create().await.unwrap();
        let master = rooms.master(created.room_code, &created.master_key).await.unwrap();
        rooms.setup(&master, setup()).await.unwrap();
        let registry = Registry::with_rhythm(rooms.clone(), metrics.clone(), rhythm);
        Table { registry, metrics, rooms, store, clock, code: created.room_code, master }
    }

    /// The same, with an item open; `ann` has the first player and `ben` the second.
    pub(super) async fn voting(rhythm: Rhythm) -> Table {
        let table = Table::set(rhythm).await;
        for (name, n) in [("ann", 1), ("ben", 2)] {
            table.rooms.take_player(table.code, &device(name), &player(n)).await.unwrap();
        }
        table.rooms.start_game(&table.master).await.unwrap();
        let (round, item) = (RoundId::new("r1").unwrap(), ItemId::new("i1").unwrap());
        table.rooms.open_item(&table.master, &round, &item).await.unwrap();
        table
    }

    pub(super) async fn rename(&self, name: &str) {
        self.rooms.rename_player(&self.master, &player(1), name).await.unwrap();
    }

    /// Looks at the room, as a socket does before it sits down.
    pub(super) async fn seat(&self, name: &str, is_master: bool) -> (Which, Seat) {
        let gaps = self.registry.gaps();
        let look = self.rooms.snapshot(self.code).await.unwrap();
        let which = Which { code: self.code, created_at: look.created_at() };
        (which, Seat::new(self.registry.seat_id(), device(name), is_master, gaps, &look))
    }

    /// Sits down, and gives what its socket would send.
    pub(super) async fn sit(&self, name: &str, is_master: bool) -> Outbox {
        let (which, seat) = self.seat(name, is_master).await;
        let outbox = seat.outbox.clone();
        self.registry.enter(which, seat).unwrap();
        outbox
    }

    /// A connection that has joined.
    pub(super) async fn client(&self, name: &str) -> Client {
        let (which, seat) = self.seat(name, false).await;
        let (id, outbox) = (seat.id, seat.outbox.clone());
        self.registry.enter(which, seat).unwrap();
        Client { sockets: self.registry.clone(), which, id, device: device(name), master: None, outbox }
    }

    /// Gives the room's hub a reason to look.
    pub(super) fn wake(&self) {
        self.registry.wake(Some(self.code), Wakeup::Events { last: 0 });
    }

    /// A write behind our backs.
    pub(super) async fn external(&self, writes: Vec<(Bytes, Write)>) {
        let transaction = move |tx: &mut Tx<'_, Room>| {
            writes.iter().try_for_each(|(key, write)| tx.raw_write(key.clone(), write.clone()))
        };
        self.store.scope(Room(self.code)).transact::<(), hot::Error, _>(transaction).await.unwrap();
    }

    /// Sets the counter of the room's log, and drops entries from the end of it.
    pub(super) async fn set_log(&self, last: u64, drop: i64) {
        let (list, counter) = log_keys(self.store.key_layout(), self.code.to_string().as_bytes());
        let counted = Write::Set(Bytes::from(last.to_string()), Expiry::Keep);
        self.external(vec![(list, Write::LTrim(0, -1 - drop)), (counter, counted)]).await;
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

/// What a seat is sent next, or how its connection ends.
pub(super) async fn next(outbox: &Outbox) -> std::result::Result<Value, Ending> {
    match tokio::time::timeout(WAIT, outbox.next()).await.expect("something comes") {
        Outgoing::Text(text) => Ok(serde_json::from_str(&text).unwrap()),
        Outgoing::Close(ending) => Err(ending),
    }
}

/// The next message, of this type.
pub(super) async fn hears(outbox: &Outbox, kind: &str) -> Value {
    let message = next(outbox).await.unwrap();
    assert_eq!(message["type"], kind, "{message}");
    message
}

/// The next message of this type; others are passed over.
pub(super) async fn until(outbox: &Outbox, kind: &str) -> Value {
    loop {
        let message = next(outbox).await.unwrap();
        if message["type"] == kind {
            return message;
        }
    }
}
