//! All reactors of a tenant, and of all.

use super::shape;
use crate::app::App;
use crate::extract::{Json, Path, Query};
use crate::problem::{Body, Problem};
use crate::routes::answers::told;
use crate::routes::paging::{self, PageQuery};
use crate::routes::place::TenantPath;
use crate::routes::sweeping::Turns;
use axum::Json as Answer;
use axum::extract::State;
use emberkeep_games::reactors::{self, Reactor};
use serde::Serialize;
use utoipa::ToSchema;

/// Some reactors of a tenant.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorPage {
    /// Those of the tenant; possibly none although more follow. One may stand on two pages.
    #[schema(value_type = Vec<shape::Reactor>)]
    reactors: Vec<Reactor>,
    /// Records that could not be read. They do not hide the others.
    corrupt: Vec<Body>,
    /// The `cursor` of the next page; `null` at the end.
    next: Option<String>,
}

/// Lists all reactors of a tenant, page by page.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/reactors", tag = "reactors",
    params(TenantPath, PageQuery), responses((status = 200, description = "A page", body = ReactorPage)))]
pub(super) async fn list_reactors(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<ReactorPage>, Problem> {
    let (from, limit) = query.read()?;
    let page = app.reactors.page(path.tenant(), from, limit).await?;
    let (reactors, corrupt) = (page.listing.living, told(page.listing.corrupt));
    Ok(Answer(ReactorPage { reactors, corrupt, next: paging::next(page.next) }))
}

/// What a teardown removed.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsTornDown {
    /// Reactors, and records that could not be read.
    reactors: usize,
    /// Cooldowns.
    cooldowns: usize,
    /// Keys that held something else than an index, and were deleted with it.
    discarded: Vec<Body>,
    /// Records that cannot be read and do not say whose they are. They were left.
    corrupt: Vec<Body>,
}

impl From<reactors::TeardownReport> for ReactorsTornDown {
    fn from(torn: reactors::TeardownReport) -> ReactorsTornDown {
        let reactors::TeardownReport { reactors, cooldowns, discarded, corrupt } = torn;
        ReactorsTornDown { reactors, cooldowns, discarded: told(discarded), corrupt: told(corrupt) }
    }
}

/// Removes every reactor and every cooldown of a tenant.
#[utoipa::path(delete, path = "/v1/tenants/{tenant}/reactors", tag = "reactors",
    params(TenantPath), responses((status = 200, description = "What was removed", body = ReactorsTornDown)))]
pub(super) async fn tear_down_reactors(
    State(app): State<App>,
    Path(path): Path<TenantPath>,
) -> Result<Answer<ReactorsTornDown>, Problem> {
    Ok(Answer(app.reactors.teardown(path.tenant()).await?.into()))
}

/// Removes every reactor and every cooldown of all tenants.
#[utoipa::path(delete, path = "/v1/reactors", tag = "reactors",
    responses((status = 200, description = "What was removed", body = ReactorsTornDown)))]
pub(super) async fn tear_down_all_reactors(
    State(app): State<App>,
) -> Result<Answer<ReactorsTornDown>, Problem> {
    Ok(Answer(app.reactors.teardown_all().await?.into()))
}

/// What a sweep found and set right so far.
#[derive(Serialize, ToSchema)]
pub(super) struct ReactorsSwept {
    /// Whether the sweep is at its end. The next call begins another one.
    over: bool,
    /// Entries of indexes without a reactor, removed.
    ghosts: usize,
    /// Reactors that an index did not know, entered.
    orphans: usize,
    /// Cooldowns that others started, now known to their field.
    cooldowns: usize,
    /// Reactors of which something else was remembered than their records say.
    spots: usize,
    /// Records that could not be read.
    corrupt: Vec<Body>,
}

impl ReactorsSwept {
    fn of(swept: &reactors::SweepReport, over: bool) -> ReactorsSwept {
        let corrupt = [&swept.fields.corrupt[..], &swept.all.corrupt[..]].concat();
        ReactorsSwept {
            over,
            ghosts: swept.fields.ghosts + swept.all.ghosts,
            orphans: swept.fields.orphans + swept.all.orphans,
            cooldowns: swept.cooldowns,
            spots: swept.spots,
            corrupt: told(corrupt),
        }
    }
}

/// Goes on with this server's sweep over all reactors, or begins one: sets right what nobody meets by himself.
#[utoipa::path(post, path = "/v1/reactors/sweep", tag = "reactors",
    responses((status = 200, description = "What was found so far", body = ReactorsSwept)))]
pub(super) async fn sweep_reactors(
    State(app): State<App>,
    Json(body): Json<Turns>,
) -> Result<Answer<ReactorsSwept>, Problem> {
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
