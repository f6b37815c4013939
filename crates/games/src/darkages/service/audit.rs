//! Entries of the audit log that are not part of another operation.

use super::*;
use crate::darkages::events::{AuditRecord, event_id};
use crate::darkages::history::{AuditEvent, Severity};
use crate::darkages::limits::DETAILS_BYTES_MAX;
use crate::darkages::schema::AUDIT_LOG;
use emberkeep_hot::engine::Pending;
use std::net::IpAddr;

/// What an audit entry tells besides its type and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditNote {
    /// The player.
    pub player_id: i64,
    /// The player's address, if known.
    pub ip: Option<IpAddr>,
    /// How serious it is.
    pub severity: Severity,
    /// Details as JSON text, at most 4 KiB.
    pub details: Option<String>,
}

impl DarkAges {
    /// Writes an entry to the audit log; it is in history once.
    pub fn audit(&self, event: AuditEvent, note: AuditNote) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            note.details.as_deref().map_or(Ok(()), check_details)?;
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let AuditNote { player_id, ip, severity, details } = note.clone();
                let (id, at) = (event_id(tx), tx.now());
                let (event_type, severity) = (event.text().to_owned(), severity.text().to_owned());
                let record = AuditRecord::new(id, at, event_type, player_id, severity);
                Ok(tx.append(&AUDIT_LOG.key(), &AuditRecord { ip, details, ..record })?)
            };
            self.scope().named("darkages.audit").transact(transaction).await
        })
    }

    /// Writes suspicious activity of a player to the audit log.
    pub fn suspicious(&self, note: AuditNote) -> Pending<'_, Result<()>> {
        self.audit(AuditEvent::Suspicious, note)
    }
}

fn check_details(details: &str) -> Result<()> {
    if details.len() > DETAILS_BYTES_MAX {
        let problem = format!("{} bytes, at most {DETAILS_BYTES_MAX}", details.len());
        return Err(Error::invalid("details", problem));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(details) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::invalid("details", format!("they are not JSON: {error}"))),
    }
}
