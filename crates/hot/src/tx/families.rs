//! The families that a transaction writes to, so that an error of the commit can name the family of its raw
//! key.

use super::decode::with_family_named;
use crate::error::{Error, shown};
use emberkeep_schema::{Declaration, Family, KeyLayout};
use smallvec::SmallVec;

/// Families of a transaction's typed writes, each once. Nothing is parsed unless a commit is refused.
#[derive(Default)]
pub(super) struct Families {
    written: SmallVec<[WrittenFamily; 4]>,
}

struct WrittenFamily {
    declaration: &'static Declaration,
    owns: fn(&KeyLayout, &[u8]) -> bool,
}

fn owns<F: Family>(layout: &KeyLayout, raw: &[u8]) -> bool {
    F::parse(layout, raw).is_some()
}

impl Families {
    pub(super) fn clear(&mut self) {
        self.written.clear();
    }

    /// The body writes to a key of this family.
    pub(super) fn note<F: Family>(&mut self) {
        let declaration = F::DECLARATION;
        if !self.written.iter().any(|known| std::ptr::eq(known.declaration, declaration)) {
            self.written.push(WrittenFamily { declaration, owns: owns::<F> });
        }
    }

    /// Adds the family to an error whose key is of one of these.
    pub(super) fn explain(&self, layout: &KeyLayout, error: Error) -> Error {
        let (Error::WrongType { key, .. }
        | Error::TooLarge { key, .. }
        | Error::Overflow { key, .. }
        | Error::Corrupt { key, .. }) = &error
        else {
            return error;
        };
        let Some(raw) = shown(key) else { return error };
        match self.written.iter().find(|family| (family.owns)(layout, &raw)) {
            Some(family) => with_family_named(error, family.declaration.name),
            None => error,
        }
    }
}
