//! The audit log.

use super::page::{ListOrder, TimePage, archive};
use super::profiles::now;
use super::rows::RowPage;
use super::words::{AuditEventWord, SeverityWord};
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Query};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::archive::AuditFilter;
use emberkeep_games::darkages::history::AuditEntry;
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

type AuditEntryPage = RowPage<AuditEntry>;

/// Which entries of the audit log.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Only entries of this type.
    #[param(inline)]
    event_type: Option<AuditEventWord>,
    /// Only entries of this severity.
    #[param(inline)]
    severity: Option<SeverityWord>,
    /// Only entries from this time on: milliseconds since 1970, or RFC 3339. The beginning of today (UTC) if absent.
    #[param(example = "2026-01-01T00:00:00Z")]
    from: Option<String>,
    /// Only entries before this time. The end of today if absent.
    #[param(example = "2026-01-02T00:00:00Z")]
    to: Option<String>,
    /// The order; the latest entry first if absent.
    #[param(inline)]
    order: Option<ListOrder>,
    /// At most this many entries; 100 if absent.
    #[param(minimum = 1, maximum = 1_000, example = 100)]
    limit: Option<u16>,
    /// The `next` of the page before, with the same other parameters; absent for the first page.
    cursor: Option<String>,
}

/// Lists the audit log of a range of at most 366 days. With a type and a severity, a page may have few rows, even none,
/// although more follow.
#[utoipa::path(get, path = "/v1/darkages/audit-log", tag = "darkages",
    params(AuditQuery), responses((status = 200, description = "A page", body = AuditEntryPage)))]
pub(super) async fn list_audit_entries(
    State(app): State<AppState>,
    Query(query): Query<AuditQuery>,
) -> Result<Answer<AuditEntryPage>, ApiError> {
    let AuditQuery { event_type, severity, from, to, order, limit, cursor } = query;
    let archive = archive(&app)?;
    let (range, page) = TimePage { from, to, order, limit, cursor }.parse(&archive)?;
    let filter = AuditFilter { event_type: event_type.map(Into::into), severity: severity.map(Into::into) };
    Ok(Answer(archive.audit_entries(filter, range, page).await?.into()))
}

/// Something for the audit log that another program noticed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"event_type": "suspicious", "severity": "warning", "player_id": 12_345,
    "player_ip": "192.0.2.7", "details": {"speed": 41.5}}))]
pub(super) struct NewAuditEntry {
    /// Its id, by which a repeated call writes the same entry; a new one if absent.
    event_id: Option<Uuid>,
    /// When it happened, in milliseconds since 1970; now if absent. A repeated call has the same.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64)]
    timestamp: Option<i64>,
    /// What it is about.
    event_type: AuditEventWord,
    /// How serious it is.
    severity: SeverityWord,
    /// The player that it is about.
    player_id: i64,
    /// The player's address, if it is known.
    #[schema(value_type = Option<String>)]
    player_ip: Option<IpAddr>,
    /// Any JSON of at most 64 KiB.
    details: Option<Value>,
}

/// Writes an entry into the audit log.
#[utoipa::path(post, path = "/v1/darkages/audit-log", tag = "darkages",
    request_body = NewAuditEntry, responses((status = 204, description = "It is written")))]
pub(super) async fn record_audit_entry(
    State(app): State<AppState>,
    Json(body): Json<NewAuditEntry>,
) -> Result<StatusCode, ApiError> {
    let archive = archive(&app)?;
    let entry = AuditEntry {
        timestamp: body.timestamp.map_or_else(|| now(&archive), emberkeep_schema::Timestamp),
        event_id: body.event_id.unwrap_or_else(Uuid::new_v4),
        event_type: body.event_type.into(),
        player_id: body.player_id,
        player_ip: body.player_ip,
        details: body.details.map(|details| details.to_string().into_bytes()),
        severity: body.severity.into(),
    };
    archive.record_audit(entry).await?;
    Ok(StatusCode::NO_CONTENT)
}
