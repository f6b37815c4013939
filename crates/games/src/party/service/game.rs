//! The game, item by item.

use super::claims::player_of;
use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::model::*;
use crate::party::rules;
use emberkeep_hot::Tx;
use emberkeep_primitives::ballot::Cast;

/// A vote that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteReceipt {
    /// Whose it is.
    pub player_id: PlayerId,
    /// Whether it was the last one that was waited for.
    pub closed: bool,
}

/// A room in which nothing is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// When something will be: settle then.
    pub next_deadline: Option<i64>,
}

impl Rooms {
    /// Starts the game: the room is set up, two players at least take part, and all of them are taken.
    pub async fn start_game(&self, master: &Master) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, |tx, room| {
            let claims = room.claims(tx)?;
            let event = rules::start(&mut room.state, &claims)?;
            room.record([event]);
            Ok(())
        })
        .await
    }

    /// Opens an item for the vote. It must be the next one of the round; the result of the one before is shown first.
    pub async fn open_item(&self, master: &Master, round: &RoundId, item: &ItemId) -> Result<()> {
        let (round, item) = (round.clone(), item.clone());
        let act = move |tx: &mut Tx<'_, Room>, room: &mut RoomTx| {
            room.advance(tx, |state| rules::open(state, &round, &item))
        };
        self.lead(master, TxMode::KeepAlive, act).await
    }

    /// Votes for the device's player: 1 to k different senders. The first vote counts. With the last one the vote ends.
    pub async fn submit_vote(
        &self,
        code: RoomCode,
        device: &DeviceId,
        round: &RoundId,
        item: &ItemId,
        selections: Vec<SenderId>,
    ) -> Result<VoteReceipt> {
        let (device, round, item) = (device.clone(), round.clone(), item.clone());
        self.enter(code, TxMode::KeepAlive, move |tx, room| {
            vote(tx, room, &device, (&round, &item), &selections)
        })
        .await
    }

    /// Lets the vote end in ten seconds; when that is. Said again, the first countdown goes on.
    pub async fn force_close_vote(&self, master: &Master) -> Result<i64> {
        self.lead(master, TxMode::KeepAlive, |_, room| {
            let (closes_at, event) = rules::force_close(&mut room.state, room.now)?;
            room.record(event);
            Ok(closes_at)
        })
        .await
    }

    /// Shows everybody the result of the item whose vote is over, adds its points and leaves it behind. Optional before
    /// the next item or round: those do it by themselves.
    pub async fn reveal(&self, master: &Master) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, |tx, room| room.advance(tx, rules::reveal)).await
    }

    /// Goes on after the last item of a round: first to the points of the round, then to the next round, after the last
    /// one to the end of the game.
    pub async fn start_next_round(&self, master: &Master) -> Result<()> {
        self.lead(master, TxMode::KeepAlive, |tx, room| room.advance(tx, rules::next_round)).await
    }

    /// Does what is due and nothing else: for a server's timer. Two that call it at once do it once.
    pub async fn settle(&self, code: RoomCode) -> Result<Settlement> {
        self.enter(code, TxMode::KeepAliveIfChanged, |_, room| {
            Ok(Settlement { next_deadline: room.state.closes_at() })
        })
        .await
    }
}

fn vote(
    tx: &mut Tx<'_, Room>,
    room: &mut RoomTx,
    device: &DeviceId,
    place: (&RoundId, &ItemId),
    selections: &[SenderId],
) -> Result<VoteReceipt> {
    check_open(&room.state, place)?;
    let player = player_of(tx, room, device)?;
    let chosen = rules::checked_selections(&room.state, selections)?;
    let ballot = room.ballot().ok_or(Error::Late)?;
    match ballot.cast(tx, &player, &chosen, room.state.closes_at())? {
        Cast::AlreadyVoted => return Err(Error::AlreadyVoted(player)),
        // The visit has ended a vote whose time is over, so this does not happen here; a ballot asks by itself, because
        // not everybody who uses one settles first.
        Cast::Late => return Err(Error::Late),
        Cast::Counted => {}
    }
    // No event: its number in the log would tell everybody how many have voted.
    room.wake();
    let closed = room.settle(tx)?;
    Ok(VoteReceipt { player_id: player, closed })
}

/// The vote on the item must be open: one that was is over, one that was not is not now.
fn check_open(state: &State, (round, item): (&RoundId, &ItemId)) -> Result<()> {
    if state.phase == Phase::Lobby {
        return Err(Error::not_now("the game has not begun"));
    }
    if rules::voting(state).is_some_and(|open| (&open.0, &open.1) == (round, item)) {
        return Ok(());
    }
    let (Some(plan), Some(game)) = (&state.plan, &state.game) else {
        return Err(Error::not_now("no vote is open"));
    };
    let next = match game.status {
        Status::Idle => (game.round, game.item),
        Status::Vote | Status::RevealWait | Status::RoundScore => (game.round, game.item + 1),
    };
    match plan.place_of(round, item) {
        Some(place) if place < next => Err(Error::Late),
        Some(_) => Err(Error::not_now(format!("item {item} of round {round} is not open"))),
        None => Err(Error::invalid("item", format!("{item} of round {round} is none of the game's"))),
    }
}
