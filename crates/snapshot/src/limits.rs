//! Every limit of this crate.

/// Bytes of keys in one block of a snapshot, before it is written; one key may be larger.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// Largest block that is read: what one key of the largest content may take, with room.
pub const BLOCK_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Keys that one transaction of a restore writes.
pub const RESTORE_KEYS_TOGETHER: usize = 100;
/// Write commands that one transaction of a restore makes, beside those of the key that reaches the limit.
pub const RESTORE_WRITES_TOGETHER: usize = 400;
/// Bytes that one transaction of a restore writes, beside those of the key that reaches the limit.
pub const RESTORE_BYTES_TOGETHER: usize = 256 * 1024;
/// A key of more bytes is written by transactions of its own, in pieces.
pub const RESTORE_KEY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Keys that a comparison names.
pub const EXAMPLES_MAX: usize = 20;
/// Snapshots that the refusal of an ambiguous name lists.
pub const CANDIDATES_MAX: usize = 10;
/// Longest name of a snapshot, in bytes.
pub const NAME_BYTES_MAX: usize = 100;

const _: () = assert!(RESTORE_WRITES_TOGETHER < emberkeep_hot::limits::TRANSACTION_WRITES_MAX / 2);
const _: () = assert!(
    RESTORE_BYTES_TOGETHER + 2 * RESTORE_KEY_BYTES_MAX <= emberkeep_hot::limits::TRANSACTION_BYTES_MAX
);
