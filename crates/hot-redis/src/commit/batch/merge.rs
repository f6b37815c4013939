//! Merges the writes and the list ranges of transactions in one commit: what several do to a key is sent
//! once.

use bytes::Bytes;
use emberkeep_hot::command::{Expiry, RawKey, Read, Reply, Write};
use emberkeep_hot::limits::{COMMAND_ARGUMENTS_MAX, INCREMENT_MAX, REPLY_ELEMENTS_MAX};
use foldhash::fast::RandomState;
use hashbrown::HashSet;

/// Appends a write of one key. Drops the writes that it overrides, and merges it with the last one where one
/// command can do both.
pub(super) fn push_merged(writes: &mut Vec<Write>, write: Write) {
    use Write::*;
    let is_conditional = |write: &Write| matches!(write, SetIfGreater(..));
    if is_conditional(&write) || writes.iter().any(is_conditional) {
        // Each condition is decided and counted by the server.
        return writes.push(write);
    }
    if matches!(write, Del | Set(_, Expiry::Never | Expiry::At(_))) {
        writes.clear();
        return writes.push(write);
    }
    if let Some(deadline) = deadline_before(writes, &write) {
        push_merged(writes, write);
        return push_merged(writes, deadline);
    }
    if let (IncrBy(by), Some(Set(text, _))) = (&write, writes.last_mut())
        && let Some(sum) = increased(text, *by)
    {
        *text = sum;
        return;
    }
    let write = match merge_scores(writes, write) {
        Some(write) => write,
        None => return,
    };
    match (write, writes.last_mut()) {
        // A SET that keeps the deadline inherits that of the SET before it.
        (Set(value, Expiry::Keep), Some(Set(before, _))) => *before = value,
        // The SET decides whether there is a deadline, unless it keeps the one before it.
        (ExpireAtIfNone(at), Some(Set(_, expiry @ Expiry::Never))) => *expiry = Expiry::At(at),
        (ExpireAtIfNone(_), Some(Set(_, Expiry::At(_)))) => {}
        // A SET with a deadline of its own replaces all writes before it.
        (ExpireAt(at), Some(Set(value, _))) => *writes = vec![Set(std::mem::take(value), Expiry::At(at))],
        (Persist, Some(Set(value, _))) => *writes = vec![Set(std::mem::take(value), Expiry::Never)],
        // The key is present for both or for neither.
        (ExpireAtIfNone(at), Some(last @ Persist)) => *last = ExpireAt(at),
        (ExpireAtIfNone(_), Some(ExpireAt(_) | ExpireAtIfNone(_))) => {}
        (write @ (ExpireAt(_) | Persist), Some(last)) if last.is_of_deadline() => *last = write,
        (IncrBy(by), Some(IncrBy(sum))) if sum.saturating_add(by).abs() <= INCREMENT_MAX => *sum += by,
        (HIncrBy(field, by), Some(HIncrBy(last, sum)))
            if field == *last && sum.saturating_add(by).abs() <= INCREMENT_MAX =>
        {
            *sum += by
        }
        (SAdd(new), Some(SAdd(old)))
        | (SRem(new), Some(SRem(old)))
        | (ZRem(new), Some(ZRem(old)))
        | (HDel(new), Some(HDel(old)))
        | (LPush(new), Some(LPush(old)))
        | (RPush(new), Some(RPush(old)))
            if old.len() + new.len() <= COMMAND_ARGUMENTS_MAX =>
        {
            old.extend(new)
        }
        // Of a member that stands twice, the last score counts.
        (ZAdd(new), Some(ZAdd(old))) if 2 * (old.len() + new.len()) <= COMMAND_ARGUMENTS_MAX => {
            old.extend(new)
        }
        (HSet(new), Some(HSet(old))) if 2 * (old.len() + new.len()) <= COMMAND_ARGUMENTS_MAX => {
            old.extend(new)
        }
        (LPop(new), Some(LPop(old))) if old.checked_add(new).is_some_and(|n| n <= REPLY_ELEMENTS_MAX) => {
            *old += new
        }
        (LPop(count), Some(LPush(pushed))) if count < pushed.len() => pushed.truncate(pushed.len() - count),
        (LPop(count), Some(LPush(pushed))) if count == pushed.len() => drop(writes.pop()),
        (write, _) => writes.push(write),
    }
}

