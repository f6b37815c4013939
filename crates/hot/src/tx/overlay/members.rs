//! Hashes and sets after writes: point reads of the touched members, whole collections merged.

use super::*;

/// What became of a field or member.
#[derive(Clone)]
pub(super) enum After {
    Gone,
    Is(Bytes),
    /// A field whose integer in the source was increased.
    Plus(i64),
}

impl After {
    pub(super) fn increment(&mut self, key: &RawKey, field: &Bytes, by: i64) -> Result<()> {
        let text = |n: i64| Bytes::from(n.to_string());
        *self = match self {
            After::Gone => After::Is(text(by)),
            After::Is(held) => After::Is(text(sum_of(key, number_of(key, field, held)?, by)?)),
            After::Plus(sum) => After::Plus(sum_of(key, *sum, by)?),
        };
        Ok(())
    }

    fn is_there(&self) -> bool {
        !matches!(self, After::Gone)
    }

    fn reply(&self, key: &RawKey, field: &Bytes, source: Option<&Bytes>) -> Result<Reply> {
        Ok(self.value(key, field, source)?.map_or(Reply::Nil, Reply::Blob))
    }

    /// The value, where `source` is that of the source; `None` = absent.
    fn value(&self, key: &RawKey, field: &Bytes, source: Option<&Bytes>) -> Result<Option<Bytes>> {
        Ok(match self {
            After::Gone => None,
            After::Is(value) => Some(value.clone()),
            After::Plus(by) => {
                let before = source.map_or(Ok(0), |text| number_of(key, field, text))?;
                Some(Bytes::from(sum_of(key, before, *by)?.to_string()))
            }
        })
    }
}

fn number_of(key: &RawKey, field: &Bytes, text: &[u8]) -> Result<i64> {
    parse_integer(text).ok_or_else(|| not_an_integer_field(key, field))
}

pub(super) fn read_members(below: &mut KeySource<'_>, members: &Members, read: &Read) -> Result<Reply> {
    match read {
        Read::HGet(field) => match members.after.get(field) {
            Some(after @ After::Plus(_)) => match below.ask(read.clone())? {
                Reply::Blob(text) => after.reply(below.key, field, Some(&text)),
                Reply::Nil => after.reply(below.key, field, None),
                refusal => Ok(refusal),
            },
            Some(after) => after.reply(below.key, field, None),
            None => below.ask(read.clone()),
        },
        Read::SIsMember(member) => match members.after.get(member) {
            Some(after) => Ok(Reply::Int(after.is_there() as i64)),
            None => below.ask(read.clone()),
        },
        Read::HGetAll => merge_pairs(below, &members.after),
        Read::SMembers => merge_list(below, &members.after),
        Read::HLen | Read::SCard => {
            let mut count = below.int(read.clone())?;
            for (member, after) in &members.after {
                count += after.is_there() as i64 - below.holds(members.kind, member)? as i64;
            }
            Ok(Reply::Int(count))
        }
        other => Err(mismatch(other, &Reply::Nil)),
    }
}

impl KeySource<'_> {
    /// Whether the source has that field or member.
    fn holds(&mut self, kind: Kind, member: &Bytes) -> Result<bool> {
        let read = match kind {
            Kind::Hash => Read::HGet(member.clone()),
            Kind::Set => Read::SIsMember(member.clone()),
            _ => Read::ZScore(member.clone()),
        };
        Ok(!matches!(self.ask(read.clone())?.checked(self.key, &read)?, Reply::Nil | Reply::Int(0)))
    }
}

fn merge_pairs(below: &mut KeySource<'_>, after: &BTreeMap<Bytes, After>) -> Result<Reply> {
    let Reply::Pairs(pairs) = below.ask(Read::HGetAll)?.checked(below.key, &Read::HGetAll)? else {
        return Err(mismatch(&Read::HGetAll, &Reply::Nil));
    };
    let mut merged: BTreeMap<Bytes, Bytes> = pairs.into_iter().collect();
    for (field, after) in after {
        match after.value(below.key, field, merged.get(field))? {
            Some(value) => merged.insert(field.clone(), value),
            None => merged.remove(field),
        };
    }
    Ok(bounded(merged.len(), || Reply::Pairs(merged.into_iter().collect())))
}

fn merge_list(below: &mut KeySource<'_>, after: &BTreeMap<Bytes, After>) -> Result<Reply> {
    let Reply::List(list) = below.ask(Read::SMembers)?.checked(below.key, &Read::SMembers)? else {
        return Err(mismatch(&Read::SMembers, &Reply::Nil));
    };
    let mut merged: std::collections::BTreeSet<Bytes> = list.into_iter().collect();
    for (member, after) in after {
        match after {
            After::Gone => merged.remove(member),
            _ => merged.insert(member.clone()),
        };
    }
    Ok(bounded(merged.len(), || Reply::List(merged.into_iter().collect())))
}

fn bounded(len: usize, reply: impl FnOnce() -> Reply) -> Reply {
    if len > REPLY_ELEMENTS_MAX { Reply::TooMany(len) } else { reply() }
}
