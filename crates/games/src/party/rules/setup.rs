//! The setup of a room, checked as a whole.

use super::lobby::{self, checked_player, enter};
use super::names::{checked_name, checked_url};
use crate::party::error::{Error, Result};
use crate::party::event::Event;
use crate::party::limits::{
    ITEMS_MAX, PLAYERS_MAX, ROUNDS_MAX, SELECTIONS_BYTES_MAX, SENDERS_MAX, SETUP_BYTES_MAX,
};
use crate::party::model::{Item, Phase, Plan, Round, Sender, SenderId, State};
use crate::party::request::{Setup, SetupItem, SetupRound, SetupSender};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

/// Sets a room up, once per game. Players that were added before stay.
pub fn set_up(state: &mut State, setup: &Setup) -> Result<Event> {
    if state.phase != Phase::Lobby {
        return Err(Error::not_now("the game has begun; a room can be set up only in the lobby"));
    }
    if state.plan.is_some() {
        return Err(Error::conflict("the room is already set up"));
    }
    let mut after = state.clone();
    after.lobby.senders = senders(&setup.senders)?.into();
    for player in &setup.players {
        let player = checked_player(&after, player)?;
        enter(&mut after, player);
    }
    after.plan = Some(plan(&after, &setup.rounds)?);
    lobby::check_size(&after, 0)?;
    check_size(&after)?;
    *state = after;
    Ok(Event::SetUp)
}

fn senders(given: &[SetupSender]) -> Result<Vec<Sender>> {
    check_count("senders", given.len(), SENDERS_MAX)?;
    check_unique("sender", given.iter().map(|sender| &sender.sender_id))?;
    let sender = |sender: &SetupSender| {
        sender.sender_id.check_new()?;
        Ok(Sender {
            name: checked_name(&sender.name)?,
            active: sender.active,
            reels_count: sender.reels_count,
            ..Sender::new(sender.sender_id.clone())
        })
    };
    given.iter().map(sender).collect()
}

fn plan(state: &State, given: &[SetupRound]) -> Result<Plan> {
    check_count("rounds", given.len(), ROUNDS_MAX)?;
    check_count("items", given.iter().map(|round| round.items.len()).sum(), ITEMS_MAX)?;
    check_unique("round", given.iter().map(|round| &round.round_id))?;
    let round = |round: &SetupRound| {
        round.round_id.check_new()?;
        check_count("items of a round", round.items.len(), ITEMS_MAX)?;
        check_unique("item of a round", round.items.iter().map(|item| &item.item_id))?;
        let items: Vec<Item> = round.items.iter().map(|given| item(state, given)).collect::<Result<_>>()?;
        Ok(Round { items: items.into(), ..Round::new(round.round_id.clone()) })
    };
    let rounds: Vec<Round> = given.iter().map(round).collect::<Result<_>>()?;
    Ok(Plan { rounds: rounds.into(), ..Plan::new() })
}

fn item(state: &State, given: &SetupItem) -> Result<Item> {
    given.item_id.check_new()?;
    let selectable = state.selectable().count();
    if given.k == 0 || given.k as usize > selectable {
        let problem = format!("{} for item {}, expected 1 to {selectable}", given.k, given.item_id);
        return Err(Error::invalid("k", problem));
    }
    check_selections(state, given)?;
    check_count("true senders of an item", given.true_sender_ids.len(), SENDERS_MAX)?;
    check_unique("true sender of an item", given.true_sender_ids.iter())?;
    let known = |id: &SenderId| state.lobby.senders.iter().any(|sender| sender.sender_id == *id);
    if let Some(stranger) = given.true_sender_ids.iter().find(|id| !known(id)) {
        let problem = format!("{stranger} of item {}, expected one of the senders", given.item_id);
        return Err(Error::invalid("true sender", problem));
    }
    let true_sender_ids = given.true_sender_ids.clone().into();
    Ok(Item { true_sender_ids, ..Item::new(given.item_id.clone(), checked_url(&given.reel_url)?, given.k) })
}

/// A result contains the selections of every player, and every view contains the last result.
fn check_selections(state: &State, given: &SetupItem) -> Result<()> {
    let longest = state.selectable().map(|id| id.as_str().len()).max().unwrap_or(0);
    // The length of an id with its quotes and comma.
    let most = SELECTIONS_BYTES_MAX / (PLAYERS_MAX * (longest + 3));
    if given.k as usize > most {
        let problem = format!(
            "{} for item {}, expected 1 to {most} because the ids of the senders are long",
            given.k, given.item_id
        );
        return Err(Error::invalid("k", problem));
    }
    Ok(())
}

fn check_count(what: &'static str, count: usize, max: usize) -> Result<()> {
    match count {
        0 => Err(Error::invalid(what, format!("none, expected 1 to {max}"))),
        count if count > max => Err(Error::RoomFull { what, max }),
        _ => Ok(()),
    }
}

fn check_unique<T: Eq + Hash + Display>(what: &'static str, ids: impl Iterator<Item = T>) -> Result<()> {
    let mut ids_so_far = HashSet::new();
    for id in ids {
        if ids_so_far.contains(&id) {
            return Err(Error::invalid(what, format!("{id} occurs twice, expected it once")));
        }
        ids_so_far.insert(id);
    }
    Ok(())
}

/// Every transaction on the room reads the state, so its size is limited.
fn check_size(state: &State) -> Result<()> {
    let bytes = serde_json::to_vec(state).map_or(usize::MAX, |json| json.len());
    if bytes > SETUP_BYTES_MAX {
        let problem = format!("{bytes} bytes in total, expected at most {SETUP_BYTES_MAX}");
        return Err(Error::invalid("setup", problem));
    }
    Ok(())
}
