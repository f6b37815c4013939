//! Decodes replies into values of a family, for transactions and for plain reads.

use super::member::Member;
use crate::command::Reply;
use crate::error::{Error, Result, show};
use bytes::Bytes;
use emberkeep_schema::{Codec, Family, ValueError};

/// Decodes a value. The error names key and family.
pub(crate) fn decoded<F: Family, C: Codec>(key: &[u8], bytes: &[u8]) -> Result<C::Value> {
    C::decode(bytes).map_err(|error| corrupt(key, F::DECLARATION.name, &error))
}

#[cold]
fn corrupt(key: &[u8], family: &str, error: &ValueError) -> Error {
    Error::Corrupt { key: named(&show(key), family), reason: error.to_string() }
}

pub(super) fn named(key: &str, family: &str) -> String {
    format!("{key} (family {family})")
}

/// Adds the family to an error that names a key.
pub(crate) fn with_family<F: Family>(error: Error) -> Error {
    with_family_named(error, F::DECLARATION.name)
}

/// The same, with the family's name.
pub(crate) fn with_family_named(error: Error, family: &str) -> Error {
    match error {
        Error::WrongType { key, expected, found } => {
            Error::WrongType { key: named(&key, family), expected, found }
        }
        Error::Corrupt { key, reason } => Error::Corrupt { key: named(&key, family), reason },
        Error::Overflow { key, value, by } => Error::Overflow { key: named(&key, family), value, by },
        Error::TooLarge { key, what, found, unit, max } => {
            Error::TooLarge { key: named(&key, family), what, found, unit, max }
        }
        Error::LogFull { key, max } => Error::LogFull { key: named(&key, family), max },
        other => other,
    }
}

#[cold]
fn unexpected(reply: &Reply) -> Error {
    Error::Unavailable {
        backend: "the engine".into(),
        reason: format!("unexpected shape of a reply: {reply:?}"),
        advice: "this is a defect of the engine or the server, report it",
    }
}

/// A string, or a field of a hash.
pub(crate) fn value<F: Family, C: Codec>(key: &[u8], reply: Reply) -> Result<Option<C::Value>> {
    match reply {
        Reply::Blob(bytes) => decoded::<F, C>(key, &bytes).map(Some),
        Reply::Nil => Ok(None),
        other => Err(unexpected(&other)),
    }
}

/// A string or hash field of a batch read, with its own error.
pub(crate) fn own_value<F: Family, C: Codec>(key: &[u8], reply: Result<Reply>) -> Result<Option<C::Value>> {
    reply.map_err(with_family::<F>).and_then(|reply| value::<F, C>(key, reply))
}

/// The number of a reply that must be one.
pub(crate) fn int(reply: Reply) -> Result<i64> {
    match reply {
        Reply::Int(n) => Ok(n),
        other => Err(unexpected(&other)),
    }
}

/// The count of a reply that is never below 0.
pub(crate) fn count(reply: Reply) -> Result<usize> {
    int(reply).map(|n| n as usize)
}

/// The position of a member; `None` if it is not a member.
pub(crate) fn rank(reply: Reply) -> Result<Option<usize>> {
    match reply {
        Reply::Nil => Ok(None),
        other => count(other).map(Some),
    }
}

/// Yes or no: 1 is yes.
pub(crate) fn flag(reply: Reply) -> Result<bool> {
    int(reply).map(|n| n == 1)
}

/// The deadline of a key; `None` = absent or without a deadline.
pub(crate) fn deadline(reply: Reply) -> Result<Option<i64>> {
    int(reply).map(|at| Some(at).filter(|at| *at >= 0))
}

/// Members of a set or elements of a list.
pub(crate) fn list<F: Family, M: Codec>(key: &[u8], reply: Reply) -> Result<Vec<M::Value>> {
    match reply {
        Reply::List(list) => list.iter().map(|member| decoded::<F, M>(key, member)).collect(),
        other => Err(unexpected(&other)),
    }
}

/// A member of a set.
pub(crate) fn member<M: Codec>(bytes: Bytes) -> Member<M::Value> {
    M::decode(&bytes).map_or_else(|_| Member::External(bytes.clone()), Member::Known)
}

/// Members of a set, including those that cannot be decoded.
pub(crate) fn members<M: Codec>(reply: Reply) -> Result<Vec<Member<M::Value>>> {
    match reply {
        Reply::List(list) => Ok(list.into_iter().map(member::<M>).collect()),
        other => Err(unexpected(&other)),
    }
}

/// The fields of a hash with their values. One that cannot be decoded fails the whole reply.
pub(crate) fn pairs<F: Family, N: Codec, C: Codec>(
    key: &[u8],
    reply: Reply,
) -> Result<Vec<(N::Value, C::Value)>> {
    let Reply::Pairs(pairs) = reply else { return Err(unexpected(&reply)) };
    pairs.iter().map(|(n, v)| Ok((decoded::<F, N>(key, n)?, decoded::<F, C>(key, v)?))).collect()
}

/// The score of a member; `None` if it is not a member.
pub(crate) fn score(reply: Reply) -> Result<Option<f64>> {
    match reply {
        Reply::Score(score) => Ok(Some(score.get())),
        Reply::Nil => Ok(None),
        other => Err(unexpected(&other)),
    }
}

/// Members with their scores. One that cannot be decoded fails the whole reply.
pub(crate) fn scored<F: Family, M: Codec>(key: &[u8], reply: Reply) -> Result<Vec<(M::Value, f64)>> {
    let Reply::Scored(list) = reply else { return Err(unexpected(&reply)) };
    list.iter().map(|(member, score)| Ok((decoded::<F, M>(key, member)?, score.get()))).collect()
}

/// Members with scores, including those that cannot be decoded.
pub(crate) fn scored_members<M: Codec>(reply: Reply) -> Result<Vec<(Member<M::Value>, f64)>> {
    match reply {
        Reply::Scored(list) => {
            Ok(list.into_iter().map(|(one, score)| (member::<M>(one), score.get())).collect())
        }
        other => Err(unexpected(&other)),
    }
}
