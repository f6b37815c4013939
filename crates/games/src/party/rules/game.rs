//! The course of a game: an item is opened, voted on, closed and revealed.

use super::ranking::ranking;
use super::vote::count;
use crate::party::error::{Error, Result};
use crate::party::event::{CloseReason, Event};
use crate::party::limits::{COUNTDOWN, PLAYERS_TO_START_MIN};
use crate::party::model::*;
use crate::party::view::RevealedItem;

/// The current item: open, or waiting for its reveal.
pub fn current(state: &State) -> Option<(&Round, &Item)> {
    let game = state.game.as_ref().filter(|_| state.phase == Phase::Game)?;
    match game.status {
        Status::Vote | Status::RevealWait => state.plan.as_ref()?.at(game.round, game.item),
        Status::Idle | Status::RoundScore => None,
    }
}

/// The item that can be opened next.
pub fn next_item(state: &State) -> Option<(&Round, &Item)> {
    let game = state.game.as_ref().filter(|_| state.phase == Phase::Game)?;
    match game.status {
        Status::Idle => state.plan.as_ref()?.at(game.round, game.item),
        Status::RevealWait => state.plan.as_ref()?.at(game.round, game.item + 1),
        Status::Vote | Status::RoundScore => None,
    }
}

/// Starts the game. Needs two active players, all of them with a device.
pub fn start(state: &mut State, claims: &[(DeviceId, PlayerId)]) -> Result<Event> {
    match state.phase {
        Phase::Lobby => {}
        Phase::Game => return Err(Error::not_now("the game has already begun")),
        Phase::GameOver => {
            return Err(Error::not_now("the game is over; go back to the lobby to play again"));
        }
    }
    if state.plan.is_none() {
        return Err(Error::not_now("the room is not set up; set it up first"));
    }
    let active = state.active_players().count();
    if active < PLAYERS_TO_START_MIN {
        return Err(Error::NotEnoughPlayers { active, needed: PLAYERS_TO_START_MIN });
    }
    let free = |player: &&Player| !claims.iter().any(|(_, taken)| *taken == player.player_id);
    if let Some(player) = state.active_players().find(free) {
        let problem =
            format!("no device has taken player {}; wait, or deactivate the player", player.player_id);
        return Err(Error::NotClaimed { problem });
    }
    state.phase = Phase::Game;
    state.game = Some(Game::new(Status::Idle, 0, 0));
    Ok(Event::GameStarted)
}

/// Opens the next item. If the result of the previous one was not revealed, it is revealed first.
pub fn open(state: &mut State, round: &RoundId, item: &ItemId) -> Result<Vec<Event>> {
    let status = running(state)?.status;
    let Some((next_round, next)) = next_item(state) else {
        return Err(Error::not_now(match status {
            Status::Vote => "an item is open; wait for the end of its vote",
            _ => "the round has no further item; start the next round",
        }));
    };
    if (&next_round.round_id, &next.item_id) != (round, item) {
        let problem = format!("the next item is {} of round {}", next.item_id, next_round.round_id);
        return Err(Error::conflict(problem));
    }
    let opened = Event::VoteStarted {
        round_id: round.clone(),
        item_id: item.clone(),
        reel_url: next.reel_url.clone(),
        k: next.k,
    };
    let mut events = if status == Status::RevealWait { reveal(state)? } else { vec![] };
    running(state)?.status = Status::Vote;
    events.push(opened);
    Ok(events)
}

/// Starts the countdown to the close of the vote. If it runs already, the first deadline stays.
pub fn force_close(state: &mut State, now: i64) -> Result<(i64, Option<Event>)> {
    let Some((round_id, item_id)) = super::voting(state) else {
        running(state)?;
        return Err(Error::not_now("no vote is open"));
    };
    let game = running(state)?;
    if let Some(closes_at) = game.closes_at {
        return Ok((closes_at, None));
    }
    let closes_at = now + COUNTDOWN.as_millis() as i64;
    game.closes_at = Some(closes_at);
    Ok((closes_at, Some(Event::VoteClosing { round_id, item_id, closes_at })))
}

