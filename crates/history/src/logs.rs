//! What the consumer of a log stores beside the history that it writes: its position.

use crate::contract::Applied;
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::LOG_TEXT_BYTES_MAX;
use crate::log_tables::{DeadLetter, LogPosition};
use crate::validate;

/// How far a consumer has come in a log. Opaque to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// The incarnation that the log had.
    pub incarnation: String,
    /// The last sequence that was drained; below 2^63.
    pub sequence: u64,
    /// The mark of that entry.
    pub mark: String,
}

impl LogState {
    fn into_row(self, log: &str) -> Result<LogPosition> {
        let LogState { incarnation, sequence, mark } = self;
        let texts = [("log", log), ("incarnation", &incarnation), ("mark", &mark)];
        texts.into_iter().try_for_each(|(name, text)| check_text(name, text))?;
        Ok(LogPosition { log: log.to_owned(), sequence: signed(sequence)?, incarnation, mark })
    }

    fn from_row(row: LogPosition) -> LogState {
        let LogPosition { incarnation, sequence, mark, .. } = row;
        LogState { incarnation, sequence: sequence as u64, mark }
    }
}

fn check_text(name: &str, text: &str) -> Result<()> {
    validate::limit(format!("the {name} of a log's state"), text.len(), "bytes", LOG_TEXT_BYTES_MAX)
}

fn signed(sequence: u64) -> Result<i64> {
    let problem = || Error::invalid("sequence of a log", format!("{sequence}, expected one below 2^63"));
    i64::try_from(sequence).map_err(|_| problem())
}

/// Begins the names of what is delivered from spools; the source of the spool follows.
pub(crate) const SPOOL_LOGS: &str = "spool/";
/// Has a dead letter, without an entry, for each source of a spool that has some.
pub(crate) const SPOOLS_LOG: &str = "spool";

impl History {
    /// The logs under which dead letters of spools stand, one for each source that has some.
    pub async fn spools_with_dead_letters(&self) -> Result<Vec<String>> {
        let query = self.range(DeadLetter::partition(SPOOLS_LOG.to_owned()));
        let (mut logs, mut after) = (Vec::new(), None);
        loop {
            let page = query.page(after.as_ref()).await?;
            after = page.next.clone();
            let name = |letter: DeadLetter| format!("{SPOOL_LOGS}{}", letter.incarnation);
            logs.extend(page.into_rows()?.into_iter().map(name));
            if after.is_none() {
                return Ok(logs);
            }
        }
    }

    /// How far the consumer of a log has come; `None` if it has not advanced yet.
    pub async fn acknowledged(&self, log: &str) -> Result<Option<LogState>> {
        check_text("log", log)?;
        let row = self.get(LogPosition::key(log.to_owned())).await?;
        Ok(row.map(LogState::from_row))
    }

    /// Moves the consumer of a log from `expected` to `next`; `false` = another consumer was there first, and the
    /// position is not `expected`.
    pub async fn advance(&self, log: &str, expected: Option<LogState>, next: LogState) -> Result<bool> {
        let next = next.into_row(log)?;
        let expected = expected.map(|expected| expected.into_row(log)).transpose()?;
        let applied = match expected {
            None => self.insert_if_absent(next).await?,
            Some(expected) => self.replace_if(expected, next).await?,
        };
        Ok(applied == Applied::Yes)
    }
}