/// Removes the deadline at the end of these writes, if the key is certainly present before and after the
/// write that follows: then the deadline may come last. It must come last if it passes before the commit: the
/// server would remove the key at once, and the write would create another one.
fn deadline_before(writes: &mut Vec<Write>, write: &Write) -> Option<Write> {
    let [before @ .., Write::ExpireAt(_) | Write::ExpireAtIfNone(_)] = &writes[..] else { return None };
    let is_present = before.last().is_some_and(Write::leaves_key) && write.leaves_key();
    let of_scores = || matches!(write, Write::ZAdd(_) | Write::ZRem(_)) && keeps_added(before, write);
    (is_present || of_scores()).then(|| writes.pop()).flatten()
}

/// Whether these writes end in a ZADD and perhaps a ZREM, and neither that nor the write that follows removes a member
/// of the ZADD: then the key is present all the while.
fn keeps_added(writes: &[Write], write: &Write) -> bool {
    let (added, removed): (&[_], &[_]) = match writes {
        [.., Write::ZAdd(added), Write::ZRem(removed)] => (added, removed),
        [.., Write::ZAdd(added)] => (added, &[]),
        _ => return false,
    };
    let follows: &[_] = if let Write::ZRem(more) = write { more } else { &[] };
    !added.iter().any(|(member, _)| removed.contains(member) || follows.contains(member))
}

/// Joins a ZADD or ZREM to the ZADD and the ZREM at the end of the writes, where their order does not matter:
/// transactions that each remove what is old and add what is new become two commands. Returns the write if it is to
/// be appended.
fn merge_scores(writes: &mut [Write], write: Write) -> Option<Write> {
    if !matches!(write, Write::ZAdd(_)) || !keeps_added(writes, &write) {
        return Some(write);
    }
    match (write, writes) {
        (Write::ZAdd(new), [.., Write::ZAdd(added), Write::ZRem(removed)])
            if 2 * (added.len() + new.len()) <= COMMAND_ARGUMENTS_MAX
                && !new.iter().any(|(member, _)| removed.contains(member)) =>
        {
            added.extend(new);
            None
        }
        (write, _) => Some(write),
    }
}

/// A number as text, after an increment; `None` if it is not a number or overflows. Then the commit is
/// refused.
fn increased(text: &Bytes, by: i64) -> Option<Bytes> {
    let text = std::str::from_utf8(text).ok()?;
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text)?;
    Some(Bytes::from(number.checked_add(by)?.to_string()))
}

/// Joins adjacent ranges of one list: transactions that each took the next element have read one range each,
/// and the server compares one.
pub(super) fn join_ranges(reads: Vec<(RawKey, Read, Reply)>) -> Vec<(RawKey, Read, Reply)> {
    // A range that ends before it begins is empty whatever the list holds: joined to another, it would cut that one.
    let bounds = |(key, read, _): &(RawKey, Read, Reply)| match read {
        Read::LRange(first @ 0.., last @ 0..) if first <= last => Some((key.clone(), *first, *last)),
        _ => None,
    };
    let read: HashSet<(RawKey, i64, i64), RandomState> = reads.iter().filter_map(bounds).collect();
    if read.len() < 2 {
        return reads;
    }
    let is_range = |read: &(RawKey, Read, Reply)| bounds(read).is_some() && matches!(read.2, Reply::List(_));
    let (mut ranges, mut joined): (Vec<_>, Vec<_>) = reads.into_iter().partition(is_range);
    ranges.sort_by(|a, b| (&a.0, first_of(&a.1)).cmp(&(&b.0, first_of(&b.1))));
    let is_new = |key: &RawKey, first: i64, last: i64| !read.contains(&(key.clone(), first, last));
    let others = joined.len();
    for range in ranges {
        if !joined[others..].last_mut().is_some_and(|last| extend(last, &range, &is_new)) {
            joined.push(range);
        }
    }
    joined
}

fn first_of(read: &Read) -> i64 {
    if let Read::LRange(first, _) = read { *first } else { 0 }
}