/// Closes the open vote and counts the votes.
pub fn close(state: &mut State, votes: &super::Ballots, at: i64, reason: CloseReason) -> Result<Event> {
    let Some((round, item)) = current(state).filter(|_| super::voting(state).is_some()) else {
        return Err(Error::not_now("no vote is open"));
    };
    let results = count(state, &round.round_id, item, votes);
    let event = Event::VoteClosed {
        round_id: results.round_id.clone(),
        item_id: results.item_id.clone(),
        closed_at: at,
        reason,
    };
    let game = running(state)?;
    game.status = Status::RevealWait;
    game.closes_at = None;
    game.closed_at = Some(at);
    game.results = Some(results);
    Ok(event)
}

/// Reveals the result of the closed vote, adds its points, and advances to the next item. After the last item
/// of a round, only the points of the round can follow.
pub fn reveal(state: &mut State) -> Result<Vec<Event>> {
    let game = running(state)?;
    if game.status != Status::RevealWait {
        return Err(Error::not_now("there is no result to reveal"));
    }
    let results = game.results.take();
    game.closed_at = None;
    game.item += 1;
    game.status = Status::Idle;
    add_points(state, results.as_ref());
    let game = running(state)?;
    game.revealed = results;
    Ok(RevealedItem::of(game).map(|results| Event::ItemRevealed { results }).into_iter().collect())
}

/// Shows the points of a round whose items are all done.
fn score_round(state: &mut State) -> Result<Event> {
    let game = running(state)?;
    game.status = Status::RoundScore;
    // The last item is the current one until the next round.
    game.item = game.item.saturating_sub(1);
    let (place, points) = (game.round as usize, game.round_scores.clone());
    let round = state.plan.as_ref().and_then(|plan| plan.rounds.get(place));
    let round_id = round.ok_or_else(|| Error::not_now("the room is not set up"))?.round_id.clone();
    Ok(Event::RoundScored { round_id, ranking: ranking(state, &points) })
}

/// Advances after the last item of a round: to the points of the round (revealing the last result if
/// necessary), then to the next round, and after the last round to the end of the game.
pub fn next_round(state: &mut State) -> Result<Vec<Event>> {
    let status = running(state)?.status;
    match status {
        Status::RevealWait | Status::Idle if next_item(state).is_none() => {
            let mut events = if status == Status::RevealWait { reveal(state)? } else { vec![] };
            events.push(score_round(state)?);
            return Ok(events);
        }
        Status::RoundScore => {}
        _ => return Err(Error::not_now("the round is not over; open its next item")),
    }
    let game = running(state)?;
    let next = game.round + 1;
    let plan = state.plan.as_ref();
    let Some(round_id) = plan.and_then(|plan| plan.rounds.get(next as usize)).map(|r| r.round_id.clone())
    else {
        state.phase = Phase::GameOver;
        return Ok(vec![Event::GameOver { ranking: ranking(state, &state.scores) }]);
    };
    let game = running(state)?;
    (game.round, game.item, game.status) = (next, 0, Status::Idle);
    game.round_scores = Points::default();
    Ok(vec![Event::RoundStarted { round_id }])
}

/// Returns the room to the lobby. Players and their devices stay, points start at 0. Without `keep_rounds`
/// the room must be set up again.
pub fn play_again(state: &mut State, keep_rounds: bool) -> Result<Vec<Event>> {
    if state.phase == Phase::Lobby {
        return Err(Error::not_now("the room is in the lobby; start the game"));
    }
    (state.phase, state.game) = (Phase::Lobby, None);
    state.scores.0 = state.lobby.players.iter().map(|player| (player.player_id.clone(), 0)).collect();
    if !keep_rounds {
        state.plan = None;
        state.lobby.senders.0.clear();
        state.lobby.players.0.iter_mut().for_each(|player| player.sender_id = None);
    }
    Ok(vec![Event::BackToLobby { keep_rounds }])
}

/// Adds points to players that still exist.
fn add_points(state: &mut State, results: Option<&VoteResults>) {
    for result in results.iter().flat_map(|results| results.players.iter()) {
        if state.player(&result.player_id).is_none() {
            continue;
        }
        *state.scores.0.entry(result.player_id.clone()).or_default() += result.points;
        if let Some(game) = &mut state.game {
            *game.round_scores.0.entry(result.player_id.clone()).or_default() += result.points;
        }
    }
}

fn running(state: &mut State) -> Result<&mut Game> {
    let phase = state.phase;
    match (&mut state.game, phase) {
        (Some(game), Phase::Game) => Ok(game),
        (_, Phase::GameOver) => Err(Error::not_now("the game is over")),
        _ => Err(Error::not_now("the game has not begun")),
    }
}
