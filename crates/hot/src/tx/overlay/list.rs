//! Lists after writes: what is left of the source, and what was pushed around it.

use super::*;

/// A list as the part of the source that is left, and what was pushed around it.
struct ListView {
    front: VecDeque<Bytes>,
    source: std::ops::Range<usize>,
    back: VecDeque<Bytes>,
    /// Elements in place of those at these positions of the source.
    replaced: BTreeMap<usize, Bytes>,
}

impl ListView {
    fn len(&self) -> usize {
        self.front.len() + self.source.len() + self.back.len()
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::LPush(values) => values.iter().for_each(|v| self.front.push_front(v.clone())),
            Write::RPush(values) => self.back.extend(values.iter().cloned()),
            // Bounded by what is there: a body may ask for any number.
            Write::LPop(count) => (0..self.len().min(*count)).for_each(|_| self.pop_front()),
            Write::RPop(count) => (0..self.len().min(*count)).for_each(|_| self.pop_back()),
            Write::LSet(at, value) => {
                if let Some((at, _)) = resolve(*at, *at, self.len()) {
                    self.replace(at, value.clone());
                }
            }
            Write::LTrim(start, stop) => match resolve(*start, *stop, self.len()) {
                Some((from, to)) => {
                    let surplus = self.len() - 1 - to;
                    (0..from).for_each(|_| self.pop_front());
                    (0..surplus).for_each(|_| self.pop_back());
                }
                None => self.clear(),
            },
            Write::Del | Write::Set(..) => self.clear(),
            _ => {}
        }
    }

    fn replace(&mut self, at: usize, value: Bytes) {
        let (front, source) = (self.front.len(), self.source.len());
        if at < front {
            self.front[at] = value;
        } else if at < front + source {
            self.replaced.insert(self.source.start + at - front, value);
        } else {
            self.back[at - front - source] = value;
        }
    }

    fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.source = 0..0;
    }

    fn pop_front(&mut self) {
        if self.front.pop_front().is_none() && self.source.next().is_none() {
            self.back.pop_front();
        }
    }

    fn pop_back(&mut self) {
        if self.back.pop_back().is_none() && self.source.next_back().is_none() {
            self.front.pop_back();
        }
    }
}

pub(super) fn read_list(below: &mut KeySource<'_>, writes: &[&Write], read: &Read) -> Result<Reply> {
    if let Some(reply) = read_head(below, writes, read)? {
        return Ok(reply);
    }
    if let (Read::LRange(-1, -1), Some(last)) = (read, pushed_last(writes)) {
        return Ok(Reply::List(vec![last]));
    }
    // The writes before a DEL or SET do not matter, and neither does the source then.
    let len = below.int(Read::LLen)? as usize;
    let (front, back) = (VecDeque::new(), VecDeque::new());
    let mut view = ListView { front, source: 0..len, back, replaced: BTreeMap::new() };
    writes.iter().for_each(|write| view.apply(write));
    let (start, stop) = match read {
        Read::LRange(start, stop) => (*start, *stop),
        _ => return Ok(Reply::Int(view.len() as i64)),
    };
    let Some((from, to)) = resolve(start, stop, view.len()) else { return Ok(Reply::List(vec![])) };
    if to - from >= REPLY_ELEMENTS_MAX {
        return Ok(Reply::TooMany(to - from + 1));
    }
    let (front, source) = (view.front.len(), view.source.len());
    let mut list: Vec<Bytes> = view.front.iter().skip(from).take(to + 1 - from).cloned().collect();
    if from < front + source && to >= front && source > 0 {
        let first = view.source.start + from.saturating_sub(front);
        let last = view.source.start + (to - front).min(source - 1);
        let ask = Read::LRange(first as i64, last as i64);
        match below.ask(ask.clone())?.checked(below.key, &ask)? {
            Reply::List(part) => {
                let held = |(at, element)| view.replaced.get(&at).cloned().unwrap_or(element);
                list.extend((first..).zip(part).map(held));
            }
            other => return Err(mismatch(&ask, &other)),
        }
    }
    let skip = from.saturating_sub(front + source);
    list.extend(view.back.iter().skip(skip).take(to + 1 - from - list.len()).cloned());
    Ok(Reply::List(list))
}

/// The last element, if these writes pushed it: then nothing of the source needs to be known.
fn pushed_last(writes: &[&Write]) -> Option<Bytes> {
    for write in writes.iter().rev() {
        match write {
            Write::RPush(values) => return values.last().cloned(),
            Write::LTrim(..=-1, -1) => {}
            write if write.is_of_deadline() => {}
            _ => return None,
        }
    }
    None
}

/// A list of which only the head was touched: what was pushed there, and where the rest of the source begins.
#[derive(Default)]
struct Head {
    front: VecDeque<Bytes>,
    taken: usize,
}

impl Head {
    /// `None` if the writes touch more than the head.
    fn of(writes: &[&Write]) -> Option<Head> {
        let mut head = Head::default();
        for write in writes {
            match write {
                Write::LPush(values) => values.iter().for_each(|v| head.front.push_front(v.clone())),
                Write::LPop(count) => {
                    let pushed = head.front.len().min(*count);
                    head.front.drain(..pushed);
                    // Beyond the end there is nothing to take, and nothing to find either.
                    head.taken = head.taken.checked_add(count - pushed)?;
                }
                write if write.is_of_deadline() => {}
                _ => return None,
            }
        }
        Some(head)
    }
}

/// A range from the head of a list of which only the head was touched. Its length is not asked for:
/// transactions that take from the head would then depend on what others do at its tail. `None` where more
/// must be known.
fn read_head(below: &mut KeySource<'_>, writes: &[&Write], read: &Read) -> Result<Option<Reply>> {
    let Read::LRange(start, stop) = read else { return Ok(None) };
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*stop)) else { return Ok(None) };
    let Some(head) = Head::of(writes) else { return Ok(None) };
    if from > to || to - from >= REPLY_ELEMENTS_MAX {
        return Ok(None);
    }
    let mut list: Vec<Bytes> = head.front.iter().skip(from).take(to + 1 - from).cloned().collect();
    let front = head.front.len();
    if to >= front {
        let first = head.taken.saturating_add(from.saturating_sub(front));
        let last = head.taken.saturating_add(to - front);
        let (Ok(first), Ok(last)) = (i64::try_from(first), i64::try_from(last)) else { return Ok(None) };
        let ask = Read::LRange(first, last);
        match below.ask(ask.clone())?.checked(below.key, &ask)? {
            Reply::List(part) => list.extend(part),
            other => return Err(mismatch(&ask, &other)),
        }
    }
    Ok(Some(Reply::List(list)))
}