/// Adds a range to the one before it, if it begins where that one ends. Not if the joined range was read as
/// well, perhaps with another reply: each reply that a body read is compared.
fn extend(
    before: &mut (RawKey, Read, Reply),
    next: &(RawKey, Read, Reply),
    is_new: &impl Fn(&RawKey, i64, i64) -> bool,
) -> bool {
    let (key, Read::LRange(first, last), Reply::List(list)) = before else { return false };
    let (next_key, Read::LRange(from, to), Reply::List(more)) = next else { return false };
    let full = list.len() as i64 == *last - *first + 1;
    let fits = list.len() + more.len() < REPLY_ELEMENTS_MAX && to - *first < REPLY_ELEMENTS_MAX as i64;
    let follows = key == next_key && full && fits && *from == *last + 1;
    let joins = follows && is_new(key, *first, *to);
    if joins {
        list.extend(more.iter().cloned());
        *last = *to;
    }
    joins
}

#[cfg(test)]
#[path = "merge_model.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{has_early_deadline, postpone};
    use emberkeep_hot::command::Score;

    fn words(words: &[&'static str]) -> Vec<Bytes> {
        words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect()
    }

    fn merged(writes: impl IntoIterator<Item = Write>) -> Vec<Write> {
        let mut merged = vec![];
        writes.into_iter().for_each(|write| push_merged(&mut merged, write));
        merged
    }

    #[test]
    fn equal_commands_become_one() {
        use Write::*;
        let two = |make: fn(Vec<Bytes>) -> Write| [make(words(&["a"])), make(words(&["b"]))];
        for make in [SAdd, SRem, ZRem, HDel, LPush, RPush] {
            assert_eq!(merged(two(make)), [make(words(&["a", "b"]))]);
        }
        let scores = |score| ZAdd(vec![(Bytes::from_static(b"a"), Score::from_i64(score))]);
        let ZAdd(both) = &merged([scores(1), scores(2)])[0] else { panic!("one command") };
        assert_eq!(both.last().map(|(_, score)| *score), Some(Score::from_i64(2)), "the last one counts");
        assert_eq!(merged([SAdd(words(&["a"])), SRem(words(&["a"]))]).len(), 2, "their order matters");
        let long: Vec<Bytes> = (0..COMMAND_ARGUMENTS_MAX).map(|n| Bytes::from(n.to_string())).collect();
        assert_eq!(merged([SAdd(long), SAdd(words(&["a"]))]).len(), 2, "a command has its limit");
    }

    #[test]
    fn transactions_that_remove_and_add_members_become_two_commands() {
        use Write::*;
        let add = |member| ZAdd(vec![(Bytes::from_static(member), Score::from_i64(1))]);
        let rem = |member: &'static str| ZRem(words(&[member]));
        let both: Vec<Write> =
            [rem("x"), add(b"a"), ExpireAt(7), rem("y"), add(b"b"), ExpireAt(8), rem("z"), add(b"c")]
                .into_iter()
                .chain([ExpireAt(9)])
                .collect();
        let scores = ["a", "b", "c"].map(|m| (Bytes::from_static(m.as_bytes()), Score::from_i64(1)));
        assert_eq!(merged(both), [rem("x"), ZAdd(scores.to_vec()), ZRem(words(&["y", "z"])), ExpireAt(9)]);
        assert_eq!(
            merged([add(b"a"), ExpireAt(7), rem("a"), add(b"b")]).len(),
            4,
            "it may be gone in between"
        );
        assert_eq!(merged([add(b"a"), rem("b"), add(b"b")]).len(), 3, "their order matters");
    }

    #[test]
    fn what_is_pushed_and_taken_again_is_not_sent() {
        use Write::*;
        assert_eq!(merged([LPop(1), LPop(2)]), [LPop(3)]);
        assert_eq!(merged([LPush(words(&["a", "b"])), LPop(1)]), [LPush(words(&["a"]))]);
        assert_eq!(merged([LPop(1), LPush(words(&["a"])), LPop(1), LPop(1)]), [LPop(2)]);
        assert_eq!(merged([LPush(words(&["a"])), LPop(2)]).len(), 2, "it takes from below as well");
    }

    #[test]
    fn a_deadline_comes_last() {
        use Write::*;
        let (add, set) = (|word| SAdd(words(&[word])), |at| Set(Bytes::from_static(b"1"), at));
        assert_eq!(
            merged([add("a"), ExpireAt(7), add("b"), add("c")]),
            [SAdd(words(&["a", "b", "c"])), ExpireAt(7)]
        );
        let four = Set(Bytes::from_static(b"4"), Expiry::At(7));
        assert_eq!(merged([set(Expiry::At(7)), IncrBy(1), IncrBy(2)]), [four]);
        assert_eq!(merged([set(Expiry::Keep), ExpireAt(7)]), [set(Expiry::At(7))]);
        assert_eq!(merged([ExpireAt(6), set(Expiry::Keep), ExpireAt(7)]), [set(Expiry::At(7))]);
        assert_eq!(merged([ExpireAt(6), set(Expiry::Keep), Persist]), [set(Expiry::Never)]);
        assert_eq!(merged([add("a"), ExpireAt(7), Persist, ExpireAt(8)]), [add("a"), ExpireAt(8)]);
        let keyed =
            |writes: Vec<Write>| -> Vec<_> { writes.into_iter().map(|w| (RawKey::new(), w)).collect() };
        let early = |writes| -> Vec<i64> {
            let writes = keyed(merged(writes));
            let marks = if has_early_deadline(&writes) { postpone(&writes).marks } else { vec![] };
            marks.into_iter().map(|(_, at)| at).collect()
        };
        assert!(early(vec![add("a"), ExpireAt(7), add("b")]).is_empty());
        assert_eq!(early(vec![ExpireAt(7), add("b")]), [7], "it may be absent before");
        let removed = vec![add("a"), ExpireAt(7), SRem(words(&["a"])), add("b")];
        assert_eq!(early(removed), [7], "or in between");
        assert_eq!(early(vec![ExpireAt(7), SRem(words(&["a"])), ExpireAt(8)]), [7, 8]);
    }

    #[test]
    fn the_first_write_of_a_fixed_life_sets_the_deadline() {
        use Write::*;
        let (add, set) = (|word| SAdd(words(&[word])), |at| Set(Bytes::from_static(b"1"), at));
        let once = ExpireAtIfNone;
        assert_eq!(
            merged([add("a"), once(7), add("b"), once(8), add("c"), once(9)]),
            [SAdd(words(&["a", "b", "c"])), once(7)]
        );
        let kept = || set(Expiry::Keep);
        assert_eq!(merged([kept(), once(7), kept(), once(8), IncrBy(0)]), [kept(), once(7)]);
        assert_eq!(merged([set(Expiry::Never), once(7)]), [set(Expiry::At(7))]);
        assert_eq!(merged([set(Expiry::At(6)), once(7)]), [set(Expiry::At(6))]);
        assert_eq!(merged([Persist, once(7)]), [ExpireAt(7)]);
        assert_eq!(merged([add("a"), once(7), ExpireAt(8), once(9)]), [add("a"), ExpireAt(8)]);
    }

    #[test]
    fn ranges_that_follow_one_another_become_one() {
        let key = RawKey::from_static(b"k");
        let range =
            |from, to, list: &[&'static str]| (key.clone(), Read::LRange(from, to), Reply::List(words(list)));
        let joined = |ranges: Vec<(RawKey, Read, Reply)>| join_ranges(ranges);
        let other = (key.clone(), Read::LLen, Reply::Int(9));
        let all = vec![range(1, 1, &["b"]), other.clone(), range(0, 0, &["a"]), range(2, 2, &[])];
        assert_eq!(joined(all), [other, range(0, 2, &["a", "b"])]);
        let apart = vec![range(0, 0, &["a"]), range(2, 2, &["c"])];
        assert_eq!(joined(apart.clone()), apart, "no transaction read what is in between");
        let ended = vec![range(0, 0, &[]), range(1, 1, &[])];
        assert_eq!(joined(ended.clone()), ended);
        let reversed = vec![range(3, 1, &[]), range(1, 2, &["b", "c"])];
        assert_eq!(joined(reversed.clone()), reversed, "a range that ends before it begins follows none");
        let contradicting = vec![range(0, 1, &["b", "c"]), range(0, 0, &["a"]), range(1, 1, &["c"])];
        assert_eq!(joined(contradicting.clone()), contradicting, "each is compared, so that one fails");
        let refused = (key.clone(), Read::LRange(0, 1), Reply::TooMany(2));
        let refused = vec![refused, range(0, 0, &["a"]), range(1, 1, &["c"])];
        assert_eq!(joined(refused.clone()), refused);
    }
}
