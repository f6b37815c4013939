//! The answer of the commit script, read into types.

use super::layout::{group, status};
use super::spelling::kind_found;
use emberkeep_hot::command::KindFound;
use emberkeep_hot::limits::DEADLINE_MS_MAX;
use redis::Value;

/// The script's answer to one call.
pub(crate) struct Answer {
    /// The server's time in microseconds since 1970; `None` if the request did not ask for it.
    pub(crate) time_us: Option<i64>,
    pub(crate) status: Status,
    pub(crate) groups: Vec<GroupAnswer>,
    pub(crate) fetched: Vec<Value>,
    /// Our user may declare keys to a script that it may not write, so a check of a command says nothing about the
    /// next key.
    pub(crate) is_restricted: bool,
}

pub(crate) enum Status {
    Done,
    /// The estimate of the server's time was off by more than the allowance; nothing was executed.
    ClocksDiffer,
    /// The commit may be a late copy of one that was given up; nothing was executed.
    SequenceClosed,
    /// A write of this group, counted from 1, failed after others were made.
    Partial {
        group: usize,
        message: String,
    },
}

pub(crate) enum GroupAnswer {
    Committed,
    /// Another process changed something that it read; the replies to all of its reads.
    Stale(Vec<Value>),
    /// Another process has the lease on a key that it writes.
    Leased,
    /// The type that its requirement of this number, counted from 0, does not allow.
    WrongType {
        requirement: usize,
        found: KindFound,
    },
    /// A number that the group's increments would take out of 64 bits.
    Overflow {
        requirement: usize,
        value: i64,
    },
    /// The log that its entry of this number, counted from 0, is for has no room.
    LogFull {
        entry: usize,
    },
    /// The last element of that log is not an entry.
    LogCorrupt {
        entry: usize,
    },
    /// A group before it failed after its first write, so this one was not begun.
    NotBegun,
    /// Our user may not run this command.
    Forbidden {
        command: String,
    },
}

impl Answer {
    /// Whether a group was committed.
    pub(crate) fn is_committed(&self) -> bool {
        matches!(self.status, Status::Done) && self.groups.iter().any(|g| matches!(g, GroupAnswer::Committed))
    }

    /// The short answer: so many groups, all of them committed.
    fn all_committed(groups: usize) -> Answer {
        let groups = (0..groups).map(|_| GroupAnswer::Committed).collect();
        Answer { time_us: None, status: Status::Done, groups, fetched: vec![], is_restricted: false }
    }

    /// Parses the answer to a call of so many groups; `None` when it has another shape.
    pub(crate) fn parse(value: Value, groups_sent: usize) -> Option<Answer> {
        let mut parts = match value {
            Value::Array(parts) => parts,
            Value::Int(groups) => {
                let groups = usize::try_from(groups).ok().filter(|groups| *groups == groups_sent)?;
                return Some(Answer::all_committed(groups));
            }
            _ => return None,
        };
        let is_restricted = parts.len() == 5 && matches!(parts.pop(), Some(Value::Int(1)));
        let [time, status, groups, fetched]: [Value; 4] = parts.try_into().ok()?;
        let Value::Int(time) = time else { return None };
        let status = match status {
            Value::Int(status::DONE) => Status::Done,
            Value::Int(status::CLOCKS_DIFFER) => Status::ClocksDiffer,
            Value::Int(status::SEQUENCE_CLOSED) => Status::SequenceClosed,
            Value::Array(detail) => match &detail[..] {
                [Value::Int(status::PARTIAL), Value::Int(group), message] => {
                    Status::Partial { group: usize::try_from(*group).ok()?, message: text(message) }
                }
                _ => return None,
            },
            _ => return None,
        };
        let groups = array(groups)?.into_iter().map(group_answer).collect::<Option<Vec<_>>>()?;
        if matches!(status, Status::Done | Status::Partial { .. }) && groups.len() != groups_sent {
            return None;
        }
        let time_us = match time {
            0 => None,
            time => Some(possible(time)?),
        };
        Some(Answer { time_us, status, groups, fetched: array(fetched)?, is_restricted })
    }
}

fn group_answer(value: Value) -> Option<GroupAnswer> {
    Some(match value {
        Value::Int(group::COMMITTED) => GroupAnswer::Committed,
        Value::Int(group::LEASED) => GroupAnswer::Leased,
        Value::Int(group::NOT_BEGUN) => GroupAnswer::NotBegun,
        Value::Array(detail) => match &detail[..] {
            [Value::Int(group::STALE), Value::Array(replies)] => GroupAnswer::Stale(replies.clone()),
            [Value::Int(group::WRONG_TYPE), Value::Int(number), found] => {
                let (requirement, found) = (place(*number)?, text(found));
                match found.strip_prefix("overflow:") {
                    Some(value) => GroupAnswer::Overflow { requirement, value: value.parse().ok()? },
                    None => GroupAnswer::WrongType { requirement, found: kind_found(found.as_bytes()) },
                }
            }
            [Value::Int(group::LOG_FULL), Value::Int(number)] => {
                GroupAnswer::LogFull { entry: place(*number)? }
            }
            [Value::Int(group::LOG_CORRUPT), Value::Int(number)] => {
                GroupAnswer::LogCorrupt { entry: place(*number)? }
            }
            [Value::Int(group::NOT_BEGUN), command] => GroupAnswer::Forbidden { command: text(command) },
            _ => return None,
        },
        _ => return None,
    })
}

/// The place of a number that counts from 1.
fn place(number: i64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

/// The answer to TIME, in microseconds since 1970; `None` when it has another shape.
pub(crate) fn time_us(value: &Value) -> Option<i64> {
    let Value::Array(parts) = value else { return None };
    let [seconds, micros] = &parts[..] else { return None };
    let (seconds, micros): (i64, i64) = (text(seconds).parse().ok()?, text(micros).parse().ok()?);
    possible(seconds.checked_mul(1_000_000)?.checked_add(micros)?)
}

/// A time within the range in which sums do not overflow.
fn possible(us: i64) -> Option<i64> {
    (1..=DEADLINE_MS_MAX).contains(&(us / 1_000)).then_some(us)
}

pub(super) fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) | Value::Set(values) => Some(values),
        Value::Nil => Some(vec![]),
        _ => None,
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with so many committed groups.
    fn answer(status: Value, groups: usize) -> Value {
        let groups = Value::Array((0..groups).map(|_| Value::Int(0)).collect());
        Value::Array(vec![Value::Int(0), status, groups, Value::Array(vec![])])
    }

    #[test]
    fn every_group_is_answered_or_the_answer_is_not_understood() {
        let partial = || Value::Array(vec![Value::Int(3), Value::Int(1), Value::SimpleString("ERR".into())]);
        for groups in 0..4 {
            let is_whole = groups == 2;
            assert_eq!(Answer::parse(Value::Int(groups), 2).is_some(), is_whole);
            assert_eq!(Answer::parse(answer(Value::Int(0), groups as usize), 2).is_some(), is_whole);
            assert_eq!(Answer::parse(answer(partial(), groups as usize), 2).is_some(), is_whole);
        }
        assert!(Answer::parse(answer(Value::Int(1), 0), 2).is_some(), "nothing was validated");
        assert!(Answer::parse(answer(Value::Int(2), 0), 2).is_some(), "the sequence was closed");
    }
}
