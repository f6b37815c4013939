//! The operations on rooms. Each is one atomic transaction: authorization, what is due, the rules, the
//! writes, the events.

mod claims;
mod close;
mod create;
mod devices;
mod follow;
mod game;
mod join;
mod lobby;
mod moderation;
mod room_tx;
mod sync;

pub use create::NewRoom;
pub use game::{Settlement, VoteReceipt};
pub use join::{Admission, JoinReply, JoinRequest};

use super::error::{Error, Result};
use super::event::Event;
use super::model::{MasterKey, Room, RoomCode, State};
use super::random::RandomSource;
use super::schema::{DEVICE_TO_PLAYER, PLAYER_TO_DEVICE, ROOM_LOG, ROOM_META, ROOM_ROSTER, ROOM_STATE};
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{Scope, Store, Tx};
use room_tx::{Abort, Outcome, RoomTx, TxMode};
use std::fmt;
use std::sync::Arc;

/// The rooms of a store. Cheap to clone.
///
/// ```
/// use emberkeep_games::party::*;
/// use emberkeep_hot::{Store, embedded::Embedded};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let rooms = Rooms::new(Store::new(std::sync::Arc::new(Embedded::in_memory())));
/// let created = rooms.create().await?;
/// let (code, master) = (created.room_code, rooms.master(created.room_code, &created.master_key).await?);
///
/// // Two senders, one reel, two players.
/// let [kim, lee] = ["kim", "lee"].map(|id| SenderId::new(id).expect("a short word"));
/// let [ann, ben] = ["ann", "ben"].map(|id| PlayerId::new(id).expect("a short word"));
/// let (round, item) = (RoundId::new("r1")?, ItemId::new("i1")?);
/// let sender = |id: &SenderId| SetupSender { sender_id: id.clone(), name: id.to_string(), active: true, reels_count: 1 };
/// rooms.setup(&master, Setup {
///     senders: vec![sender(&kim), sender(&lee)],
///     rounds: vec![SetupRound { round_id: round.clone(), items: vec![SetupItem {
///         item_id: item.clone(), reel_url: "https://example.org/1".into(), k: 1, true_sender_ids: vec![kim.clone()],
///     }] }],
///     players: vec![SetupPlayer::new(ann.clone(), "Ann"), SetupPlayer::new(ben.clone(), "Ben")],
/// }).await?;
///
/// // Each on a phone of their own. A player that is taken cannot be taken again.
/// // An id is a random secret of its device; these are short so that they can be read.
/// let [one, two] = ["phone-1", "phone-2"].map(|id| DeviceId::new(id).expect("a short word"));
/// rooms.take_player(code, &one, &ann).await?;
/// assert_eq!(rooms.take_player(code, &two, &ann).await, Err(Error::TakenNow(ann.clone())));
/// rooms.take_player(code, &two, &ben).await?;
///
/// rooms.start_game(&master).await?;
/// rooms.open_item(&master, &round, &item).await?;
/// rooms.submit_vote(code, &one, &round, &item, vec![kim.clone()]).await?;
/// let last = rooms.submit_vote(code, &two, &round, &item, vec![lee]).await?;
/// assert!(last.closed, "all have voted");
///
/// // The master sees who knew; the others when it is shown.
/// assert!(rooms.sync_master(&master, None).await?.current_vote_results.is_some());
/// rooms.reveal(&master).await?;
/// assert_eq!(rooms.sync(code, Some(&one)).await?.scores.0[&ann], 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Rooms {
    store: Store,
    random: RandomSource,
}

/// The proof that a caller leads a room. It belongs to the room, not to the code: if the room is closed and
/// another one gets its code, the proof is void.
#[derive(Clone)]
pub struct Master {
    code: RoomCode,
    hash: Arc<str>,
}

impl Master {
    /// The code of the room.
    pub fn room_code(&self) -> RoomCode {
        self.code
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Master({})", self.code)
    }
}

