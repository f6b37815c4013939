//! Which votes are valid, when a vote is complete, and its points.

use super::game::current;
use crate::party::error::{Error, Result};
use crate::party::model::*;
use std::collections::BTreeMap;

/// The votes on an item, by player.
pub type Ballots = BTreeMap<PlayerId, Vec<SenderId>>;

/// The round and item of the open vote.
pub fn voting(state: &State) -> Option<(RoundId, ItemId)> {
    let open = state.game.as_ref().is_some_and(|game| game.status == Status::Vote);
    let (round, item) = current(state).filter(|_| open)?;
    Some((round.round_id.clone(), item.item_id.clone()))
}

/// Checks a selection for the open item: 1 to k different senders that can be chosen.
pub fn checked_selections(state: &State, selections: &[SenderId]) -> Result<Vec<SenderId>> {
    let refused = |problem: String| Err(Error::InvalidSelection { problem });
    let Some((_, item)) = current(state) else { return Err(Error::Late) };
    if selections.is_empty() || selections.len() > item.k as usize {
        return refused(format!("{} senders, expected 1 to {}", selections.len(), item.k));
    }
    for (place, sender) in selections.iter().enumerate() {
        if !state.selectable().any(|known| known == sender) {
            return refused(format!("{sender} cannot be chosen"));
        }
        if selections[..place].contains(sender) {
            return refused(format!("{sender} occurs twice"));
        }
    }
    Ok(selections.to_vec())
}

/// Whether every voter has voted: all active players with a device, at least one. Without voters the master
/// must force the close.
pub fn is_complete(state: &State, claims: &[(DeviceId, PlayerId)], votes: &Ballots) -> bool {
    let mut voters = state
        .active_players()
        .map(|player| &player.player_id)
        .filter(|player| claims.iter().any(|(_, taken)| taken == *player))
        .peekable();
    voters.peek().is_some() && voters.all(|player| votes.contains_key(player))
}

/// The result of an item: one point for each true sender. A vote belongs to its player, whichever device cast
/// it, and counts while the player exists. Of an external vote beyond the rules, the first k different
/// senders that can be chosen count.
pub fn count(state: &State, round: &RoundId, item: &Item, votes: &Ballots) -> VoteResults {
    let result = |player: &Player| {
        let chosen = allowed(state, item, votes.get(&player.player_id)?);
        let right = chosen.iter().filter(|sender| item.true_sender_ids.contains(sender)).count();
        Some(PlayerResult {
            selections: chosen.into(),
            points: right as i64,
            ..PlayerResult::new(player.player_id.clone())
        })
    };
    VoteResults {
        true_sender_ids: item.true_sender_ids.clone(),
        players: state.lobby.players.iter().filter_map(result).collect::<Vec<_>>().into(),
        ..VoteResults::new(round.clone(), item.item_id.clone())
    }
}

fn allowed(state: &State, item: &Item, vote: &[SenderId]) -> Vec<SenderId> {
    let mut chosen: Vec<SenderId> = Vec::new();
    for sender in vote {
        if chosen.len() < item.k as usize
            && !chosen.contains(sender)
            && state.selectable().any(|known| known == sender)
        {
            chosen.push(sender.clone());
        }
    }
    chosen
}
