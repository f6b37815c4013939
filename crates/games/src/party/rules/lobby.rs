//! The rules of the lobby: players, lock and bans.

use super::names::{checked_name, checked_url};
use crate::party::error::{Error, Result};
use crate::party::event::Event;
use crate::party::limits::{BANS_MAX, LOBBY_BYTES_MAX, PLAYERS_MAX};
use crate::party::model::{Ban, DeviceId, Phase, Player, PlayerId, SenderId, State};
use crate::party::request::SetupPlayer;

/// Adds a player to the lobby.
pub fn add_player(state: &mut State, player: &SetupPlayer) -> Result<Event> {
    if state.phase != Phase::Lobby {
        return Err(Error::not_now("the game has begun; players can be added only in the lobby"));
    }
    let before = bytes(state);
    let player = checked_player(state, player)?;
    let event = Event::PlayerAdded { player_id: player.player_id.clone(), name: player.name.clone() };
    enter(state, player);
    check_size(state, before)?;
    Ok(event)
}

/// Size of all players and senders as JSON.
fn bytes(state: &State) -> usize {
    serde_json::to_vec(&state.lobby).map_or(usize::MAX, |json| json.len())
}

/// Every view contains all players and senders, so their total size is limited. A room that is beyond the
/// limit already, from an earlier version or an external writer, may only become smaller.
pub(super) fn check_size(state: &State, bytes_before: usize) -> Result<()> {
    let bytes = bytes(state);
    if bytes > LOBBY_BYTES_MAX && bytes > bytes_before {
        let problem = format!(
            "{bytes} bytes in total, expected at most {LOBBY_BYTES_MAX}; shorten names, ids and avatar addresses"
        );
        return Err(Error::invalid("players and senders", problem));
    }
    Ok(())
}

/// Checks a new player.
pub(super) fn checked_player(state: &State, player: &SetupPlayer) -> Result<Player> {
    if state.lobby.players.len() >= PLAYERS_MAX {
        return Err(Error::RoomFull { what: "players", max: PLAYERS_MAX });
    }
    if state.player(&player.player_id).is_some() {
        return Err(Error::conflict(format!("player {} already exists", player.player_id)));
    }
    player.player_id.check_new()?;
    let known = |id: &SenderId| state.lobby.senders.iter().any(|sender| sender.sender_id == *id);
    if let Some(sender) = player.sender_id.as_ref().filter(|sender| !known(sender)) {
        return Err(Error::invalid("sender of a player", format!("{sender}, expected a sender of the room")));
    }
    Ok(Player {
        sender_id: player.sender_id.clone(),
        name: checked_name(&player.name)?,
        active: player.active,
        avatar_url: player.avatar_url.as_deref().map(checked_url).transpose()?,
        ..Player::new(player.player_id.clone())
    })
}

/// Adds a player without points.
pub(super) fn enter(state: &mut State, player: Player) {
    state.scores.0.insert(player.player_id.clone(), 0);
    state.lobby.players.push(player);
}

/// Renames a player; `None` if the name is the same.
pub fn rename_player(state: &mut State, id: &PlayerId, name: &str) -> Result<Option<Event>> {
    let (name, before) = (checked_name(name)?, bytes(state));
    let player = state.player_mut(id).ok_or_else(|| Error::PlayerNotFound(id.clone()))?;
    if player.name == name {
        return Ok(None);
    }
    player.name.clone_from(&name);
    check_size(state, before)?;
    Ok(Some(Event::PlayerRenamed { player_id: id.clone(), name }))
}

/// Whether another player has the name, ignoring case. The master may give two players the same name; a
/// device may not.
pub fn has_name(state: &State, other_than: &PlayerId, name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let others = state.lobby.players.iter().filter(|player| player.player_id != *other_than);
    others.into_iter().any(|player| player.name.to_lowercase() == name)
}

/// Locks or unlocks the lobby; `None` if nothing changes.
pub fn lock(state: &mut State, locked: bool) -> Option<Event> {
    if state.is_locked() == locked {
        return None;
    }
    state.locked = locked.then_some(true);
    Some(Event::LobbyLocked { locked })
}

/// Bans a device that has a player.
pub fn ban(state: &mut State, device_id: &DeviceId, player: &PlayerId, now: i64) -> Result<Event> {
    if state.bans().len() >= BANS_MAX {
        return Err(Error::RoomFull { what: "bans", max: BANS_MAX });
    }
    // One more than the newest: the id of a lifted ban is not reused while newer ones exist.
    let number = |ban: &Ban| ban.ban_id.strip_prefix('b').and_then(|number| number.parse().ok());
    let newest: u32 = state.bans().iter().filter_map(number).max().unwrap_or(0);
    let ban_id = format!("b{}", newest.saturating_add(1));
    let ban = Ban {
        name: state.player(player).map(|player| player.name.clone()).unwrap_or_default(),
        at: now,
        ..Ban::new(ban_id, device_id.clone(), player.clone())
    };
    let event = Event::DeviceBanned { ban_id: ban.ban_id.clone(), player_id: player.clone() };
    state.bans.get_or_insert_default().0.push(ban);
    Ok(event)
}

/// Ends a ban; the device can join again.
pub fn unban(state: &mut State, ban_id: &str) -> Result<Event> {
    let bans = state.bans.as_mut().filter(|bans| bans.iter().any(|ban| ban.ban_id == ban_id));
    let bans = bans.ok_or_else(|| Error::BanNotFound(ban_id.chars().take(16).collect()))?;
    bans.0.retain(|ban| ban.ban_id != ban_id);
    if bans.is_empty() {
        state.bans = None;
    }
    Ok(Event::DeviceUnbanned { ban_id: ban_id.to_owned() })
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

/// Activates or deactivates a player; `None` if nothing changes.
pub fn toggle_player(state: &mut State, id: &PlayerId, active: bool) -> Result<Option<Event>> {
    let player = state.player_mut(id).ok_or_else(|| Error::PlayerNotFound(id.clone()))?;
    if player.active == active {
        return Ok(None);
    }
    player.active = active;
    Ok(Some(Event::PlayerToggled { player_id: id.clone(), active }))
}