impl Rooms {
    /// The rooms of a store.
    pub fn new(store: Store) -> Rooms {
        Rooms::with_random(store, RandomSource::system())
    }

    /// The rooms of a store, with another source of random codes and keys.
    pub fn with_random(store: Store, random: RandomSource) -> Rooms {
        Rooms { store, random }
    }

    /// Checks a master key; [`NotMaster`](Error::NotMaster) if it is wrong. Also works for a room with a
    /// corrupt state, so that its master can close it.
    pub fn master<'a>(&'a self, code: RoomCode, key: &'a MasterKey) -> Pending<'a, Result<Master>> {
        Box::pin(async move {
            let master = Master { code, hash: key.hash().into() };
            let hash = master.hash.clone();
            self.store
                .scope(Room(code))
                .named("party.master")
                .read(move |tx| {
                    let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
                    match meta.is_of(&hash) {
                        _ if tx.now() > meta.expires_at => Err(Error::RoomExpired(code)),
                        true => Ok(()),
                        false => Err(Error::NotMaster(code)),
                    }
                })
                .await?;
            Ok(master)
        })
    }

    /// A transaction of the master that only applies a rule to the state.
    async fn rule<E, R>(&self, operation: &'static str, master: &Master, rule: R) -> Result<()>
    where
        E: IntoIterator<Item = Event>,
        R: Fn(&mut State) -> Result<E> + Clone + Send + 'static,
    {
        self.lead(operation, master, move |_, room| {
            let events = rule(&mut room.state)?;
            room.record(events);
            Ok(())
        })
        .await
    }

    /// A transaction of the master. Extends the room's expiry.
    async fn lead<T, A>(&self, operation: &'static str, master: &Master, act: A) -> Result<T>
    where
        T: Send + 'static,
        A: Fn(&mut Tx<'_, Room>, &mut RoomTx) -> Result<T> + Clone + Send + 'static,
    {
        let hash = master.hash.clone();
        self.enter(operation, master.code, TxMode::KeepAlive, move |tx, room| {
            room.authorize(&hash)?;
            act(tx, room)
        })
        .await
    }

    /// A transaction on a room.
    async fn enter<T, A>(&self, operation: &'static str, code: RoomCode, mode: TxMode, act: A) -> Result<T>
    where
        T: Send + 'static,
        A: Fn(&mut Tx<'_, Room>, &mut RoomTx) -> Result<T> + Clone + Send + 'static,
    {
        let scope = self.scope(operation, code);
        loop {
            let act = act.clone();
            match scope.transact(move |tx| room_tx::run(tx, mode, &act)).await {
                Ok(Outcome::Done(value)) => return Ok(value),
                Ok(Outcome::Expired) => return Err(Error::RoomExpired(code)),
                Err(Abort::Refused(error)) => return Err(error),
                // What is due must be settled even if the call fails. Then the call runs again, so that its
                // error describes the settled room. The loop ends, because what is due is settled once.
                Err(Abort::SettleFirst) => {
                    let settle =
                        |tx: &mut Tx<'_, Room>| room_tx::run(tx, TxMode::KeepAliveIfChanged, &|_, _| Ok(()));
                    match scope.transact(settle).await {
                        Ok(_) | Err(Abort::SettleFirst) => {}
                        Err(Abort::Refused(error)) => return Err(error),
                    }
                }
            }
        }
    }

    /// A scope that prefetches what every transaction on a room reads.
    fn scope(&self, operation: &'static str, code: RoomCode) -> Scope<Room> {
        let scope = self.store.scope(Room(code)).named(operation);
        let scope = scope.prefetch_get(&ROOM_META.key()).prefetch_get(&ROOM_STATE.key());
        let scope = scope.prefetch_log(&ROOM_LOG.key());
        let scope = scope.prefetch(&DEVICE_TO_PLAYER.key(), Read::HGetAll);
        let scope = scope.prefetch(&PLAYER_TO_DEVICE.key(), Read::HGetAll);
        scope.prefetch_members(&ROOM_ROSTER.key())
    }
}
