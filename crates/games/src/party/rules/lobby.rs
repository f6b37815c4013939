//! Who takes part.

use super::names::{checked_name, checked_url};
use crate::party::error::{Error, Result};
use crate::party::event::Event;
use crate::party::limits::PLAYERS_MAX;
use crate::party::model::{Phase, Player, PlayerId, SenderId, State};
use crate::party::request::SetupPlayer;

/// Adds a player to the lobby.
pub fn add_player(state: &mut State, player: &SetupPlayer) -> Result<Event> {
    if state.phase != Phase::Lobby {
        return Err(Error::not_now("the game has begun, players are added in the lobby"));
    }
    let player = checked_player(state, player)?;
    let event = Event::PlayerAdded { player_id: player.player_id.clone(), name: player.name.clone() };
    enter(state, player);
    Ok(event)
}

/// A player that fits into the room.
pub(super) fn checked_player(state: &State, player: &SetupPlayer) -> Result<Player> {
    if state.lobby.players.len() >= PLAYERS_MAX {
        return Err(Error::RoomFull { what: "players", max: PLAYERS_MAX });
    }
    if state.player(&player.player_id).is_some() {
        return Err(Error::conflict(format!("there is a player {} already", player.player_id)));
    }
    let known = |id: &SenderId| state.lobby.senders.iter().any(|sender| sender.sender_id == *id);
    if let Some(sender) = player.sender_id.as_ref().filter(|sender| !known(sender)) {
        return Err(Error::invalid("sender of a player", format!("{sender}, expected one of the room's")));
    }
    Ok(Player {
        player_id: player.player_id.clone(),
        sender_id: player.sender_id.clone(),
        name: checked_name(&player.name)?,
        active: player.active,
        avatar_url: player.avatar_url.as_deref().map(checked_url).transpose()?,
        extra: Default::default(),
    })
}

/// Puts a player into the room, without points.
pub(super) fn enter(state: &mut State, player: Player) {
    state.scores.0.insert(player.player_id.clone(), 0);
    state.lobby.players.push(player);
}

/// Gives a player another name; nothing happens if it is the same.
pub fn rename_player(state: &mut State, id: &PlayerId, name: &str) -> Result<Option<Event>> {
    let name = checked_name(name)?;
    let player = state.player_mut(id).ok_or_else(|| Error::PlayerNotFound(id.clone()))?;
    if player.name == name {
        return Ok(None);
    }
    player.name.clone_from(&name);
    Ok(Some(Event::PlayerRenamed { player_id: id.clone(), name }))
}

/// Removes a player with its points.
pub fn delete_player(state: &mut State, id: &PlayerId) -> Result<Event> {
    if state.player(id).is_none() {
        return Err(Error::PlayerNotFound(id.clone()));
    }
    state.lobby.players.retain(|player| player.player_id != *id);
    state.scores.0.remove(id);
    if let Some(game) = &mut state.game {
        game.round_scores.0.remove(id);
    }
    Ok(Event::PlayerDeleted { player_id: id.clone() })
}

/// Lets a player take part, or not; nothing happens if it is so already.
pub fn toggle_player(state: &mut State, id: &PlayerId, active: bool) -> Result<Option<Event>> {
    let player = state.player_mut(id).ok_or_else(|| Error::PlayerNotFound(id.clone()))?;
    if player.active == active {
        return Ok(None);
    }
    player.active = active;
    Ok(Some(Event::PlayerToggled { player_id: id.clone(), active }))
}
