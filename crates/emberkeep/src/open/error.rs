//! Why a store could not be opened.

use emberkeep_hot::Error;

/// The URLs of hot state that are understood, for errors.
pub(super) const STORES: &str = "memory:, file:DIR, redis://…, valkey://…, redis+cluster://… and, with TLS, rediss://…, \
     valkeys://… and rediss+cluster://…";

/// The URLs of history that are understood.
#[cfg(feature = "history")]
pub(super) const HISTORIES: &str = "file:DIR, cql://… and, with TLS, cqls://…";

/// Why a store or history could not be opened. No text shows more of a URL than its scheme and the names of its options: the rest
/// may hold a password.
///
/// There is no conversion into [`Error`] on purpose. [`Error`] is made of nothing but itself, so the compiler knows the
/// error of a closure wherever `?` passes it on as an [`Error`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text does not begin like a URL.
    #[error("the URL has no scheme; understood are {understood}")]
    NoScheme {
        /// The schemes that are understood here.
        understood: &'static str,
    },
    /// No engine has this scheme.
    #[error("the URL begins with {scheme}:, which is not known; understood are {understood}")]
    UnknownScheme {
        /// The scheme, without its colon.
        scheme: String,
        /// The schemes that are understood here.
        understood: &'static str,
    },
    /// The engine exists, but this program was built without it.
    #[error(
        "the URL begins with {scheme}:, and this program was built without the feature `{feature}` of the crate emberkeep; add it"
    )]
    WithoutFeature {
        /// The scheme, without its colon.
        scheme: String,
        /// The feature of this crate that adds it.
        feature: &'static str,
    },
    /// `file:` without a folder.
    #[error(
        "the URL names no folder; write file:DIR, as in file:data or file:/var/lib/game?durability=always"
    )]
    MissingFolder,
    /// What stands behind the scheme is not of its form.
    #[error("the URL {scheme}: {problem}")]
    Place {
        /// The scheme, without its colon.
        scheme: &'static str,
        /// What is wrong, and what to write.
        problem: &'static str,
    },
    /// An option that the engine does not have.
    #[error("the URL has the option {option:?}, which is not known; {scheme}: understands {known}")]
    UnknownOption {
        /// The name of the option, as it stands in the URL.
        option: String,
        /// The scheme, without its colon.
        scheme: &'static str,
        /// The options that it has.
        known: &'static str,
    },
    /// An option with a value that is not one of its.
    #[error("the option {option}= of the URL: {problem}")]
    WrongOption {
        /// The name of the option.
        option: &'static str,
        /// What is wrong, and which values it takes.
        problem: String,
    },
    /// The URL of a server is malformed, or the engine could not be opened: the folder or the server is not usable.
    #[error(transparent)]
    Store(#[from] Error),
    /// The folder of history is not usable, or its tables are not those that are declared.
    #[cfg(feature = "history")]
    #[error(transparent)]
    History(#[from] emberkeep_history::Error),
    /// The URL of a CQL cluster is malformed, or its keyspace is not usable.
    #[cfg(feature = "cql")]
    #[error(transparent)]
    Cql(#[from] emberkeep_history_cql::ConnectError),
}

impl OpenError {
    /// Whether the same URL may be opened later without a change: the server does not answer now.
    pub fn is_transient(&self) -> bool {
        match self {
            OpenError::Store(error) => matches!(error, Error::Unavailable { .. }),
            #[cfg(feature = "history")]
            OpenError::History(error) => error.is_transient(),
            #[cfg(feature = "cql")]
            OpenError::Cql(error) => error.is_transient(),
            _ => false,
        }
    }
}
