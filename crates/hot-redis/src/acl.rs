//! Which commands our user certainly may run: checked before their first use, and again after
//! [`ACL_CHECK_VALID`].
//!
//! Redis does not undo a script, so a command that is refused after the first write would leave a transaction
//! half-written. The script can check the ACL beforehand, which costs about a microsecond per command: too
//! much for every commit.

use crate::limits::ACL_CHECK_VALID;
use crate::script::{has_early_deadline, write_name};
use emberkeep_hot::command::{Effects, Write};
use std::time::Instant;

/// Commands that passed a check lately.
#[derive(Default)]
pub(crate) struct VerifiedCommands {
    names: Vec<&'static str>,
    valid_until: Option<Instant>,
}

/// Stands for the commands that append to the log.
const LOG: &str = "the log's commands";

impl VerifiedCommands {
    /// Whether a commit with these effects must check the ACL. Messages always must: an ACL can forbid a
    /// channel by name.
    pub(crate) fn must_be_checked<'a>(
        &mut self,
        mut commit: impl Iterator<Item = &'a Effects>,
        now: Instant,
    ) -> bool {
        if self.valid_until.is_none_or(|until| now >= until) {
            self.names.clear();
            self.valid_until = Some(now + ACL_CHECK_VALID);
        }
        commit.any(|effects| {
            !effects.messages.is_empty() || commands(effects).any(|name| !self.names.contains(&name))
        })
    }

    /// These effects passed a check.
    pub(crate) fn add(&mut self, effects: &Effects) {
        for name in commands(effects) {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// Another server may have another ACL.
    pub(crate) fn clear(&mut self) {
        self.valid_until = None;
    }
}

fn commands(effects: &Effects) -> impl Iterator<Item = &'static str> {
    let log = (!effects.log.is_empty()).then_some(LOG);
    let mut of_keys = effects.writes.chunk_by(|(key, _), (next, _)| key == next);
    let settled = of_keys.any(has_early_deadline).then_some("PEXPIRETIME");
    let compares = |(_, write): &(_, Write)| matches!(write, Write::SetIfGreater(..));
    let compared = effects.writes.iter().any(compares).then_some("GET");
    effects.writes.iter().map(|(_, write)| write_name(write)).chain(log).chain(settled).chain(compared)
}
