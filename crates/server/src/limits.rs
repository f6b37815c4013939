//! Bounds of the server, with their units.

use std::time::Duration;

/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Characters of a request id that a caller may choose.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// Entries of a page of a list, if the caller does not say.
pub const PAGE_ENTRIES_DEFAULT: usize = 100;
/// Entries of a page of a list, about.
pub const PAGE_ENTRIES_MAX: usize = 1_000;
/// Turns of a sweep that one call makes.
pub const SWEEP_TURNS_MAX: u16 = 1_000;
/// Entries that one call of something due handles.
pub const DUE_LIMIT_MAX: usize = 1_000;
/// Time for requests in flight to end after the server was told to.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// Time between two looks at files that may have been replaced: certificate, key, tokens.
pub const FILES_CHECKED_EVERY: Duration = Duration::from_secs(2);
/// Tokens in a file.
pub const TOKENS_MAX: usize = 1_000;
/// Time between two counts of keys by family.
pub const CENSUS_EVERY: Duration = Duration::from_secs(60);
