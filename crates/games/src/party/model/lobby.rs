//! The state of a room: players, senders, and the game.

use super::{Ban, DeviceId, Game, Plan, PlayerId, Points, RoomCode, SenderId};
use emberkeep_schema::{Array, record};
use serde::{Deserialize, Serialize};

/// The phase of a room.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Devices join and take players; no game runs.
    Lobby,
    /// A game runs; its status says what it waits for.
    Game,
    /// The last round is over.
    GameOver,
}

record! {
    /// The state of a room, without claims and votes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct State {
        /// The code of the room.
        pub room_code: RoomCode => "room_code",
        /// What the room is doing.
        pub phase: Phase => "phase",
        /// The players and senders.
        pub lobby: Lobby => "lobby",
        /// The game, once it has started.
        pub game: Option<Game> => "game" default,
        /// Points of the game by player; those of an item are added when it is revealed.
        pub scores: Points => "scores" default,
        /// The rounds, once the room is set up.
        pub plan: Option<Plan> => "setup" optional,
        /// `true` while devices that have not joined before are refused; otherwise absent.
        pub locked: Option<bool> => "locked" optional,
        /// Bans; absent if there are none.
        pub bans: Option<Array<Ban>> => "bans" optional,
    }
}

record! {
    /// The players and senders of a room.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Lobby {
        /// The players, in the order in which they were added.
        pub players: Array<Player> => "players" default,
        /// The people whose reels are shown.
        pub senders: Array<Sender> => "senders" default,
    }
}

record! {
    /// A player: a participant who guesses.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Player {
        /// The id, unique among the players of the room.
        pub player_id: PlayerId => "player_id",
        /// The sender that this player is, if any.
        pub sender_id: Option<SenderId> => "sender_id" default,
        /// The displayed name.
        pub name: String => "name" default,
        /// Whether the player is active.
        pub active: bool => "active" or true,
        /// The address of a picture.
        pub avatar_url: Option<String> => "avatar_url" default,
    }
}

record! {
    /// A sender: a person whose reels are shown.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sender {
        /// The id, unique among the senders of the room.
        pub sender_id: SenderId => "sender_id",
        /// The displayed name.
        pub name: String => "name" default,
        /// Whether players can choose it.
        pub active: bool => "active" or true,
        /// The number of reels that it sent.
        pub reels_count: u32 => "reels_count" or 0,
    }
}

impl State {
    /// The state of a new room: nothing is set up.
    pub(crate) fn in_lobby(room_code: RoomCode) -> State {
        State::new(room_code, Phase::Lobby, Lobby::default())
    }

    /// The player with this id.
    pub fn player(&self, id: &PlayerId) -> Option<&Player> {
        self.lobby.players.iter().find(|player| player.player_id == *id)
    }

    pub(crate) fn player_mut(&mut self, id: &PlayerId) -> Option<&mut Player> {
        self.lobby.players.iter_mut().find(|player| player.player_id == *id)
    }

    /// Whether devices that have not joined before are refused.
    pub fn is_locked(&self) -> bool {
        self.locked == Some(true)
    }

    /// The bans, oldest first; empty if there are none.
    pub fn bans(&self) -> &[Ban] {
        self.bans.as_ref().map_or(&[], |bans| &bans.0)
    }

    /// Whether a device is banned.
    pub fn is_banned(&self, device: &DeviceId) -> bool {
        self.bans().iter().any(|ban| ban.device_id == *device)
    }

    /// Players who can vote, in the order of the lobby.
    pub fn active_players(&self) -> impl Iterator<Item = &Player> {
        self.lobby.players.iter().filter(|player| player.active)
    }

    /// When the open vote closes; set by a forced close.
    pub fn closes_at(&self) -> Option<i64> {
        self.game.as_ref()?.closes_at
    }

    /// Senders that players can choose.
    pub fn selectable(&self) -> impl Iterator<Item = &SenderId> {
        self.lobby.senders.iter().filter(|sender| sender.active).map(|sender| &sender.sender_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};

    /// As a service of a later version writes it, after a script emptied two lists.
    const EXTERNAL: &str = concat!(
        r#"{"room_code":"AB23CD","phase":"lobby","lobby":{"players":[{"player_id":"p1","sender_id":null,"name":"Ann","#,
        r#""active":true,"avatar_url":null,"team":"red"}],"senders":{},"theme":"dark"},"game":null,"#,
        r#""scores":{"p1":0},"seen":[]}"#,
    );

    #[test]
    fn what_others_wrote_of_a_room_is_read_and_kept() {
        let state = Json::<State>::decode(EXTERNAL.as_bytes()).unwrap();
        assert!(state.lobby.senders.is_empty() && state.game.is_none());
        let mut out = Vec::new();
        Json::<State>::encode(&state, &mut out).unwrap();
        let expected = EXTERNAL.replace(r#""senders":{}"#, r#""senders":[]"#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_new_room_has_the_shape_of_the_document() {
        let mut out = Vec::new();
        let state = State::in_lobby(RoomCode::new("AB23CD").unwrap());
        Json::<State>::encode(&state, &mut out).unwrap();
        let expected = concat!(
            r#"{"room_code":"AB23CD","phase":"lobby","lobby":{"players":[],"senders":[]},"#,
            r#""game":null,"scores":{}}"#
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
