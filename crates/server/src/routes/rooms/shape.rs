//! What a room shows, for the document. The views themselves are written by the game; a test compares the names.
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where a room is.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// People come together.
    Lobby,
    /// Rounds are played.
    Game,
    /// The last round is over.
    GameOver,
}

/// A device that is in a room.
#[derive(ToSchema)]
pub(super) struct Joined {
    /// The room.
    #[schema(example = "AB23CD")]
    room_code: String,
    /// The version of the protocol that both speak.
    #[schema(example = 1)]
    protocol_version: u32,
    /// Where the room is.
    phase: Phase,
    /// The player that the device has from before.
    my_player_id: Option<String>,
    /// The newest event of the room's log.
    sequence: u64,
    /// With it the device proves itself, in `X-Reconnect-ReconnectToken` or in `JOIN_ROOM`.
    #[schema(example = "dGhpcyBpcyBhbiBleGFtcGxlIHRva2Vu")]
    reconnect_token: String,
}

/// The state of a room for a client.
#[derive(ToSchema)]
pub(super) struct PlayerSync {
    /// The room.
    #[schema(example = "AB23CD")]
    room_code: String,
    /// The version of the protocol that it speaks.
    #[schema(example = 1)]
    protocol_version: u32,
    /// When it was created, in milliseconds since 1970.
    created_at: i64,
    /// When it ends, unless it is used before; cut to whole minutes.
    expires_at: i64,
    /// The store's time.
    now: i64,
    /// The newest event of the room's log that this state includes: follow from here.
    sequence: u64,
    /// Where the room is.
    phase: Phase,
    /// Whether devices that have not joined before are refused.
    locked: bool,
    /// All players.
    players_visible: Vec<VisiblePlayer>,
    /// All senders.
    senders_visible: Vec<VisibleSender>,
    /// The player of the device that asks.
    my_player_id: Option<String>,
    /// The game, from its start on.
    game: Option<GameView>,
    /// Points of each player.
    #[schema(example = json!({"ann": 1}))]
    scores: BTreeMap<String, i64>,
    /// When the next thing happens by itself: ask for the state then.
    next_deadline: Option<i64>,
}

/// Whether a device has a player.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum PlayerStatus {
    /// Some device has it.
    Taken,
    /// It can be taken.
    Free,
}

/// A player as everybody sees it.
#[derive(ToSchema)]
struct VisiblePlayer {
    /// Its id.
    #[schema(example = "ann")]
    player_id: String,
    /// The sender that the player is, if it is one.
    sender_id: Option<String>,
    /// What people read.
    #[schema(example = "Ann")]
    name: String,
    /// Whether the player takes part.
    active: bool,
    /// A picture.
    avatar_url: Option<String>,
    /// Whether a device has it.
    status: PlayerStatus,
}

/// A sender as everybody sees it.
#[derive(ToSchema)]
struct VisibleSender {
    /// Its id.
    #[schema(example = "kim")]
    sender_id: String,
    /// What people read.
    #[schema(example = "Kim")]
    name: String,
    /// Whether it can be chosen.
    active: bool,
    /// How many reels it sent.
    reels_count: u32,
}

/// What the game waits for.
#[derive(ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum GameStatus {
    /// The master opens the next item.
    Idle,
    /// The players vote.
    Vote,
    /// The vote is over; the master shows the result.
    RevealWait,
    /// The round is over; the master starts the next one.
    RoundScore,
}

/// The game as everybody sees it.
#[derive(ToSchema)]
struct GameView {
    /// What it waits for.
    status: GameStatus,
    /// The round; none if the game is over.
    round_id: Option<String>,
    /// Which round, counted from 0.
    round_index: u32,
    /// How many rounds there are.
    rounds: u32,
    /// Which item of the round, counted from 0; as many as the round has once all are left behind.
    item_index: u32,
    /// How many items the round has.
    items: u32,
    /// The item, from its opening until it is left behind.
    item: Option<CurrentItem>,
    /// When the vote closes, once the master has said so.
    closes_at: Option<i64>,
    /// Whether the player of the device that asks has voted on the item.
    voted: bool,
    /// The result that was shown last.
    revealed: Option<Revealed>,
    /// While a round's points are shown: of this round. After the game: of all rounds.
    ranking: Option<Vec<Ranked>>,
}

