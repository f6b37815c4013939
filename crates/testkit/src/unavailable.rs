//! Why a server is not available.

use std::fmt;

/// Why a server is not available.
#[derive(Clone, Debug)]
pub enum Unavailable {
    /// The program or library is not on this machine; the text says what was looked for and where.
    /// This is the only kind a test may be skipped for.
    NotFound(String),
    /// It is there, but it did not come up; the text ends with the tail of its log.
    Failed(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(what) => write!(f, "{what}"),
            Self::Failed(why) => write!(f, "did not start: {why}"),
        }
    }
}

impl std::error::Error for Unavailable {}
