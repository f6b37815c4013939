//! Ranges of time and pages of lists in history, as query parameters.

use super::sessions::bounded;
use crate::error::ApiError;
use crate::limits::{PAGE_ENTRIES_DEFAULT, PAGE_ENTRIES_MAX};
use crate::state::AppState;
use axum::http::StatusCode;
use emberkeep_games::darkages::Realm;
use emberkeep_games::darkages::archive::{Archive, Direction, PageRequest, TimeRange};
use emberkeep_games::reactors;
use emberkeep_schema::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// The archive, if the server has history.
pub(super) fn archive(app: &AppState) -> Result<Archive, ApiError> {
    let tier = app.history.get().ok_or_else(no_history)?;
    Ok(Archive::new(tier.history.clone()))
}

pub(super) fn no_history() -> ApiError {
    let detail = "this server runs without history; start it with --history or --data";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "history_not_configured", detail)
}

/// Sessions joined with profiles, if the server has history.
pub(super) fn realm(app: &AppState) -> Option<Realm> {
    let tier = app.history.get()?;
    Some(Realm::new(app.darkages.clone(), Archive::new(tier.history.clone())))
}

/// The order of a list by time.
#[derive(Deserialize, ToSchema, Clone, Copy, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum ListOrder {
    /// The latest row first.
    #[default]
    NewestFirst,
    /// The earliest row first.
    OldestFirst,
}

/// Which rows of a list.
#[derive(Deserialize, IntoParams, Default)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TimePage {
    /// Only rows from this time on: milliseconds since 1970, or RFC 3339. The beginning of today (UTC) if absent, where a
    /// list needs a range.
    #[param(example = "2026-01-01T00:00:00Z")]
    pub(super) from: Option<String>,
    /// Only rows before this time, in the same forms. The end of today if absent.
    #[param(example = "2026-01-02T00:00:00Z")]
    pub(super) to: Option<String>,
    /// The order; the latest row first if absent.
    #[param(inline)]
    pub(super) order: Option<ListOrder>,
    /// At most this many rows; 100 if absent.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    pub(super) limit: Option<u16>,
    /// The `next` of the page before, with the same other parameters; absent for the first page.
    pub(super) cursor: Option<String>,
}

impl TimePage {
    /// The range, and which page of it.
    pub(super) fn parse(&self, archive: &Archive) -> Result<(TimeRange, PageRequest), ApiError> {
        let today = Timestamp(archive.history().store().now()).day();
        let to = time("to", self.to.as_deref())?.unwrap_or(today.next().start());
        let from = time("from", self.from.as_deref())?.unwrap_or(today.start());
        Ok((TimeRange::new(from, to)?, self.page()?))
    }

    /// The same for lists that are read whole without a range.
    pub(super) fn parse_open(&self, archive: &Archive) -> Result<(Option<TimeRange>, PageRequest), ApiError> {
        if self.from.is_none() && self.to.is_none() {
            return Ok((None, self.page()?));
        }
        let (range, page) = self.parse(archive)?;
        Ok((Some(range), page))
    }

    fn page(&self) -> Result<PageRequest, ApiError> {
        Ok(PageRequest {
            rows_max: bounded(self.limit.map_or(PAGE_ENTRIES_DEFAULT, usize::from), PAGE_ENTRIES_MAX)?,
            direction: match self.order.unwrap_or_default() {
                ListOrder::NewestFirst => Direction::NewestFirst,
                ListOrder::OldestFirst => Direction::OldestFirst,
            },
            after: self.cursor.as_deref().map(str::parse).transpose()?,
        })
    }
}

/// A time of a query.
fn time(what: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let ms = text.parse().ok().or_else(|| reactors::Timestamp::parse(text));
    let time = ms.map(Timestamp).filter(|time| time.is_valid());
    time.map(Some).ok_or_else(|| {
        let detail = format!(
            "{what} is {text:?}, expected milliseconds since 1970 or RFC 3339 such as 2026-01-01T10:00:00Z, from 1970 to 9999"
        );
        ApiError::invalid(detail).with("what", what)
    })
}
