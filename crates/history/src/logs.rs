//! What the consumer of a log stores beside the history that it writes: its position, and what it has drained.

use crate::contract::Applied;
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{DRAINED_BYTES_MAX, DRAINED_SEQUENCES_MAX, LOG_TEXT_BYTES_MAX, PAGE_ROWS_MAX};
use crate::log_tables::{DrainedMarksRow, LogPosition};
use crate::validate;
use std::ops::RangeInclusive;

/// How far a consumer has come in a log. Opaque to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// The random incarnation that the log had.
    pub incarnation: String,
    /// The last sequence that was drained; below 2^63.
    pub sequence: u64,
    /// The mark of that entry.
    pub mark: String,
}

/// The marks of the entries that one advance drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainedMarks {
    /// The incarnation that the log had.
    pub incarnation: String,
    /// The sequences.
    pub sequences: RangeInclusive<u64>,
    /// The marks, in a form of the consumer's own.
    pub marks: Vec<u8>,
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

impl DrainedMarks {
    fn into_row(self, log: &str) -> Result<DrainedMarksRow> {
        let (first, last) = (*self.sequences.start(), *self.sequences.end());
        if first == 0 || first > last || last - first >= DRAINED_SEQUENCES_MAX {
            let problem =
                format!("sequences {first} to {last}, expected 1 to {DRAINED_SEQUENCES_MAX} from 1 on");
            return Err(Error::invalid("marks of drained entries", problem));
        }
        check_text("log", log)?;
        check_text("incarnation", &self.incarnation)?;
        validate::limit("the marks of an advance".into(), self.marks.len(), "bytes", DRAINED_BYTES_MAX)?;
        Ok(DrainedMarksRow {
            log: log.to_owned(),
            first_sequence: signed(first)?,
            incarnation: self.incarnation,
            last_sequence: signed(last)?,
            marks: self.marks,
        })
    }

    fn from_row(row: DrainedMarksRow) -> DrainedMarks {
        let DrainedMarksRow { first_sequence, incarnation, last_sequence, marks, .. } = row;
        DrainedMarks { incarnation, sequences: first_sequence as u64..=last_sequence as u64, marks }
    }
}

fn check_text(name: &str, text: &str) -> Result<()> {
    validate::limit(format!("the {name} of a log's state"), text.len(), "bytes", LOG_TEXT_BYTES_MAX)
}

fn signed(sequence: u64) -> Result<i64> {
    let problem = || Error::invalid("sequence of a log", format!("{sequence}, expected one below 2^63"));
    i64::try_from(sequence).map_err(|_| problem())
}

impl History {
    /// How far the consumer of a log has come; `None` if it has not advanced yet.
    pub async fn acknowledged(&self, log: &str) -> Result<Option<LogState>> {
        check_text("log", log)?;
        let row = self.get(LogPosition::key(log.to_owned())).await?;
        Ok(row.map(LogState::from_row))
    }

    /// Moves the consumer of a log from `expected` to `next`; `false` = another consumer was there first, and the
    /// position is not `expected`. `drained` is stored before the position: it is there if the position is, and
    /// storing it without the position does no harm.
    pub async fn advance(
        &self,
        log: &str,
        expected: Option<LogState>,
        next: LogState,
        drained: Option<DrainedMarks>,
    ) -> Result<bool> {
        let next = next.into_row(log)?;
        let expected = expected.map(|expected| expected.into_row(log)).transpose()?;
        if let Some(drained) = drained {
            let row = drained.into_row(log)?;
            let version = row.last_sequence;
            self.upsert_at(row, version).await?;
        }
        let applied = match expected {
            None => self.insert_if_absent(next).await?,
            Some(expected) => self.replace_if(expected, next).await?,
        };
        Ok(applied == Applied::Yes)
    }

    /// What was drained of a log among these sequences, of every incarnation, by first sequence. It is kept for seven
    /// days. A part may begin before and end after the range.
    pub async fn drained_marks(
        &self,
        log: &str,
        sequences: RangeInclusive<u64>,
    ) -> Result<Vec<DrainedMarks>> {
        check_text("log", log)?;
        let (first, last) = (signed(*sequences.start())?, signed(*sequences.end())?);
        // A part that begins before the range may reach into it.
        let from = first.saturating_sub(DRAINED_SEQUENCES_MAX as i64 - 1).max(0);
        let query = self.range(DrainedMarksRow::partition(log)).between(from..=last).rows_max(PAGE_ROWS_MAX);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = query.page(after.as_ref()).await?;
            after = page.next.clone();
            let rows = page.into_rows()?.into_iter().filter(|row| row.last_sequence >= first);
            found.extend(rows.map(DrainedMarks::from_row));
            if after.is_none() {
                return Ok(found);
            }
        }
    }
}
