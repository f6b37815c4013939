//! The cases of rooms, for any store. A case shares its store with others and has its own room.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod claims;
mod events;
mod expiry;
mod external;
mod game;
mod lobby;
mod moderation;
pub mod program;
mod races;
mod rooms;
mod views;
mod votes;

pub use claims::*;
pub use events::*;
pub use expiry::*;
pub use external::*;
pub use game::*;
pub use lobby::*;
pub use moderation::*;
pub use races::*;
pub use rooms::*;
pub use views::*;
pub use votes::*;

use bytes::Bytes;
use emberkeep_games::party::model::State;
use emberkeep_games::party::*;
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_schema::{Family, Key};
use serde_json::Value;

pub const DAY_MS: i64 = 24 * 3_600_000;

pub fn device(n: u32) -> DeviceId {
    DeviceId::new(format!("phone-{n}")).unwrap()
}

pub fn player(n: u32) -> PlayerId {
    PlayerId::new(format!("p{n}")).unwrap()
}

pub fn sender(n: u32) -> SenderId {
    SenderId::new(format!("s{n}")).unwrap()
}

pub fn senders(ns: &[u32]) -> Vec<SenderId> {
    ns.iter().map(|n| sender(*n)).collect()
}

pub fn round(n: u32) -> RoundId {
    RoundId::new(format!("r{n}")).unwrap()
}

pub fn item(n: u32) -> ItemId {
    ItemId::new(format!("i{n}")).unwrap()
}

/// Four senders, two rounds of two items, each sent by 1 and 2, of which two may be chosen; so many players.
pub fn setup_of(players: u32) -> Setup {
    let name = |n: u32| format!("Sender {n}");
    let an_item = |r: u32, n: u32| SetupItem {
        item_id: item(n),
        reel_url: format!("https://example.org/{r}/{n}"),
        k: 2,
        true_sender_ids: senders(&[1, 2]),
    };
    let a_round = |r: u32| SetupRound { round_id: round(r), items: vec![an_item(r, 1), an_item(r, 2)] };
    Setup {
        senders: (1..=4)
            .map(|n| SetupSender { sender_id: sender(n), name: name(n), active: true, reels_count: n })
            .collect(),
        rounds: vec![a_round(1), a_round(2)],
        players: (1..=players).map(|n| SetupPlayer::new(player(n), format!("Player {n}"))).collect(),
    }
}

/// A room that no other test uses.
#[derive(Clone)]
pub struct Party {
    pub rooms: Rooms,
    pub store: Store,
    pub scope: Scope<Room>,
    pub code: RoomCode,
    pub key: MasterKey,
    pub master: Master,
}

impl Party {
    /// An empty lobby.
    pub async fn new(store: &Store) -> Party {
        let rooms = Rooms::new(store.clone());
        let NewRoom { room_code: code, master_key: key } = rooms.create().await.unwrap();
        let master = rooms.master(code, &key).await.unwrap();
        Party { rooms, store: store.clone(), scope: store.scope(Room(code)), code, key, master }
    }

    /// A lobby with so many players.
    pub async fn set_up(store: &Store, players: u32) -> Party {
        let party = Party::new(store).await;
        party.rooms.setup(&party.master, setup_of(players)).await.unwrap();
        party
    }

    /// A game of so many players, each on the device of its number.
    pub async fn playing(store: &Store, players: u32) -> Party {
        let party = Party::set_up(store, players).await;
        for n in 1..=players {
            party.take(n, n).await.unwrap();
        }
        party.rooms.start_game(&party.master).await.unwrap();
        party
    }

    /// A game whose first item is open.
    pub async fn voting(store: &Store, players: u32) -> Party {
        let party = Party::playing(store, players).await;
        party.open(1, 1).await.unwrap();
        party
    }

    pub async fn take(&self, d: u32, p: u32) -> Result<()> {
        self.rooms.take_player(self.code, &device(d), &player(p)).await
    }

    pub async fn open(&self, r: u32, i: u32) -> Result<()> {
        self.rooms.open_item(&self.master, &round(r), &item(i)).await
    }

    /// A vote on the first item.
    pub async fn vote(&self, d: u32, chosen: &[u32]) -> Result<VoteReceipt> {
        self.vote_on(d, 1, 1, chosen).await
    }

    pub async fn vote_on(&self, d: u32, r: u32, i: u32, chosen: &[u32]) -> Result<VoteReceipt> {
        self.rooms.submit_vote(self.code, &device(d), &round(r), &item(i), senders(chosen)).await
    }

    pub async fn sync(&self, d: u32) -> PlayerSync {
        self.rooms.sync(self.code, Some(&device(d))).await.unwrap()
    }

    pub async fn sync_master(&self) -> MasterSync {
        self.rooms.sync_master(&self.master, None).await.unwrap()
    }

    /// The status of the game, as the wire spells it.
    pub async fn status(&self) -> String {
        let state = self.state().await;
        let status = serde_json::to_value(state.game.expect("a game").status).unwrap();
        status.as_str().unwrap().to_owned()
    }

