//! Numbers in the fields of hashes: whether every increment of a list of writes can be applied.

use super::precondition::Sums;
use super::{RawKey, Write, not_an_integer_field, parse_integer, sum_of};
use crate::error::Result;
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::ops::RangeInclusive;

/// The fields of one hash, as far as increments depend on them.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldNumbers {
    fields: HashMap<Bytes, FieldNumber, RandomState>,
    /// A DEL or SET removed the fields that are not listed.
    cut: bool,
}

#[derive(Debug, Clone, Default)]
struct FieldNumber {
    /// Increments of the value before the list.
    sums: Option<Sums>,
    state: FieldState,
}

#[derive(Debug, Clone, Copy, Default)]
enum FieldState {
    /// The value before the list, plus the increments so far.
    #[default]
    Unread,
    /// A written value; `None` if it is not an integer. An absent field is 0.
    Written(Option<i64>),
}

impl FieldNumbers {
    /// A hash before its first write; `cut` = a DEL or SET removed what was stored.
    pub(super) fn new(cut: bool) -> FieldNumbers {
        FieldNumbers { cut, ..FieldNumbers::default() }
    }

    /// Adds a write of the key to those of `before`, or returns the error that it would cause whatever the
    /// hash stores.
    pub(super) fn follow(
        &mut self,
        before: Option<&FieldNumbers>,
        key: &RawKey,
        write: &Write,
    ) -> Result<()> {
        match write {
            Write::Set(..) | Write::Del => {
                self.fields.values_mut().for_each(|field| field.state = FieldState::Written(Some(0)));
                self.cut = true;
            }
            Write::HSet(pairs) => pairs.iter().for_each(|(field, text)| {
                self.field(before, field).state = FieldState::Written(parse_integer(text));
            }),
            Write::HDel(gone) => {
                gone.iter().for_each(|field| self.field(before, field).state = FieldState::Written(Some(0)));
            }
            Write::HIncrBy(field, by) => {
                let number = self.field(before, field);
                match &mut number.state {
                    FieldState::Unread => number.sums.get_or_insert_default().add(*by),
                    FieldState::Written(Some(value)) => *value = sum_of(key, *value, *by)?,
                    FieldState::Written(None) => return Err(not_an_integer_field(key, field)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A field with what is known of it: from these writes, or from those before.
    fn field(&mut self, before: Option<&FieldNumbers>, field: &Bytes) -> &mut FieldNumber {
        let cut = self.cut;
        self.fields.entry_ref(field).or_insert_with(|| {
            let mut number = before.and_then(|before| before.fields.get(field).cloned()).unwrap_or_default();
            let is_unknown = number.sums.is_none() && matches!(number.state, FieldState::Unread);
            if cut || (is_unknown && before.is_some_and(|before| before.cut)) {
                number.state = FieldState::Written(Some(0));
            }
            number
        })
    }

    /// Adds the writes that followed these.
    pub(super) fn absorb(&mut self, later: FieldNumbers) {
        if later.cut {
            self.fields.values_mut().for_each(|field| field.state = FieldState::Written(Some(0)));
            self.cut = true;
        }
        self.fields.extend(later.fields);
    }

    /// The fields that must be integers of a range before the first write.
    pub(super) fn required(&self) -> impl Iterator<Item = (&Bytes, RangeInclusive<i64>)> {
        self.fields.iter().filter_map(|(field, number)| Some((field, number.sums?.range())))
    }
}

/// Checks that every increment of a field can be applied. `stored` returns the field before the list.
pub(crate) fn check_fields(
    writes: &[(RawKey, Write)],
    mut stored: impl FnMut(&RawKey, &Bytes) -> Result<Option<Bytes>>,
) -> Result<()> {
    if !writes.iter().any(|(_, write)| matches!(write, Write::HIncrBy(..))) {
        return Ok(());
    }
    let mut keys: HashMap<&RawKey, FieldNumbers, RandomState> = HashMap::default();
    for (key, write) in writes {
        keys.entry(key).or_default().follow(None, key, write)?;
    }
    for (key, numbers) in keys {
        for (field, range) in numbers.required() {
            let text = stored(key, field)?;
            let value = text.map_or(Some(0), |text| parse_integer(&text));
            let value = value.ok_or_else(|| not_an_integer_field(key, field))?;
            if !range.contains(&value) {
                return Err(Sums::overflow(key, value, &range));
            }
        }
    }
    Ok(())
}