/// The item that is on.
#[derive(ToSchema)]
struct CurrentItem {
    /// Its id.
    item_id: String,
    /// Where the reel is.
    reel_url: String,
    /// How many senders a player may choose.
    k: u32,
    /// Senders that can be chosen.
    selectable_sender_ids: Vec<String>,
}

/// A place in a ranking. Who has as many points has the same rank.
#[derive(ToSchema)]
struct Ranked {
    /// 1 is the best.
    rank: u32,
    /// The player.
    player_id: String,
    /// Its points.
    score: i64,
}

/// The result of an item.
#[derive(ToSchema)]
struct Revealed {
    /// The round.
    round_id: String,
    /// The item.
    item_id: String,
    /// Who sent it.
    true_sender_ids: Vec<String>,
    /// Each player that voted.
    players: Vec<RevealedPlayer>,
}

/// What came of one player's vote.
#[derive(ToSchema)]
struct RevealedPlayer {
    /// The player.
    player_id: String,
    /// Whom the player chose.
    selections: Vec<String>,
    /// One for each that is right.
    points: i64,
}

/// The state of a room for its master: what everybody sees, and more.
#[derive(ToSchema, Serialize)]
pub(super) struct MasterSync {
    /// What everybody sees.
    #[serde(flatten)]
    #[schema(value_type = PlayerSync)]
    visible: (),
    /// All players.
    #[schema(value_type = Vec<VisiblePlayer>)]
    players_all: (),
    /// All senders.
    #[schema(value_type = Vec<VisibleSender>)]
    senders_all: (),
    /// Whether the room was set up.
    is_set_up: bool,
    /// Banned devices, by the player that each had.
    #[schema(value_type = Vec<VisibleBan>)]
    bans: (),
    /// While a vote is open: who has voted.
    #[schema(nullable = false)]
    votes_received_player_ids: Option<Vec<String>>,
    /// From the end of a vote until its item is left behind: what came of it.
    #[schema(value_type = Option<Revealed>, nullable = false)]
    current_vote_results: (),
    /// The item that can be opened now.
    #[schema(value_type = Option<NextItem>, nullable = false)]
    next_item: (),
}

/// A banned device.
#[derive(ToSchema)]
struct VisibleBan {
    /// The id with which the ban is lifted.
    #[schema(example = "b1")]
    ban_id: String,
    /// The player that the device had.
    player_id: String,
    /// The name of the player at that time.
    name: String,
    /// When it was banned, in milliseconds since 1970.
    at: i64,
}

/// An item that was not opened yet.
#[derive(ToSchema)]
struct NextItem {
    /// Its round.
    round_id: String,
    /// Its id.
    item_id: String,
    /// Where the reel is.
    reel_url: String,
    /// How many senders a player may choose.
    k: u32,
}

/// Events from a place on.
#[derive(ToSchema)]
pub(super) struct EventPage {
    /// In order. Those that the caller may not know are left out.
    events: Vec<Recorded>,
    /// The newest sequence, whether or not it is on this page.
    last: u64,
    /// 0 if the page begins right after the asked place. Otherwise so many events are missing in between, or the room has
    /// so many less than the caller knows of: ask for the state, and go on from its sequence.
    missed: u64,
    /// When the room was created: after another time it is another room of the same code.
    created_at: i64,
}

/// An event in its place, with fields of its own beside these.
#[derive(ToSchema)]
struct Recorded {
    /// Its place in the room's log; the first is 1.
    sequence: u64,
    /// When it happened, in milliseconds since 1970.
    at: i64,
    /// What happened.
    #[schema(example = "player_taken")]
    r#type: String,
}
