//! The answer of the commit script, read into types.

use super::words::kind_found;
use emberkeep_hot::command::KindFound;
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
    LaneClosed,
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

    /// Reads the script's answer; `None` when it is not one.
    pub(crate) fn parse(value: Value) -> Option<Answer> {
        let parts = match value {
            Value::Array(parts) => parts,
            Value::Int(groups) => return Some(Answer::all_committed(usize::try_from(groups).ok()?)),
            _ => return None,
        };
        let [time, status, groups, fetched]: [Value; 4] = parts.try_into().ok()?;
        let Value::Int(time) = time else { return None };
        let status = match status {
            Value::Int(0) => Status::Done,
            Value::Int(1) => Status::ClocksDiffer,
            Value::Int(2) => Status::LaneClosed,
            Value::Array(detail) => match &detail[..] {
                [Value::Int(3), Value::Int(group), message] => {
                    Status::Partial { group: *group as usize, message: text(message) }
                }
                _ => return None,
            },
            _ => return None,
        };
        let groups = array(groups)?.into_iter().map(group_answer).collect::<Option<_>>()?;
        Some(Answer { time_ms: (time > 0).then_some(time), status, groups, fetched: array(fetched)? })
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
