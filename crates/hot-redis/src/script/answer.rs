//! The answer of the commit script, read into types.

use super::spelling::kind_found;
use emberkeep_hot::command::KindFound;
use emberkeep_hot::limits::DEADLINE_MS_MAX;
use redis::Value;

/// The script's answer to one call.
pub(crate) struct Answer {
    /// The server's time, if it was asked for.
    pub(crate) time_ms: Option<i64>,
    pub(crate) status: Status,
    pub(crate) groups: Vec<GroupAnswer>,
    pub(crate) fetched: Vec<Value>,
}

pub(crate) enum Status {
    Done,
    ClocksDiffer,
    SequenceClosed,
    Partial { group: usize, message: String },
}

pub(crate) enum GroupAnswer {
    Committed,
    Stale(Vec<Value>),
    Wait,
    WrongType {
        key: i64,
        found: KindFound,
    },
    LogFull,
    /// A group before it failed after its first write; this one was not begun.
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

    /// The short answer: that many groups, all of them committed, and nothing else.
    fn all_committed(groups: usize) -> Answer {
        let groups = (0..groups).map(|_| GroupAnswer::Committed).collect();
        Answer { time_ms: None, status: Status::Done, groups, fetched: vec![] }
    }

    /// Reads the script's answer to a call of so many groups; `None` when it is not one.
    pub(crate) fn parse(value: Value, groups_sent: usize) -> Option<Answer> {
        let parts = match value {
            Value::Array(parts) => parts,
            Value::Int(groups) => {
                let groups = usize::try_from(groups).ok().filter(|groups| *groups == groups_sent)?;
                return Some(Answer::all_committed(groups));
            }
            _ => return None,
        };
        let [time, status, groups, fetched]: [Value; 4] = parts.try_into().ok()?;
        let Value::Int(time) = time else { return None };
        let status = match status {
            Value::Int(0) => Status::Done,
            Value::Int(1) => Status::ClocksDiffer,
            Value::Int(2) => Status::SequenceClosed,
            Value::Array(detail) => match &detail[..] {
                [Value::Int(3), Value::Int(group), message] => {
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
        let time_ms = match time {
            0 => None,
            time => Some(possible(time)?),
        };
        Some(Answer { time_ms, status, groups, fetched: array(fetched)? })
    }
}

fn group_answer(value: Value) -> Option<GroupAnswer> {
    Some(match value {
        Value::Int(0) => GroupAnswer::Committed,
        Value::Int(2) => GroupAnswer::Wait,
        Value::Int(4) => GroupAnswer::LogFull,
        Value::Int(5) => GroupAnswer::NotBegun,
        Value::Array(detail) => match &detail[..] {
            [Value::Int(1), Value::Array(replies)] => GroupAnswer::Stale(replies.clone()),
            [Value::Int(3), Value::Int(key), found] => {
                GroupAnswer::WrongType { key: *key, found: kind_found(text(found).as_bytes()) }
            }
            [Value::Int(5), command] => GroupAnswer::Forbidden { command: text(command) },
            _ => return None,
        },
        _ => return None,
    })
}

/// The answer to TIME, in milliseconds since 1970; `None` when it is not one.
pub(crate) fn time_ms(value: &Value) -> Option<i64> {
    let Value::Array(parts) = value else { return None };
    let [seconds, micros] = &parts[..] else { return None };
    let (seconds, micros): (i64, i64) = (text(seconds).parse().ok()?, text(micros).parse().ok()?);
    possible(seconds.checked_mul(1_000)?.checked_add(micros / 1_000)?)
}

/// A time that sums can be made with.
fn possible(ms: i64) -> Option<i64> {
    (1..=DEADLINE_MS_MAX).contains(&ms).then_some(ms)
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

    /// An answer with as many groups as this that were committed.
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
        assert!(Answer::parse(answer(Value::Int(1), 0), 2).is_some(), "nothing was looked at");
        assert!(Answer::parse(answer(Value::Int(2), 0), 2).is_some(), "the sequence was closed");
    }
}
