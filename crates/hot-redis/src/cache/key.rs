//! The replies that are remembered of one key. A newer one drops those that it repeats or contradicts.

use crate::cache::derive::{inferred, shows_absence};
use crate::limits::CACHE_READS_PER_KEY_MAX;
use emberkeep_hot::command::{Read, Reply};
use emberkeep_hot::tx::absent;

/// What a reply weighs beside its bytes.
pub(crate) const READ_BYTES: usize = 64;

/// Replies to different reads of one key, the latest last.
#[derive(Default)]
pub(crate) struct CachedKey {
    replies: Vec<(Read, Reply)>,
    bytes: usize,
    /// The call that brought the latest, and how many it brought: the last ones.
    latest_tick: u64,
    latest: usize,
}

impl CachedKey {
    /// The replies.
    pub(crate) fn replies(&self) -> &[(Read, Reply)] {
        &self.replies
    }

    /// What they weigh.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What they say to this read.
    pub(crate) fn inferred(&self, read: &Read) -> Option<Reply> {
        inferred(&self.replies, read)
    }

    /// Whether they say anything to it.
    pub(crate) fn answers(&self, read: &Read) -> bool {
        self.replies.iter().any(|(known, _)| known == read) || self.inferred(read).is_some()
    }

    /// Keeps a reply of the call of this tick, in the place of older ones that say the same or the contrary.
    pub(crate) fn keep(&mut self, read: Read, reply: Reply, tick: u64) {
        let lives = reply != absent(&read);
        let gone = shows_absence(&read, &reply);
        let replaced = |old: &Read, said: &Reply| {
            *old == read
                || (lives && shows_absence(old, said))
                || (gone && *said != absent(old))
                || covers(&read, old)
                || disagree((&read, &reply), (old, said))
        };
        let (bytes, latest) = (&mut self.bytes, &mut self.latest);
        let (first_of_latest, mut place) = (self.replies.len() - *latest, 0);
        self.replies.retain(|(old, said)| {
            let stays = !replaced(old, said);
            if !stays {
                *bytes -= weight(said);
                *latest -= (place >= first_of_latest) as usize;
            }
            place += 1;
            stays
        });
        self.keep_beside(read, reply, tick);
    }

    /// Keeps a reply, whatever the others say.
    pub(crate) fn keep_beside(&mut self, read: Read, reply: Reply, tick: u64) {
        if self.latest_tick != tick {
            (self.latest_tick, self.latest) = (tick, 0);
        }
        // A transaction that asked for more than the bound in one call needs all of it at once.
        self.trim(CACHE_READS_PER_KEY_MAX.max(self.latest + 1) - 1);
        self.bytes += weight(&reply);
        self.replies.push((read, reply));
        self.latest += 1;
    }

    /// Drops the oldest.
    pub(crate) fn trim(&mut self, max: usize) {
        let surplus = self.replies.len().saturating_sub(max);
        self.bytes -= self.replies.drain(..surplus).map(|(_, reply)| weight(&reply)).sum::<usize>();
        self.latest = self.latest.min(self.replies.len());
    }

    /// Puts others in their place.
    pub(crate) fn replace(&mut self, replies: Vec<(Read, Reply)>) {
        self.bytes = replies.iter().map(|(_, reply)| weight(reply)).sum();
        self.replies = replies;
        self.latest = 0;
    }
}

fn weight(reply: &Reply) -> usize {
    reply.bytes() + READ_BYTES
}

/// Whether a reply to the one says what a reply to the other does.
fn covers(wide: &Read, narrow: &Read) -> bool {
    match (wide, narrow) {
        (Read::LRange(first @ 0.., last), Read::LRange(start, stop)) => {
            start >= first && (0..=*last).contains(stop)
        }
        _ => false,
    }
}

/// Whether two ranges of a list cannot both be true.
fn disagree(one: (&Read, &Reply), two: (&Read, &Reply)) -> bool {
    let (Read::LRange(first @ 0.., last @ 0..), Reply::List(list)) = one else { return false };
    let (Read::LRange(from @ 0.., to @ 0..), Reply::List(other)) = two else { return false };
    let at = |list: &[bytes::Bytes], first: i64, place: i64| list.get((place - first) as usize).cloned();
    let longest = first.saturating_add(list.len() as i64).max(from.saturating_add(other.len() as i64));
    let (begin, end) = (*first.max(from), *last.min(to).min(&longest));
    (begin..=end).any(|place| at(list, *first, place) != at(other, *from, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn list(elements: &[&'static str]) -> Reply {
        Reply::List(elements.iter().map(|e| Bytes::from_static(e.as_bytes())).collect())
    }

    fn kept(replies: impl IntoIterator<Item = (Read, Reply)>) -> Vec<(Read, Reply)> {
        let mut kept = CachedKey::default();
        (0..).zip(replies).for_each(|(tick, (read, reply))| kept.keep(read, reply, tick));
        let bytes: usize = kept.replies.iter().map(|(_, reply)| weight(reply)).sum();
        assert_eq!(kept.bytes(), bytes);
        kept.replies
    }

    #[test]
    fn a_wider_range_takes_the_place_of_its_parts() {
        let len = (Read::LLen, Reply::Int(1));
        let wide = (Read::LRange(0, 15), list(&["a"]));
        let part = (Read::LRange(0, 0), list(&["a"]));
        assert_eq!(kept([part.clone(), len.clone(), wide.clone()]), [len, wide.clone()]);
        assert_eq!(kept([wide.clone(), part, wide.clone()]), [wide], "also where it is seen again");
    }

    #[test]
    fn ranges_that_agree_stay_and_others_go() {
        let head = (Read::LRange(0, 2), list(&["a", "b", "c"]));
        let next = (Read::LRange(2, 3), list(&["c"]));
        assert_eq!(kept([head.clone(), next.clone()]), [head.clone(), next]);
        let other = (Read::LRange(2, 3), list(&["d"]));
        assert_eq!(kept([head.clone(), other.clone()]), [other]);
        let ended = (Read::LRange(2, i64::MAX), list(&[]));
        assert_eq!(kept([head, ended.clone()]), [ended]);
    }

    #[test]
    fn life_and_absence_do_not_stand_side_by_side() {
        let lives = (Read::HLen, Reply::Int(2));
        let field = (Read::HGet(Bytes::from_static(b"f")), Reply::Nil);
        let gone = (Read::Exists, Reply::Int(0));
        assert_eq!(kept([gone.clone(), field.clone(), lives.clone()]), [field.clone(), lives.clone()]);
        assert_eq!(kept([lives, field.clone(), gone.clone()]), [field, gone]);
    }
}
