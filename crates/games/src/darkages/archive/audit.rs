//! The audit log, by day, type and severity.

use super::super::history::{AuditEntry, AuditEvent, Severity};
use super::error::check_json;
use super::limits::DETAILS_BYTES_MAX;
use super::page::{PageRequest, TimeRange};
use super::{Answer, Archive};
use emberkeep_history::Page;

/// Which audit entries; those that are absent allow everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries of this type.
    pub event_type: Option<AuditEvent>,
    /// Only entries of this severity.
    pub severity: Option<Severity>,
}

impl Archive {
    /// The audit entries of a range of time, at most 366 days. With a filter of both kinds a page may have fewer rows than
    /// asked for, even none, although more follow.
    pub fn audit_entries(
        &self,
        filter: AuditFilter,
        range: TimeRange,
        page: PageRequest,
    ) -> Answer<'_, Page<AuditEntry>> {
        let days = range.days();
        let rows = match (filter.event_type, filter.severity) {
            (Some(event_type), _) => AuditEntry::by_type(event_type, days),
            (None, Some(severity)) => AuditEntry::by_severity(severity, days),
            (None, None) => AuditEntry::partition(days),
        };
        let read = self.page(rows, Some(range), page);
        Box::pin(async move {
            let mut page = read.await?;
            page.rows.retain(|entry| filter.severity.is_none_or(|severity| entry.severity == severity));
            Ok(page)
        })
    }

    /// Writes an audit entry. Its time and id are its key: written again, it is the same entry.
    pub fn record_audit(&self, entry: AuditEntry) -> Answer<'_, ()> {
        Box::pin(async move {
            if let Some(details) = &entry.details {
                check_json("details", details, DETAILS_BYTES_MAX)?;
            }
            self.history.insert(entry).await?;
            Ok(())
        })
    }
}
