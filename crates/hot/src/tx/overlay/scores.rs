//! Sorted sets after writes: counts by the touched members, ranges wide enough to hold enough untouched ones.

use super::*;
use crate::command::too_large;
use std::cmp::Ordering;

type Scores = BTreeMap<Bytes, Option<Score>>;

pub(super) fn read_scores(below: &mut KeySource<'_>, scores: &Scores, read: &Read) -> Result<Reply> {
    match read {
        Read::ZScore(member) => match scores.get(member) {
            Some(score) => Ok(score.map_or(Reply::Nil, Reply::Score)),
            None => below.ask(read.clone()),
        },
        Read::ZCard => count_scores(below, scores, read, |_, _| true),
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
        let ask = Read::ZScore(member.clone());
        if let Reply::Score(before) = below.ask(ask.clone())?.checked(below.key, &ask)? {
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
    let Reply::Int(card) = read_scores(below, scores, &Read::ZCard)? else { return Ok(vec![]) };
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
        skip = start - (first - touched_before) - (all - own.len());
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

impl KeySource<'_> {
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
            let ask = Read::ZScore(member.clone());
            if let Reply::Score(score) = self.ask(ask.clone())?.checked(self.key, &ask)? {
                count += order(&(member.clone(), score), edge, reverse).is_lt() as usize;
            }
        }
        Ok(count)
    }
}

/// Whether a score lies in the range.
pub(crate) fn in_scores(score: Score, min: &ScoreBound, max: &ScoreBound) -> bool {
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

/// Whether a member lies in the byte range.
pub(crate) fn in_lex(member: &[u8], min: &LexBound, max: &LexBound) -> bool {
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
