//! Sorted sets after writes: counts by the touched members, ranges wide enough to hold enough untouched ones.

use super::*;
use crate::command::too_large;
use std::cmp::Ordering;

/// What became of a member.
#[derive(Clone)]
pub(super) enum ScoreAfter {
    Gone,
    Is(Score),
    /// The score in the source, increased by these in turn: their sum could round to another score.
    Plus(Vec<Score>),
}

impl ScoreAfter {
    pub(super) fn increase(&mut self, by: Score) {
        match self {
            ScoreAfter::Gone => *self = ScoreAfter::Is(by),
            ScoreAfter::Is(score) => *score = score.plus(by),
            ScoreAfter::Plus(increments) => increments.push(by),
        }
    }

    /// The score; `None` = the member is gone.
    fn resolve(&self, below: &mut KeySource<'_>, member: &Bytes) -> Result<Option<Score>> {
        Ok(match self {
            ScoreAfter::Gone => None,
            ScoreAfter::Is(score) => Some(*score),
            ScoreAfter::Plus(increments) => {
                let before = below.score(member)?.unwrap_or(Score::from_i64(0));
                Some(increments.iter().fold(before, |score, by| score.plus(*by)))
            }
        })
    }
}

/// The touched members with their scores; `None` = removed.
type Scores = BTreeMap<Bytes, Option<Score>>;

pub(super) fn read_scores(
    below: &mut KeySource<'_>,
    touched: &BTreeMap<Bytes, ScoreAfter>,
    read: &Read,
) -> Result<Reply> {
    if let Read::ZScore(member) = read {
        return match touched.get(member) {
            Some(after) => Ok(after.resolve(below, member)?.map_or(Reply::Nil, Reply::Score)),
            None => below.ask(read.clone()),
        };
    }
    // All of them, also after one that is not available: so they are fetched together.
    let resolved: Vec<_> = touched.iter().map(|(m, after)| (m.clone(), after.resolve(below, m))).collect();
    let scores: Scores = resolved.into_iter().map(|(m, score)| Ok((m, score?))).collect::<Result<_>>()?;
    let scores = &scores;
    match read {
        Read::ZCard => count_scores(below, scores, read, |_, _| true),
        Read::ZRank(member, reverse) => rank(below, scores, member, *reverse),
        Read::ZCount(min, max) => count_scores(below, scores, read, |_, s| in_scores(s, min, max)),
        Read::ZLexCount(min, max) => count_scores(below, scores, read, |m, _| in_lex(m, min, max)),
        Read::ZRange(slice, reverse) => range_scores(below, scores, slice, *reverse),
        other => Err(mismatch(other, &Reply::Nil)),
    }
}

fn count_scores(
    below: &mut KeySource<'_>,
    scores: &Scores,
    read: &Read,
    counts: impl Fn(&Bytes, Score) -> bool,
) -> Result<Reply> {
    let mut count = below.int(read.clone())?;
    for (member, after) in scores {
        if let Some(before) = below.score(member)? {
            count -= counts(member, before) as i64;
        }
        count += after.is_some_and(|score| counts(member, score)) as i64;
    }
    Ok(Reply::Int(count))
}

/// A range after writes: the range of the source, widened by the number of touched members on each open side,
/// holds enough untouched ones; the touched ones are put in where they now belong.
fn range_scores(below: &mut KeySource<'_>, scores: &Scores, slice: &ZSlice, reverse: bool) -> Result<Reply> {
    let own = |belongs: &dyn Fn(&Bytes, Score) -> bool| -> Vec<Scored> {
        let after = scores.iter().filter_map(|(member, score)| Some((member.clone(), (*score)?)));
        after.filter(|(member, score)| belongs(member, *score)).collect()
    };
    let list = match slice {
        ZSlice::Rank(start, stop) => by_rank(below, scores, own(&|_, _| true), (*start, *stop), reverse)?,
        ZSlice::Score(min, max, limit) => {
            let own = own(&|_, score| in_scores(score, min, max));
            let wider = |limit| ZSlice::Score(*min, *max, limit);
            by_limit(below, scores, own, wider, *limit, reverse)?
        }
        ZSlice::Lex(min, max, limit) => {
            // The source gives 0 for every score of a byte range, so own members must stand among them with
            // 0.
            let own = own(&|member, _| in_lex(member, min, max)).into_iter();
            let own = own.map(|(member, _)| (member, Score::from_i64(0))).collect();
            let wider = |limit| ZSlice::Lex(min.clone(), max.clone(), limit);
            by_limit(below, scores, own, wider, *limit, reverse)?
        }
    };
    Ok(Reply::Scored(list))
}

