//! Declared families for the typed cases: one of each kind, and one of each TTL policy.

use emberkeep_schema::{
    Bool, Channel, Float, Hash, Id, Json, List, Log, Name, Newest, Number, Raw, RefuseAbove, Set, SortedSet,
    Text, Utf8, family, partition,
};
use serde::{Deserialize, Serialize};

/// Life of the keys of [`LEASE`] and [`LEASED_SET`]: from the first write.
pub const FIXED_MS: i64 = 60_000;
/// Entries that [`RECENT`] and [`ROOM_LOG`] keep.
pub const RECENT_MAX: usize = 4;
/// Entries that [`OUTBOX`] takes.
pub const OUTBOX_MAX: usize = 3;
/// Life of the keys of [`SEEN`] and [`SEEN_FIELDS`]: from the last write.
pub const REFRESH_MS: i64 = 90_000;
/// Life of the keys of [`SPARK`]: short enough to be waited for.
pub const SPARK_MS: i64 = 25;

partition! {
    /// A world of the suite: one per case.
    pub struct World(Name) as "world";
}

/// A small document, stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monster {
    /// A number that cases change.
    pub hp: i64,
    /// A text that cases change.
    pub name: String,
}

family! {
    /// A string of plain text.
    pub NOTE = "c:note:{world}:{id}" {
        kind: Text<Utf8>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A string of JSON.
    pub MONSTER = "c:monster:{world}:{id}" {
        kind: Text<Json<Monster>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A string with a decimal integer.
    pub COUNT = "c:count:{world}:{id}" {
        kind: Text<Number<i64>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A string with a decimal number.
    pub RATE = "c:rate:{world}:{id}" {
        kind: Text<Float<f64>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A string with a boolean.
    pub OPEN = "c:open:{world}:{id}" {
        kind: Text<Bool>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A hash of numbers.
    pub SHEET = "c:sheet:{world}:{id}" {
        kind: Hash<Utf8, Number<i64>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A set of ids.
    pub CREW = "c:crew:{world}:{id}" {
        kind: Set<Id<u32>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A sorted set of names.
    pub BOARD = "c:board:{world}:{id}" {
        kind: SortedSet<Utf8>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A list of texts.
    pub QUEUE = "c:queue:{world}:{id}" {
        kind: List<Utf8>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A channel, which stores nothing.
    pub NEWS = "c:news:{world}:{id}" {
        kind: Channel<Utf8>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// Text that lives from its first write.
    pub LEASE = "c:lease:{world}:{id}" {
        kind: Text<Number<i64>>, partition: World, parts: (id: u32), ttl: fixed(FIXED_MS), owner: "suite"
    }
}
family! {
    /// A set that lives from its first write.
    pub LEASED_SET = "c:leased:{world}:{id}" {
        kind: Set<Id<u32>>, partition: World, parts: (id: u32), ttl: fixed(FIXED_MS), owner: "suite"
    }
}
family! {
    /// A set that lives shortly from its first write.
    pub SPARK = "c:spark:{world}:{id}" {
        kind: Set<Id<u32>>, partition: World, parts: (id: u32), ttl: fixed(SPARK_MS), owner: "suite"
    }
}
family! {
    /// Text that lives from its last write.
    pub SEEN = "c:seen:{world}:{id}" {
        kind: Text<Number<i64>>, partition: World, parts: (id: u32), ttl: refresh(REFRESH_MS), owner: "suite"
    }
}
family! {
    /// Text with a time, of which the newest stays.
    pub PLACE = "c:place:{world}:{id}" {
        kind: Text<Utf8>, partition: World, parts: (id: u32), ttl: refresh(REFRESH_MS), owner: "suite"
    }
}
family! {
    /// A hash that lives from its last write.
    pub SEEN_FIELDS = "c:seen-fields:{world}:{id}" {
        kind: Hash<Utf8, Number<i64>>, partition: World, parts: (id: u32), ttl: refresh(REFRESH_MS), owner: "suite"
    }
}
family! {
    /// Text whose life each write gives.
    pub TOKEN = "c:token:{world}:{id}" {
        kind: Text<Utf8>, partition: World, parts: (id: u32), ttl: given, owner: "suite"
    }
}
family! {
    /// A hash whose life each write gives.
    pub PLEDGE = "c:pledge:{world}:{id}" {
        kind: Hash<Utf8, Number<i64>>, partition: World, parts: (id: u32), ttl: given, owner: "suite"
    }
}
family! {
    /// A set whose life each write gives.
    pub PARTY = "c:party:{world}:{id}" {
        kind: Set<Id<u32>>, partition: World, parts: (id: u32), ttl: given, owner: "suite"
    }
}
family! {
    /// A log that keeps more than any case appends.
    pub EVENTS = "log:c:{world}:events:{id}" {
        kind: Log<Utf8, Newest<100_000>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A log of any bytes.
    pub BYTES = "log:c:{world}:bytes:{id}" {
        kind: Log<Raw, Newest<100_000>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A log of numbers, which not every text is.
    pub NUMBERS = "log:c:{world}:numbers:{id}" {
        kind: Log<Number<i64>, Newest<100_000>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A log that drops its oldest entries.
    pub RECENT = "log:c:{world}:recent:{id}" {
        kind: Log<Utf8, Newest<RECENT_MAX>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A log that refuses entries when it is full.
    pub OUTBOX = "log:c:{world}:outbox:{id}" {
        kind: Log<Utf8, RefuseAbove<OUTBOX_MAX>>, partition: World, parts: (id: u32), ttl: persistent, owner: "suite"
    }
}
family! {
    /// A log whose end each entry gives.
    pub ROOM_LOG = "ember:log:c:{world}:room:{id}" {
        kind: Log<Utf8, Newest<RECENT_MAX>>, partition: World, parts: (id: u32), ttl: given, owner: "suite"
    }
}
family! {
    /// A log that lives from its first entry.
    pub FIXED_LOG = "log:c:{world}:fixed:{id}" {
        kind: Log<Utf8, Newest<100>>, partition: World, parts: (id: u32), ttl: fixed(FIXED_MS), owner: "suite"
    }
}
family! {
    /// A log that lives from its last entry.
    pub REFRESHED_LOG = "log:c:{world}:refreshed:{id}" {
        kind: Log<Utf8, Newest<100>>, partition: World, parts: (id: u32), ttl: refresh(REFRESH_MS), owner: "suite"
    }
}
