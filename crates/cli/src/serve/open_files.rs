//! The limit of open files: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections, if half of all are not less: the journal, its rewrite, the store's connections, the log.
const RESERVED: u64 = 64;
/// Connections that there may be in any case.
const CONNECTIONS_MIN: usize = 8;

/// Raises the soft limit to the hard one, and says how many files may be open; `None` = any number.
pub(super) fn raise() -> Option<u64> {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: found.maximum, maximum: found.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => found.maximum,
        Err(_) => found.current,
    }
}

/// How many connections there may be, of those that were asked for.
pub(super) fn connections(asked: usize, files: Option<u64>) -> usize {
    let most = files.and_then(|files| usize::try_from(files - RESERVED.min(files / 2)).ok());
    asked.min(most.unwrap_or(usize::MAX).max(CONNECTIONS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_all_else() {
        assert_eq!(connections(20_000, None), 20_000);
        assert_eq!(connections(20_000, Some(1_048_576)), 20_000);
        assert_eq!(connections(20_000, Some(1_024)), 960);
        assert_eq!(connections(20_000, Some(64)), 32);
        assert_eq!(connections(20_000, Some(10)), CONNECTIONS_MIN);
        assert_eq!(connections(5, Some(1_024)), 5);
    }
}
