//! The state of a room: its players and senders, and the game when there is one.

use super::{Ban, DeviceId, Game, Plan, PlayerId, Points, RoomCode, SenderId};
use emberkeep_schema::{Array, record};
use serde::{Deserialize, Serialize};

/// Where a room is.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// People come together.
    Lobby,
    /// Rounds are played.
    Game,
    /// The last round is over.
    GameOver,
}

record! {
    /// The whole state of a room, but for claims and votes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct State {
        /// The room.
        pub room_code: RoomCode => "room_code",
        /// Where it is.
        pub phase: Phase => "phase",
        /// Who takes part.
        pub lobby: Lobby => "lobby",
        /// The game, from its start on.
        pub game: Option<Game> => "game" default,
        /// Points of each player.
        pub scores: Points => "scores" default,
        /// What will be played, from the setup of the master on.
        pub plan: Option<Plan> => "setup" optional,
        /// `true` while devices that have not joined before are refused.
        pub locked: Option<bool> => "locked" optional,
        /// Devices that may not come back.
        pub bans: Option<Array<Ban>> => "bans" optional,
    }
}

record! {
    /// Who takes part.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Lobby {
        /// Who guesses.
        pub players: Array<Player> => "players" default,
        /// Whose reels are shown.
        pub senders: Array<Sender> => "senders" default,
    }
}

record! {
    /// Who guesses.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Player {
        /// Its id.
        pub player_id: PlayerId => "player_id",
        /// The sender that the player is, if it is one.
        pub sender_id: Option<SenderId> => "sender_id" default,
        /// What people read.
        pub name: String => "name" default,
        /// Whether the player takes part.
        pub active: bool => "active" or true,
        /// A picture.
        pub avatar_url: Option<String> => "avatar_url" default,
    }
}

record! {
    /// Whose reels are shown.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sender {
        /// Its id.
        pub sender_id: SenderId => "sender_id",
        /// What people read.
        pub name: String => "name" default,
        /// Whether it can be chosen.
        pub active: bool => "active" or true,
        /// How many reels it sent.
        pub reels_count: u32 => "reels_count" or 0,
    }
}

impl State {
    /// An empty lobby.
    pub(crate) fn new(room_code: RoomCode) -> State {
        State {
            room_code,
            phase: Phase::Lobby,
            lobby: Lobby::default(),
            game: None,
            scores: Points::default(),
            plan: None,
            locked: None,
            bans: None,
            extra: Default::default(),
        }
    }

    /// A player.
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

    /// Banned devices.
    pub fn bans(&self) -> &[Ban] {
        self.bans.as_ref().map_or(&[], |bans| &bans.0)
    }

    /// Whether a device may not come back.
    pub fn is_banned(&self, device: &DeviceId) -> bool {
        self.bans().iter().any(|ban| ban.device_id == *device)
    }

    /// Players that take part.
    pub fn active_players(&self) -> impl Iterator<Item = &Player> {
        self.lobby.players.iter().filter(|player| player.active)
    }

    /// When the open vote closes, once the master has said so.
    pub fn closes_at(&self) -> Option<i64> {
        self.game.as_ref()?.closes_at
    }

    /// Senders that can be chosen.
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
        let state = State::new(RoomCode::new("AB23CD").unwrap());
        Json::<State>::encode(&state, &mut out).unwrap();
        let expected = concat!(
            r#"{"room_code":"AB23CD","phase":"lobby","lobby":{"players":[],"senders":[]},"#,
            r#""game":null,"scores":{}}"#
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
