//! Every limit of this crate. Units and qualifiers are last in the names; relations are asserted at compile
//! time.

/// Longest text of one key part. Long enough for any id or display name, short enough for a log line.
pub const PART_BYTES_MAX: usize = 256;

/// Most parts that a key may have besides its partition.
pub const PARTS_MAX: usize = 8;

/// Longest key as its family's pattern gives it, without the prefix and the Cluster tag.
/// A family that could exceed it does not compile, so building a key cannot fail.
pub const KEY_BYTES_MAX: usize = 1024;

/// Longest prefix of a [`KeyLayout`](crate::KeyLayout).
pub const PREFIX_BYTES_MAX: usize = 64;

/// Longest key as it reaches the server: prefix, `{partition}`, pattern.
pub const LAID_OUT_KEY_BYTES_MAX: usize = PREFIX_BYTES_MAX + PART_BYTES_MAX + "{}".len() + KEY_BYTES_MAX;

/// Longest name of a service.
pub const SERVICE_NAME_BYTES_MAX: usize = 64;

/// Bytes of parts that a key holds without touching the heap: the widest document family
/// (a reactor's cooldown: a UUID and six numbers) fits with typical values.
pub const KEY_BYTES_INLINE: usize = 64;

/// Longest description of a problem that an error carries.
pub const PROBLEM_BYTES_MAX: usize = 160;

/// Longest name of a history table or column; Cassandra takes 48 characters for a table.
pub const TABLE_NAME_BYTES_MAX: usize = 48;

/// Longest TTL of a history table: 20 years of 365 days, the limit of CQL.
pub const TTL_MS_MAX: i64 = 630_720_000_000;

/// Days from the deprecation of a column to the first one on which it may be removed.
pub const DEPRECATED_DAYS: i32 = 30;

/// Most days that one query of a history table may span: a year and a day.
pub const DAYS_MAX: usize = 366;

const _: () = {
    // Key boundaries are kept as u16.
    assert!(PARTS_MAX * PART_BYTES_MAX <= u16::MAX as usize);
    assert!(KEY_BYTES_INLINE <= KEY_BYTES_MAX);
    assert!(PART_BYTES_MAX <= KEY_BYTES_MAX);
};
