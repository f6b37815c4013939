//! All reactors of one tenant or of all tenants: list, teardown and sweep.

use crate::answer::Answer;
use crate::error::{ApiError, ProblemDetails};
use crate::extract::{Json, Path, Query};
use crate::routes::paging::{self, PageQuery};
use crate::routes::path::TenantPath;
use crate::routes::responses::problems;
use crate::routes::sweep::Turns;
use crate::state::AppState;
use axum::extract::State;
use emberkeep_games::reactors::{self, Reactor};
use serde::Serialize;
use utoipa::ToSchema;

/// A page of the reactors of a tenant.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorPage {
    /// The reactors; may be empty although more follow. A reactor may be on two pages.
    reactors: Vec<Reactor>,
    /// Records that could not be read; the others are listed.
    corrupt: Vec<ProblemDetails>,
    /// The `cursor` of the next page; `null` on the last page.
    next: Option<String>,
}

/// Lists all reactors of a tenant, page by page.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/reactors", tag = "reactors",
    params(TenantPath, PageQuery), responses((status = 200, description = "A page", body = ReactorPage)))]
pub(super) async fn list_reactors(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
    Query(query): Query<PageQuery>,
) -> Result<Answer<ReactorPage>, ApiError> {
    let (cursor, limit) = query.parse()?;
    let page = app.reactors.page(tenant, cursor, limit).await?;
    let (reactors, corrupt) = (page.listing.living, problems(page.listing.corrupt));
    Ok(Answer(ReactorPage { reactors, corrupt, next: paging::next(page.next) }))
}

/// The result of a teardown.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsTornDown {
    /// Removed reactors, including records that could not be read.
    reactors: usize,
    /// Removed cooldowns of spots.
    cooldowns: usize,
    /// Keys of a wrong type, which were deleted.
    discarded: Vec<ProblemDetails>,
    /// Records that could not be read, do not name their tenant, and were left unchanged.
    corrupt: Vec<ProblemDetails>,
}

impl From<reactors::TeardownReport> for ReactorsTornDown {
    fn from(torn: reactors::TeardownReport) -> ReactorsTornDown {
        let reactors::TeardownReport { reactors, cooldowns, discarded, corrupt } = torn;
        ReactorsTornDown { reactors, cooldowns, discarded: problems(discarded), corrupt: problems(corrupt) }
    }
}

/// Removes all reactors and cooldowns of a tenant.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/reactors", tag = "reactors",
    params(TenantPath),
    responses((status = 200, description = "The number of removed records", body = ReactorsTornDown)))]
pub(super) async fn tear_down_reactors(
    State(app): State<AppState>,
    Path(tenant): TenantPath,
) -> Result<Answer<ReactorsTornDown>, ApiError> {
    Ok(Answer(app.reactors.teardown(tenant).await?.into()))
}

/// Removes all reactors and cooldowns of all tenants.
#[utoipa::path(delete, path = "/v1/reactors", tag = "reactors",
    responses((status = 200, description = "The number of removed records", body = ReactorsTornDown)))]
pub(super) async fn tear_down_all_reactors(
    State(app): State<AppState>,
) -> Result<Answer<ReactorsTornDown>, ApiError> {
    Ok(Answer(app.reactors.teardown_all().await?.into()))
}

/// The repairs of a sweep so far.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsSwept {
    /// Whether the sweep is complete. The next call starts another one.
    over: bool,
    /// Removed index entries without a reactor.
    stale: usize,
    /// Reactors that were missing in an index and were added.
    orphans: usize,
    /// Cooldowns of external services that were added to the index of their field.
    cooldowns: usize,
    /// Corrected auxiliary entries of reactors.
    spots: usize,
    /// Records that could not be read.
    corrupt: Vec<ProblemDetails>,
}

impl ReactorsSwept {
    fn of(swept: &reactors::SweepReport, over: bool) -> ReactorsSwept {
        let corrupt = [&swept.fields.corrupt[..], &swept.all.corrupt[..]].concat();
        ReactorsSwept {
            over,
            stale: swept.fields.stale + swept.all.stale,
            orphans: swept.fields.orphans + swept.all.orphans,
            cooldowns: swept.cooldowns,
            spots: swept.spots,
            corrupt: problems(corrupt),
        }
    }
}

/// Continues or starts this server's sweep over all reactors: repairs indexes, removes orphaned records.
#[utoipa::path(post, path = "/v1/reactors/sweep", tag = "reactors",
    request_body = Turns,
    responses((status = 200, description = "The repairs so far", body = ReactorsSwept)))]
pub(super) async fn sweep_reactors(
    State(app): State<AppState>,
    Json(body): Json<Turns>,
) -> Result<Answer<ReactorsSwept>, ApiError> {
    let turns = body.turns()?;
    let mut place = app.sweeps.reactors.lock().await;
    let sweep = place.get_or_insert_with(|| app.reactors.sweep());
    let mut over = false;
    for _ in 0..turns {
        over = !sweep.turn().await?;
        if over {
            break;
        }
    }
    let found = ReactorsSwept::of(sweep.report(), over);
    if over {
        *place = None;
    }
    Ok(Answer(found))
}
