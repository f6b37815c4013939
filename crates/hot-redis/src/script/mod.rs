//! The scripts, and both directions of their protocol: requests as arguments, answers back as replies.
//!
//! `commit.lua` can do whatever a transaction can; `compare_and_set.lua` serves the commonest shape faster. Their layouts
//! are written down at the top of each.

mod answer;
mod commit_request;
mod compare_and_set;
mod early_deadline;
mod inline;
mod layout;
mod reply;
mod request;
mod spelling;
mod words;

use inline::inline_constants;

pub(crate) use answer::{Answer, GroupAnswer, Status, text, time_us};
pub(crate) use commit_request::{CommitRequest, GroupRequest, in_order};
pub(crate) use compare_and_set::{CompareAndSet, CompareAndSetRequest};
pub(crate) use early_deadline::has_early_deadline;
#[cfg(test)]
pub(crate) use early_deadline::postpone;
pub(crate) use reply::reply;
pub(crate) use request::{Header, Request};
pub(crate) use spelling::write_name;

/// A script and its SHA-1 digest, by which the server finds it.
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) sha: String,
}

impl Script {
    fn new(text: String) -> Script {
        let sha = sha1_smol::Sha1::from(&text).digest().to_string();
        Script { text, sha }
    }
}

/// All scripts of the engine.
pub(crate) struct Scripts {
    pub(crate) commit: Script,
    /// The same with `allow-oom`, for commits that only give memory back.
    pub(crate) commit_without_memory: Script,
    pub(crate) compare_and_set: Script,
    pub(crate) release_leases: Script,
    pub(crate) close_sequence: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        let commit = inline_constants(include_str!("commit.lua"));
        Scripts {
            commit_without_memory: Script::new(format!("#!lua flags=allow-oom\n{commit}")),
            commit: Script::new(commit),
            compare_and_set: Script::new(inline_constants(include_str!("compare_and_set.lua"))),
            release_leases: Script::new(include_str!("release_leases.lua").to_owned()),
            close_sequence: Script::new(include_str!("close_sequence.lua").to_owned()),
        }
    }
}
