//! Pages of long lists.

use crate::error::ApiError;
use crate::limits::{PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX};
use emberkeep_hot::engine::MemberCursor;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which page of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// Approximate number of entries; 100 if absent. A page may have fewer although more follow, or more.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
    /// The `next` of the previous page; absent for the first page.
    cursor: Option<String>,
}

impl PageQuery {
    /// The cursor of the page, and how many entries it has.
    pub(super) fn parse(&self) -> Result<(Option<MemberCursor>, usize), ApiError> {
        let limit = self.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from);
        if !(1..=PAGE_ENTRIES_MAX).contains(&limit) {
            let message = format!("a limit of {limit}, expected 1 to {PAGE_ENTRIES_MAX}");
            return Err(ApiError::invalid(message).with("what", "limit"));
        }
        let cursor = self.cursor.as_deref().map(str::parse).transpose()?;
        Ok((cursor, limit))
    }
}

/// The cursor of the next page as text.
pub(super) fn next(cursor: Option<MemberCursor>) -> Option<String> {
    cursor.map(|cursor| cursor.to_string())
}
