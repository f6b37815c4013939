//! Votes and results.

use super::{ItemId, PlayerId, RoundId, SenderId};
use emberkeep_schema::{Array, Codec, ValueError, record};

/// The senders that a player chose, as JSON. A corrupt value decodes as an empty selection, so that one vote
/// of an external service cannot prevent the count of the others.
pub struct Selections;

impl Codec for Selections {
    type Value = Vec<SenderId>;
    const TYPE: &'static str = "JSON";

    fn encode(chosen: &Vec<SenderId>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        emberkeep_schema::Json::<Vec<SenderId>>::encode(chosen, out)
    }

    fn decode(bytes: &[u8]) -> Result<Vec<SenderId>, ValueError> {
        let read = serde_json::from_slice::<Array<SenderId>>(bytes);
        Ok(read.map(|array| array.0).unwrap_or_default())
    }
}

record! {
    /// The result of the vote on one item.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct VoteResults {
        /// The round that contains the item.
        pub round_id: RoundId => "round_id",
        /// The item that was voted on.
        pub item_id: ItemId => "item_id",
        /// The senders who sent the reel: the right answer.
        pub true_sender_ids: Array<SenderId> => "true_sender_ids" default,
        /// The result of each player that voted.
        pub players: Array<PlayerResult> => "players" default,
    }
}

record! {
    /// The result of one player's vote.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PlayerResult {
        /// The player who voted.
        pub player_id: PlayerId => "player_id",
        /// The senders that the player chose.
        pub selections: Array<SenderId> => "selections" default,
        /// One point for each true sender among them.
        pub points: i64 => "points" or 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_that_cannot_be_read_chooses_no_sender() {
        let ids = |text: &str| Selections::decode(text.as_bytes()).unwrap();
        assert_eq!(ids(r#"["s1","s2"]"#).len(), 2);
        for text in ["", "{}", "null", "[1]", "s1", r#"["s1""#] {
            assert_eq!(ids(text), [], "{text}");
        }
    }
}
