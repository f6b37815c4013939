//! The ranking of players by points.

use crate::party::model::{Points, State};
use crate::party::view::RankingEntry;

/// The players of a room, the best first. Players with equal points share a rank and keep the order of the
/// lobby. The next rank counts all players before it.
pub fn ranking(state: &State, points: &Points) -> Vec<RankingEntry> {
    let score = |player| points.0.get(player).copied().unwrap_or(0);
    let players = state.lobby.players.iter().map(|player| &player.player_id);
    let mut scored: Vec<_> = players.map(|player| (player, score(player))).collect();
    scored.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    let better = |mine: i64| scored.iter().filter(|(_, score)| *score > mine).count() as u32;
    scored
        .iter()
        .map(|(player, score)| RankingEntry {
            rank: better(*score) + 1,
            player_id: (*player).clone(),
            score: *score,
        })
        .collect()
}