type Scored = (Bytes, Score);

/// The order of a range in its direction.
fn order(a: &Scored, b: &Scored, reverse: bool) -> Ordering {
    let ascending = (a.1, &a.0).cmp(&(b.1, &b.0));
    if reverse { ascending.reverse() } else { ascending }
}

/// The untouched members of a source range, and the own ones where they belong.
fn merged(source: &[Scored], scores: &Scores, own: Vec<Scored>, reverse: bool) -> Vec<Scored> {
    let mut merged: Vec<Scored> = source.iter().filter(|(m, _)| !scores.contains_key(m)).cloned().collect();
    merged.extend(own);
    merged.sort_by(|a, b| order(a, b, reverse));
    merged
}

/// Positions. A member moves by at most the number of touched ones, so the source is asked for that much
/// more on both sides, not from its beginning: the end of a long sorted set stays within reach.
fn by_rank(
    below: &mut KeySource<'_>,
    scores: &Scores,
    mut own: Vec<Scored>,
    (start, stop): (i64, i64),
    reverse: bool,
) -> Result<Vec<Scored>> {
    let Reply::Int(card) = count_scores(below, scores, &Read::ZCard, |_, _| true)? else { return Ok(vec![]) };
    let Some((start, stop)) = resolve(start, stop, card as usize) else { return Ok(vec![]) };
    let wanted = Read::ZRange(ZSlice::Rank(start as i64, stop as i64), reverse);
    wanted.check(below.key)?;
    let first = start.saturating_sub(scores.len());
    let source = below.ranks(first, stop + scores.len(), reverse)?;
    let mut skip = start;
    if first > 0
        && let Some(edge) = source.first()
    {
        // Own members before the edge of what was asked lie before `start`: only their number counts.
        let touched_before = below.held_before(scores, edge, reverse)?;
        let all = own.len();
        own.retain(|member| order(member, edge, reverse).is_ge());
        skip = start
            .saturating_sub(first.saturating_sub(touched_before))
            .saturating_sub(all.saturating_sub(own.len()));
    }
    Ok(merged(&source, scores, own, reverse).into_iter().skip(skip).take(stop - start + 1).collect())
}

/// The first `limit` members of a range without positions.
fn by_limit(
    below: &mut KeySource<'_>,
    scores: &Scores,
    own: Vec<Scored>,
    slice: impl Fn(usize) -> ZSlice,
    limit: usize,
    reverse: bool,
) -> Result<Vec<Scored>> {
    let enough = limit + scores.len();
    let asked = enough.min(REPLY_ELEMENTS_MAX);
    let read = Read::ZRange(slice(asked), reverse);
    let source = below.scored(&read)?;
    let mut list = merged(&source, scores, own, reverse);
    if asked < enough
        && source.len() == asked
        && let Some(last) = source.last()
    {
        // What lies beyond the last one that could be asked for is not known.
        list.retain(|member| order(member, last, reverse).is_le());
        if list.len() < limit {
            return Err(too_large(below.key, &read, enough, "elements", REPLY_ELEMENTS_MAX));
        }
    }
    list.truncate(limit);
    Ok(list)
}

/// The position of a member. Of one that was not touched: that in the source, without the touched members
/// before it. Then those that stand before it now are counted.
fn rank(below: &mut KeySource<'_>, scores: &Scores, member: &Bytes, reverse: bool) -> Result<Reply> {
    let score = match scores.get(member) {
        Some(after) => *after,
        None => below.score(member)?,
    };
    let Some(score) = score else { return Ok(Reply::Nil) };
    let item = (member.clone(), score);
    let before = match scores.contains_key(member) {
        true => below.before(&item)?,
        false => below.int(Read::ZRank(member.clone(), false))? as usize,
    };
    // The replies of a cache may be of different moments. A wrong result is found when the commit compares them.
    let untouched = before.saturating_sub(below.held_before(scores, &item, false)?);
    let own = scores.iter().filter_map(|(member, score)| Some((member.clone(), (*score)?)));
    let rank = untouched + own.filter(|own| order(own, &item, false).is_lt()).count();
    Ok(Reply::Int(match reverse {
        false => rank as i64,
        true => {
            let Reply::Int(card) = count_scores(below, scores, &Read::ZCard, |_, _| true)? else {
                return Ok(Reply::Nil);
            };
            card - 1 - rank as i64
        }
    }))
}

