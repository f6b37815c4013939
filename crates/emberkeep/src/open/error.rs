//! Why a store could not be opened.

use emberkeep_hot::Error;

/// The URLs that are understood, for errors.
const UNDERSTOOD: &str = "understood are memory:, file:DIR, redis://…, valkey://…, redis+cluster://… and, with TLS, rediss://…, \
     valkeys://… and rediss+cluster://…";

/// Why a store could not be opened. No text shows more of a URL than its scheme and the names of its options: the rest
/// may hold a password.
///
/// There is no conversion into [`Error`] on purpose. [`Error`] is made of nothing but itself, so the compiler knows the
/// error of a closure wherever `?` passes it on as an [`Error`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text does not begin like a URL.
    #[error("the store URL has no scheme; {UNDERSTOOD}")]
    NoScheme,
    /// No engine has this scheme.
    #[error("the store URL begins with {scheme}:, which is not known; {UNDERSTOOD}")]
    UnknownScheme {
        /// The scheme, without its colon.
        scheme: String,
    },
    /// The engine exists, but this program was built without it.
    #[error(
        "the store URL begins with {scheme}:, and this program was built without the feature `redis` of the crate emberkeep; add it"
    )]
    WithoutRedis {
        /// The scheme, without its colon.
        scheme: String,
    },
    /// `file:` without a folder.
    #[error(
        "the store URL names no folder; write file:DIR, as in file:data or file:/var/lib/game?durability=always"
    )]
    MissingFolder,
    /// What stands behind the scheme is not of its form.
    #[error("the store URL {scheme}: {problem}")]
    Place {
        /// The scheme, without its colon.
        scheme: &'static str,
        /// What is wrong, and what to write.
        problem: &'static str,
    },
    /// An option that the engine does not have.
    #[error("the store URL has the option {option:?}, which is not known; {scheme}: understands {known}")]
    UnknownOption {
        /// The option's name.
        option: String,
        /// The scheme, without its colon.
        scheme: &'static str,
        /// The options that it has.
        known: &'static str,
    },
    /// An option with a value that is not one of its.
    #[error("the option {option}= of the store URL: {problem}")]
    WrongOption {
        /// The option's name.
        option: &'static str,
        /// What is wrong, and which values it takes.
        problem: String,
    },
    /// The URL of a server is malformed, or the engine could not be opened: the folder or the server is not usable.
    #[error(transparent)]
    Store(#[from] Error),
}