    pub async fn state(&self) -> State {
        self.scope.get(&ROOM_STATE.key()).await.unwrap().expect("the room's state is there")
    }

    pub async fn player_of(&self, d: u32) -> Option<PlayerId> {
        self.sync(d).await.my_player_id
    }

    /// Whether each player is shown as taken or free.
    pub async fn statuses(&self) -> Vec<String> {
        let players = self.sync(1).await.players_visible;
        players
            .iter()
            .map(|player| serde_json::to_value(player.status).unwrap().as_str().unwrap().to_owned())
            .collect()
    }

    /// All events so far.
    pub async fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let page = self.rooms.events_after(self.code, events.len() as u64).await.unwrap();
            assert_eq!(page.missed, 0);
            if page.events.is_empty() {
                return events;
            }
            for recorded in page.events {
                assert_eq!(recorded.sequence, events.len() as u64 + 1);
                events.push(recorded.entry.event);
            }
        }
    }

    pub fn raw<F: Family<Partition = Room>>(&self, key: &Key<F>) -> Bytes {
        Bytes::from(key.to_text(self.store.key_layout(), &Room(self.code)))
    }

    /// A write as a service in another language does it: no types, no policies.
    pub async fn external<F: Family<Partition = Room>>(&self, key: &Key<F>, write: Write) {
        let key = self.raw(key);
        let transaction = move |tx: &mut Tx<'_, Room>| tx.raw_write(key.clone(), write.clone());
        self.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }

    /// An element that an external client pushes to the log.
    pub async fn external_entry(&self, element: &str) {
        self.external(&ROOM_LOG.key(), Write::RPush(vec![Bytes::from(element.to_owned())])).await;
    }

    /// A field that a service in another language sets.
    pub async fn external_hset<F: Family<Partition = Room>>(&self, key: &Key<F>, field: &str, value: &str) {
        let pair = (Bytes::from(field.to_owned()), Bytes::from(value.to_owned()));
        self.external(key, Write::HSet(vec![pair])).await;
    }

    /// Changes the JSON at a key, as a service in another language does it; its end stays.
    pub async fn external_change<F: Family<Partition = Room>>(
        &self,
        key: &Key<F>,
        change: impl Fn(&mut Value),
    ) {
        let mut json: Value = serde_json::from_str(&self.stored(key).await.unwrap()).unwrap();
        change(&mut json);
        self.external(key, Write::Set(Bytes::from(json.to_string()), Expiry::Keep)).await;
    }

    /// Lets the countdown be over.
    pub async fn pass_deadline(&self) -> i64 {
        let at = self.store.now().await.unwrap() - 5;
        self.external_change(&ROOM_STATE.key(), |state| state["game"]["closes_at"] = at.into()).await;
        at
    }

    /// The bytes at a key.
    pub async fn stored<F: Family<Partition = Room>>(&self, key: &Key<F>) -> Option<String> {
        match self.read(self.raw(key), Read::Get).await {
            Reply::Blob(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    async fn read(&self, key: Bytes, read: Read) -> Reply {
        self.store.engine().read_many(vec![(key, read)]).await.unwrap().remove(0)
    }

    /// Every key of the room with its end, found by a scan of the whole store. Keys of the engine itself end
    /// by themselves and have no owner.
    pub async fn keys(&self) -> Vec<(String, i64)> {
        let (mut found, mut from) = (std::collections::BTreeMap::new(), None);
        let pattern = format!("*{}*", self.code);
        loop {
            let page = self.store.engine().scan(from, pattern.as_bytes(), 1_000).await.unwrap();
            for key in page.keys {
                let name = String::from_utf8(key.to_vec()).unwrap();
                let plain = name.trim_start_matches(&format!("{{{}}}", self.code)).to_owned();
                if plain.starts_with("ember:turn:") || plain.starts_with("ember:r:") {
                    continue;
                }
                if let Reply::Int(end) = self.read(key, Read::ExpireTime).await {
                    found.insert(plain, end);
                }
            }
            from = page.next;
            if from.is_none() {
                return found.into_iter().collect();
            }
        }
    }

    /// Every key of the room ends at the same millisecond, which the meta names, and the meta a day later.
    pub async fn all_end_together(&self) -> i64 {
        let keys = self.keys().await;
        let meta: Value = serde_json::from_str(&self.stored(&ROOM_META.key()).await.unwrap()).unwrap();
        let end = meta["expires_at"].as_i64().unwrap();
        assert!(keys.len() >= 4, "{keys:?}");
        for (name, at) in keys {
            let expected = if name.ends_with(":meta") { end + DAY_MS } else { end };
            assert_eq!(at, expected, "{name}");
        }
        end
    }

    /// What is there of the room, by the last part of the names.
    pub async fn names(&self) -> Vec<String> {
        let prefix = format!("brp:room:{}:", self.code);
        self.keys().await.into_iter().map(|(name, _)| name.trim_start_matches(&prefix).to_owned()).collect()
    }
}

/// The code of a refusal.
pub fn code_of<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("a refusal").code()
}
