//! Sorted sets after writes: counts by the touched members, ranges wide enough to hold enough untouched ones.

use super::*;

type Scores = BTreeMap<Bytes, Option<Score>>;

pub(super) fn read_scores(below: &mut Below<'_>, scores: &Scores, read: &Read) -> Result<Reply> {
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
    below: &mut Below<'_>,
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

/// A range after writes: a base range longer by the number of touched members holds enough untouched ones.
fn range_scores(below: &mut Below<'_>, scores: &Scores, slice: &ZSlice, reverse: bool) -> Result<Reply> {
    let touched = scores.len();
    let (wider, skip, take) = match slice {
        ZSlice::Rank(start, stop) => {
            let Reply::Int(card) = read_scores(below, scores, &Read::ZCard)? else { return Ok(Reply::Nil) };
            let Some((start, stop)) = resolve(*start, *stop, card as usize) else {
                return Ok(Reply::Scored(vec![]));
            };
            (ZSlice::Rank(0, (stop + touched) as i64), start, stop - start + 1)
        }
        ZSlice::Score(min, max, limit) => (ZSlice::Score(*min, *max, limit + touched), 0, *limit),
        ZSlice::Lex(min, max, limit) => (ZSlice::Lex(min.clone(), max.clone(), limit + touched), 0, *limit),
    };
    let wider = Read::ZRange(wider, reverse);
    wider.check(below.key)?;
    let Reply::Scored(base) = below.ask(wider.clone())?.checked(below.key, &wider)? else {
        return Err(mismatch(&wider, &Reply::Nil));
    };
    let mut merged: Vec<(Bytes, Score)> = base.into_iter().filter(|(m, _)| !scores.contains_key(m)).collect();
    let belongs = |member: &Bytes, score: Score| match slice {
        ZSlice::Rank(..) => true,
        ZSlice::Score(min, max, _) => in_scores(score, min, max),
        ZSlice::Lex(min, max, _) => in_lex(member, min, max),
    };
    merged.extend(scores.iter().filter_map(|(m, s)| s.filter(|s| belongs(m, *s)).map(|s| (m.clone(), s))));
    merged.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    if reverse {
        merged.reverse();
    }
    let scored = merged.into_iter().skip(skip).take(take);
    Ok(Reply::Scored(match slice {
        ZSlice::Lex(..) => scored.map(|(member, _)| (member, Score::from_i64(0))).collect(),
        _ => scored.collect(),
    }))
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
