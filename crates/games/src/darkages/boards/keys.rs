//! The key families of the leaderboards. None of them is documented; all of them are rebuilt from history.

use super::model::{BoardUpdate, ShownName};
use crate::darkages::limits::{BOARDS_LOG_MAX, DAY_BOARD_LIFE, DAY_TAKEN_LIFE};
use emberkeep_primitives::leaderboard::Ranked;
use emberkeep_primitives::lease::LeaseRecord;
use emberkeep_primitives::limits::FEED_PAGES_REMEMBERED;
use emberkeep_primitives::log_feed::FeedRecord;
use emberkeep_schema::{
    Hash, Id, Json, Log, Name, Newest, Number, Raw, RefuseAbove, Set, SortedSet, Text, Utf8, family,
    partition,
};

partition! {
    /// All leaderboards: they change together, and are fed by the logs of all shards.
    pub struct Leaderboards = "leaderboards";
}

family! {
    /// The order of a day.
    pub DAY_ORDER = "ember:board:day:{category}:{day}:order" {
        kind: SortedSet<Ranked<i64>>, partition: Leaderboards, parts: (category: Name, day: Name),
        ttl: fixed(DAY_BOARD_LIFE), owner: "leaderboards",
    }
}

family! {
    /// The players of a day.
    pub DAY_PLAYERS = "ember:board:day:{category}:{day}:players" {
        kind: Hash<Id<i64>, Ranked<i64>>, partition: Leaderboards, parts: (category: Name, day: Name),
        ttl: fixed(DAY_BOARD_LIFE), owner: "leaderboards",
    }
}

family! {
    /// Whether the board of a day is being rebuilt.
    pub DAY_SOURCES = "ember:board:day:{category}:{day}:sources" {
        kind: Hash<Utf8, Number<u64>>, partition: Leaderboards, parts: (category: Name, day: Name),
        ttl: fixed(DAY_BOARD_LIFE), owner: "leaderboards",
    }
}

family! {
    /// The scores of a day that were sent to history.
    pub DAY_STORED = "ember:board:day:{category}:{day}:stored" {
        kind: Hash<Id<i64>, Number<i64>>, partition: Leaderboards, parts: (category: Name, day: Name),
        ttl: fixed(DAY_BOARD_LIFE), owner: "leaderboards",
    }
}

family! {
    /// What players scored on a day before its board was restored from history.
    pub DAY_TAKEN = "ember:board:day:{category}:{day}:taken" {
        kind: Hash<Id<i64>, Number<i64>>, partition: Leaderboards, parts: (category: Name, day: Name),
        ttl: fixed(DAY_TAKEN_LIFE), owner: "leaderboards",
    }
}

family! {
    /// What players scored before the board of all time was restored from history.
    pub EVER_TAKEN = "ember:board:ever:{category}:taken" {
        kind: Hash<Id<i64>, Number<i64>>, partition: Leaderboards, parts: (category: Name),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// The order of all time.
    pub EVER_ORDER = "ember:board:ever:{category}:order" {
        kind: SortedSet<Ranked<i64>>, partition: Leaderboards, parts: (category: Name),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// The players of all time.
    pub EVER_PLAYERS = "ember:board:ever:{category}:players" {
        kind: Hash<Id<i64>, Ranked<i64>>, partition: Leaderboards, parts: (category: Name),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// Whether a board of all time is being rebuilt.
    pub EVER_SOURCES = "ember:board:ever:{category}:sources" {
        kind: Hash<Utf8, Number<u64>>, partition: Leaderboards, parts: (category: Name),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// The names that boards show.
    pub BOARD_NAMES = "ember:board:names" {
        kind: Hash<Id<i64>, Json<ShownName>>, partition: Leaderboards, parts: (),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// Which players of which boards changed since they were sent to history.
    pub BOARD_CHANGED = "ember:board:changed" {
        kind: Set<Utf8>, partition: Leaderboards, parts: (), ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// When the boards were restored from history, or rebuilt. Without it nothing of them goes to history; 0 = they are being
    /// rebuilt, and take no scores.
    pub BOARD_BEGUN = "ember:board:begun" {
        kind: Text<Number<i64>>, partition: Leaderboards, parts: (), ttl: persistent, owner: "leaderboards",
        snapshot: never,
    }
}

family! {
    /// The last position of a change that was sent to history.
    pub BOARD_POSITION = "ember:board:position" {
        kind: Text<Number<i64>>, partition: Leaderboards, parts: (), ttl: persistent, owner: "leaderboards",
        snapshot: never,
    }
}

family! {
    /// How far the logs were applied to the boards.
    pub BOARD_FED = "ember:board:fed" {
        kind: Hash<Utf8, Json<FeedRecord>>, partition: Leaderboards, parts: (),
        ttl: persistent, owner: "leaderboards",
        snapshot: never,
    }
}

family! {
    /// The marks of the entries that were applied lately.
    pub BOARD_APPLIED = "ember:log:board-marks" {
        kind: Log<Raw, Newest<FEED_PAGES_REMEMBERED>>, partition: Leaderboards, parts: (),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// Outbox of changes of the boards.
    pub BOARDS_LOG = "ember:log:boards" {
        kind: Log<Json<BoardUpdate>, RefuseAbove<BOARDS_LOG_MAX>>, partition: Leaderboards, parts: (),
        ttl: persistent, owner: "leaderboards",
    }
}

family! {
    /// Which process brings the boards into history.
    pub BOARDS_DRAINER = "ember:board:drainer" {
        kind: Text<Json<LeaseRecord>>, partition: Leaderboards, parts: (), ttl: persistent, owner: "leaderboards",
        snapshot: never,
    }
}
