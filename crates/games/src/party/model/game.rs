//! The rounds of a game, and its progress.

use super::{ItemId, PlayerId, RoundId, SenderId, VoteResults};
use emberkeep_schema::{Array, record};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

record! {
    /// The rounds of a game. Only the master's setup writes it, and no client ever gets it.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Plan {
        /// The rounds in order.
        pub rounds: Array<Round> => "rounds" default,
    }
}

record! {
    /// The items that are played together.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Round {
        /// The id, unique in the room.
        pub round_id: RoundId => "round_id",
        /// The items in order.
        pub items: Array<Item> => "items" default,
    }
}

record! {
    /// An item: one reel. Players guess who sent it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Item {
        /// The id, unique in its round.
        pub item_id: ItemId => "item_id",
        /// The address of the reel.
        pub reel_url: String => "reel_url",
        /// How many senders a player may choose.
        pub k: u32 => "k",
        /// The senders who sent the reel: the right answer.
        pub true_sender_ids: Array<SenderId> => "true_sender_ids" default,
    }
}

/// What the game waits for.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = GameStatus))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The master can open the next item.
    Idle,
    /// Players vote on the current item.
    Vote,
    /// The vote has closed. The master can reveal the result.
    RevealWait,
    /// The points of the round are shown. The master can start the next round.
    RoundScore,
}

record! {
    /// The progress of a game.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Game {
        /// What it waits for.
        pub status: Status => "status",
        /// Index of the round, from 0.
        pub round: u32 => "round_index",
        /// Index of the item in its round, from 0: the next one while `idle` (beyond the last if all were
        /// revealed), otherwise the current one.
        pub item: u32 => "item_index",
        /// When the vote closes; set by a forced close.
        pub closes_at: Option<i64> => "closes_at" optional,
        /// When the vote closed.
        pub closed_at: Option<i64> => "closed_at" optional,
        /// The result of the current item after its vote has closed. Not for players.
        pub results: Option<VoteResults> => "current_vote_results" optional,
        /// The result that was revealed last.
        pub revealed: Option<VoteResults> => "revealed" optional,
        /// Points of this round.
        pub round_scores: Points => "round_scores" default,
    }
}

impl Plan {
    /// A round and an item by their indexes.
    pub fn at(&self, round: u32, item: u32) -> Option<(&Round, &Item)> {
        let round = self.rounds.get(round as usize)?;
        Some((round, round.items.get(item as usize)?))
    }

    /// The indexes of a round and an item.
    pub fn place_of(&self, round: &RoundId, item: &ItemId) -> Option<(u32, u32)> {
        let of_round = self.rounds.iter().position(|known| known.round_id == *round)?;
        let of_item = self.rounds[of_round].items.iter().position(|known| known.item_id == *item)?;
        Some((of_round as u32, of_item as u32))
    }
}

/// Points by player. Reads `null` and `[]`, which other languages write for an empty map, as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Points(pub BTreeMap<PlayerId, i64>);

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Map(BTreeMap<PlayerId, i64>),
            Empty([(); 0]),
            Null(()),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Map(points) => Points(points),
            Form::Empty([]) | Form::Null(()) => Points::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_map_of_any_language_is_one() {
        for text in ["{}", "[]", "null"] {
            assert_eq!(serde_json::from_str::<Points>(text).unwrap(), Points::default(), "{text}");
        }
        let points: Points = serde_json::from_str(r#"{"p1":3}"#).unwrap();
        assert_eq!(points.0.values().sum::<i64>(), 3);
        assert!(serde_json::from_str::<Points>("[1]").is_err());
    }
}
