//! What is played, and how far it is.

use super::{ItemId, PlayerId, RoundId, SenderId, VoteResults};
use emberkeep_schema::{Array, record};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

record! {
    /// What will be played, round by round. Only the master's setup writes it, and no client is ever sent it.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Plan {
        /// In the order of the game.
        pub rounds: Array<Round> => "rounds" default,
    }
}

record! {
    /// One round.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Round {
        /// Its id.
        pub round_id: RoundId => "round_id",
        /// In the order of the round.
        pub items: Array<Item> => "items" default,
    }
}

record! {
    /// One reel, of which people guess who sent it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Item {
        /// Its id.
        pub item_id: ItemId => "item_id",
        /// Where the reel is.
        pub reel_url: String => "reel_url",
        /// How many senders a player may choose.
        pub k: u32 => "k",
        /// Who sent it.
        pub true_sender_ids: Array<SenderId> => "true_sender_ids" default,
    }
}

/// What the game waits for.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = GameStatus))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The master opens the next item.
    Idle,
    /// The players vote.
    Vote,
    /// The vote is over; the master shows the result.
    RevealWait,
    /// The round is over; the master starts the next one.
    RoundScore,
}

record! {
    /// How far the game is.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Game {
        /// What it waits for.
        pub status: Status => "status",
        /// Which round, counted from 0.
        pub round: u32 => "round_index",
        /// Which item of the round, counted from 0: the next one while `idle` (none if all were shown), else the current
        /// one.
        pub item: u32 => "item_index",
        /// When the vote closes, once the master has said so.
        pub closes_at: Option<i64> => "closes_at" optional,
        /// When the vote closed.
        pub closed_at: Option<i64> => "closed_at" optional,
        /// The result of the current item, from the end of its vote on. Not for players.
        pub results: Option<VoteResults> => "current_vote_results" optional,
        /// The result that was shown last.
        pub revealed: Option<VoteResults> => "revealed" optional,
        /// Points of this round.
        pub round_scores: Points => "round_scores" default,
    }
}

impl Plan {
    /// A round and an item of it, by their places.
    pub fn at(&self, round: u32, item: u32) -> Option<(&Round, &Item)> {
        let round = self.rounds.get(round as usize)?;
        Some((round, round.items.get(item as usize)?))
    }

    /// The places of a round and an item.
    pub fn place_of(&self, round: &RoundId, item: &ItemId) -> Option<(u32, u32)> {
        let of_round = self.rounds.iter().position(|known| known.round_id == *round)?;
        let of_item = self.rounds[of_round].items.iter().position(|known| known.item_id == *item)?;
        Some((of_round as u32, of_item as u32))
    }
}

/// Points of players. `null` and `[]`, which other languages write for an empty map, are read as one.
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
