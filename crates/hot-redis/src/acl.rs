//! Which commands our user may certainly run: asked before their first use, and again after a while.
//!
//! Redis does not undo a script, so a command that is refused after the first write would leave a transaction half-written.
//! The script can ask the server beforehand, which costs about a microsecond per command: too much for every commit.

use crate::commit::batch::group::Group;
use crate::limits::ACL_CHECK_VALID;
use crate::script::write_name;
use std::time::Instant;

/// What was proven lately.
#[derive(Default)]
pub(crate) struct VerifiedCommands {
    proven: Vec<&'static str>,
    until: Option<Instant>,
}

/// Stands for the commands that append to the log.
const LOG: &str = "the log's commands";

impl VerifiedCommands {
    /// Whether the commit of these groups must ask. A channel may be forbidden by its name: messages always ask.
    pub(crate) fn must_be_checked(&mut self, groups: &[Group], now: Instant) -> bool {
        if self.until.is_none_or(|until| now >= until) {
            self.proven.clear();
            self.until = Some(now + ACL_CHECK_VALID);
        }
        groups.iter().any(|group| {
            !group.effects.messages.is_empty() || commands(group).any(|name| !self.proven.contains(&name))
        })
    }

    /// The group passed a check.
    pub(crate) fn passed(&mut self, group: &Group) {
        for name in commands(group) {
            if !self.proven.contains(&name) {
                self.proven.push(name);
            }
        }
    }

    /// Another server, another user: nothing is proven any more.
    pub(crate) fn forget(&mut self) {
        self.until = None;
    }
}

fn commands(group: &Group) -> impl Iterator<Item = &'static str> {
    let log = (!group.effects.log.is_empty()).then_some(LOG);
    group.effects.writes.iter().map(|(_, write)| write_name(write)).chain(log)
}
