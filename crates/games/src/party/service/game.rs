//! The game, item by item.

use super::claims::player_of;
use super::room_tx::{RoomTx, TxMode};
use super::{Master, Rooms};
use crate::party::error::{Error, Result};
use crate::party::model::*;
use crate::party::rules;
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::ballot::Cast;

/// The receipt of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteReceipt {
    /// The player that voted.
    pub player_id: PlayerId,
    /// Whether it was the last missing vote.
    pub closed: bool,
}

/// What settling a room found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// When the open vote closes by itself. Settle again then.
    pub next_deadline: Option<i64>,
}

impl Rooms {
    /// Starts the game. The room must be set up, with at least two active players, all of them with a device.
    pub fn start_game<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.lead("party.start_game", master, |tx, room| {
                let claims = room.claims(tx)?;
                let event = rules::start(&mut room.state, &claims)?;
                room.record([event]);
                Ok(())
            })
            .await
        })
    }

    /// Opens the next item of the round for votes. Reveals the result of the previous one if necessary.
    pub fn open_item<'a>(
        &'a self,
        master: &'a Master,
        round: &'a RoundId,
        item: &'a ItemId,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (round, item) = (round.clone(), item.clone());
            self.lead("party.open_item", master, move |tx, room| {
                room.advance(tx, |state| rules::open(state, &round, &item))
            })
            .await
        })
    }

    /// Votes for the device's player: 1 to k different senders. The first vote counts. The last missing vote
    /// closes the vote.
    pub fn submit_vote<'a>(
        &'a self,
        code: RoomCode,
        device: &'a DeviceId,
        round: &'a RoundId,
        item: &'a ItemId,
        selections: Vec<SenderId>,
    ) -> Pending<'a, Result<VoteReceipt>> {
        Box::pin(async move {
            let (device, round, item) = (device.clone(), round.clone(), item.clone());
            self.enter("party.submit_vote", code, TxMode::KeepAlive, move |tx, room| {
                vote(tx, room, &device, (&round, &item), &selections)
            })
            .await
        })
    }

    /// Starts the countdown of ten seconds to the close of the vote, and returns when it closes. If it runs
    /// already, it goes on.
    pub fn force_close_vote<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<i64>> {
        Box::pin(async move {
            self.lead("party.force_close_vote", master, |_, room| {
                let (closes_at, event) = rules::force_close(&mut room.state, room.now)?;
                room.record(event);
                Ok(closes_at)
            })
            .await
        })
    }

    /// Reveals the result of the closed vote, adds its points, and advances to the next item. Optional:
    /// opening the next item or starting the next round reveals it too.
    pub fn reveal<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.lead("party.reveal", master, |tx, room| room.advance(tx, rules::reveal)).await
        })
    }

    /// Advances after the last item of a round: first to the points of the round, then to the next round,
    /// after the last round to the end of the game.
    pub fn start_next_round<'a>(&'a self, master: &'a Master) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            self.lead("party.start_next_round", master, |tx, room| room.advance(tx, rules::next_round)).await
        })
    }

    /// Settles what is due, for a server's timer. Concurrent calls settle it once.
    pub fn settle(&self, code: RoomCode) -> Pending<'_, Result<Settlement>> {
        Box::pin(async move {
            self.enter("party.settle", code, TxMode::KeepAliveIfChanged, |_, room| {
                Ok(Settlement { next_deadline: room.state.closes_at() })
            })
            .await
        })
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
        // Unreachable here, because `room_tx` has closed a vote whose time is over. The ballot checks for
        // callers that do not settle first.
        Cast::Late => return Err(Error::Late),
        Cast::Counted => {}
    }
    // Not an event: its sequence would reveal the number of votes.
    room.wake();
    let closed = room.settle(tx)?;
    Ok(VoteReceipt { player_id: player, closed })
}

/// Checks that the vote on the item is open: a closed one is `Late`, a later one is not open yet.
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
        None => Err(Error::invalid("item", format!("{item} of round {round} is not part of the game"))),
    }
}
