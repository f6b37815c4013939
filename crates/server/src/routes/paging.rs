//! Lists that can be long: a page, and where the next one begins.

use crate::limits::{PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX};
use crate::problem::Problem;
use emberkeep_hot::engine::MemberCursor;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which part of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// About how many entries to look at; 100 if not given. A page may hold fewer although more follow, and a few more
    /// where a server keeps them together.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
    /// The `next` of an earlier page; the first page is without.
    cursor: Option<String>,
}

impl PageQuery {
    /// Where the page begins, and about how many entries it has.
    pub(super) fn read(&self) -> Result<(Option<MemberCursor>, usize), Problem> {
        let limit = self.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from);
        if !(1..=PAGE_ENTRIES_MAX).contains(&limit) {
            let message = format!("a limit of {limit}, expected 1 to {PAGE_ENTRIES_MAX}");
            return Err(Problem::invalid(message).with("what", "limit"));
        }
        let cursor = self.cursor.as_deref().map(str::parse).transpose()?;
        Ok((cursor, limit))
    }
}

/// The place of the next page, as it is sent.
pub(super) fn next(cursor: Option<MemberCursor>) -> Option<String> {
    cursor.map(|cursor| cursor.to_string())
}