impl KeySource<'_> {
    fn score(&mut self, member: &Bytes) -> Result<Option<Score>> {
        let ask = Read::ZScore(member.clone());
        Ok(match self.ask(ask.clone())?.checked(self.key, &ask)? {
            Reply::Score(score) => Some(score),
            _ => None,
        })
    }

    /// How many members of the source stand before this place. If all scores are equal, as on a board that is
    /// ordered by its members, one command counts them. Otherwise none does among equal scores, so their range
    /// is halved until one reply holds the rest.
    fn before(&mut self, item: &Scored) -> Result<usize> {
        let lower = Read::ZCount(ScoreBound::MIN, ScoreBound::Excluded(item.1));
        let not_higher = Read::ZCount(ScoreBound::MIN, ScoreBound::Included(item.1));
        // All of them, also after one that is not available: so they are fetched together.
        let (lower, not_higher, card) = (self.int(lower), self.int(not_higher), self.int(Read::ZCard));
        let (mut first, mut end, card) = (lower? as usize, not_higher? as usize, card? as usize);
        end = end.max(first);
        if first == 0 && end == card && card > REPLY_ELEMENTS_MAX {
            let before = LexBound::Excluded(item.0.clone());
            return Ok(self.int(Read::ZLexCount(LexBound::Min, before))? as usize);
        }
        while end - first > REPLY_ELEMENTS_MAX {
            let middle = first + (end - first) / 2;
            match self.ranks(middle, middle, false)?.first() {
                Some(held) if order(held, item, false).is_lt() => first = middle + 1,
                _ => end = middle,
            }
        }
        if first == end {
            return Ok(first);
        }
        let equal = self.ranks(first, end - 1, false)?;
        Ok(first + equal.iter().filter(|held| order(held, item, false).is_lt()).count())
    }

    fn scored(&mut self, read: &Read) -> Result<Vec<Scored>> {
        match self.ask(read.clone())?.checked(self.key, read)? {
            Reply::Scored(list) => Ok(list),
            other => Err(mismatch(read, &other)),
        }
    }

    /// Positions of the source, asked for in pieces that a reply may hold.
    fn ranks(&mut self, first: usize, last: usize, reverse: bool) -> Result<Vec<Scored>> {
        let mut list = Vec::new();
        for from in (first..=last).step_by(REPLY_ELEMENTS_MAX) {
            let to = last.min(from + REPLY_ELEMENTS_MAX - 1);
            list.extend(self.scored(&Read::ZRange(ZSlice::Rank(from as i64, to as i64), reverse))?);
        }
        Ok(list)
    }

    /// How many of the touched members stand before `edge` in the source.
    fn held_before(&mut self, scores: &Scores, edge: &Scored, reverse: bool) -> Result<usize> {
        let mut count = 0;
        for member in scores.keys() {
            if let Some(score) = self.score(member)? {
                count += order(&(member.clone(), score), edge, reverse).is_lt() as usize;
            }
        }
        Ok(count)
    }
}

/// Whether a score lies in the range. For engines.
pub fn in_scores(score: Score, min: &ScoreBound, max: &ScoreBound) -> bool {
    let above = match min {
        ScoreBound::Included(bound) => score >= *bound,
        ScoreBound::Excluded(bound) => score > *bound,
    };
    above
        && match max {
            ScoreBound::Included(bound) => score <= *bound,
            ScoreBound::Excluded(bound) => score < *bound,
        }
}

/// Whether a member lies in the byte range. For engines.
pub fn in_lex(member: &[u8], min: &LexBound, max: &LexBound) -> bool {
    let above = match min {
        LexBound::Min => true,
        LexBound::Max => false,
        LexBound::Included(bound) => member >= &bound[..],
        LexBound::Excluded(bound) => member > &bound[..],
    };
    above
        && match max {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Included(bound) => member <= &bound[..],
            LexBound::Excluded(bound) => member < &bound[..],
        }
}
