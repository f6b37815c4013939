//! Hashes and sets after writes: point reads of the touched members, whole collections merged.

use super::*;

pub(super) fn read_members(below: &mut KeySource<'_>, members: &Members, read: &Read) -> Result<Reply> {
    match read {
        Read::HGet(field) => match members.after.get(field) {
            Some(value) => Ok(value.clone().map_or(Reply::Nil, Reply::Blob)),
            None => below.ask(read.clone()),
        },
        Read::SIsMember(member) => match members.after.get(member) {
            Some(value) => Ok(Reply::Int(value.is_some() as i64)),
            None => below.ask(read.clone()),
        },
        Read::HGetAll => merge_pairs(below, &members.after),
        Read::SMembers => merge_list(below, &members.after),
        Read::HLen | Read::SCard => {
            let mut count = below.int(read.clone())?;
            for (member, after) in &members.after {
                count += after.is_some() as i64 - below.holds(members.kind, member)? as i64;
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

fn merge_pairs(below: &mut KeySource<'_>, after: &BTreeMap<Bytes, Option<Bytes>>) -> Result<Reply> {
    let Reply::Pairs(pairs) = below.ask(Read::HGetAll)?.checked(below.key, &Read::HGetAll)? else {
        return Err(mismatch(&Read::HGetAll, &Reply::Nil));
    };
    let mut merged: BTreeMap<Bytes, Bytes> = pairs.into_iter().collect();
    for (field, value) in after {
        match value {
            Some(value) => merged.insert(field.clone(), value.clone()),
            None => merged.remove(field),
        };
    }
    Ok(bounded(merged.len(), || Reply::Pairs(merged.into_iter().collect())))
}

fn merge_list(below: &mut KeySource<'_>, after: &BTreeMap<Bytes, Option<Bytes>>) -> Result<Reply> {
    let Reply::List(list) = below.ask(Read::SMembers)?.checked(below.key, &Read::SMembers)? else {
        return Err(mismatch(&Read::SMembers, &Reply::Nil));
    };
    let mut merged: std::collections::BTreeSet<Bytes> = list.into_iter().collect();
    for (member, value) in after {
        match value {
            Some(_) => merged.insert(member.clone()),
            None => merged.remove(member),
        };
    }
    Ok(bounded(merged.len(), || Reply::List(merged.into_iter().collect())))
}

fn bounded(len: usize, reply: impl FnOnce() -> Reply) -> Reply {
    if len > REPLY_ELEMENTS_MAX { Reply::TooMany(len) } else { reply() }
}
