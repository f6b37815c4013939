//! What moderators and cheat detection do to sessions: kick a player, note suspicious activity.

use super::sessions_split::Audit;
use super::*;
use crate::darkages::events::audit;
use crate::darkages::history::{AuditEvent, Severity};
use crate::darkages::limits::DETAILS_BYTES_MAX;
use emberkeep_hot::engine::Pending;

impl DarkAges {
    /// Ends the session of an entity if it is that of this player, with a reason of at most 4 KiB for the audit log. One
    /// transaction, or where shards are partitions of their own a look at the session and then a kick.
    pub fn kick_player(&self, entity: EntityId, player_id: i64, reason: String) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let details = details(&serde_json::json!({ "reason": reason }))?;
            let (event, severity, details) = (AuditEvent::Kick, Severity::Warning, Some(details));
            self.end_audited(entity, Some(player_id), Audit { event, severity, details }).await
        })
    }

    /// Notes suspicious activity of a logged-in player in the audit log, with details of at most 4 KiB as JSON. The session
    /// goes on.
    pub fn suspicious(
        &self,
        entity: EntityId,
        severity: Severity,
        details: serde_json::Value,
    ) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let details = self::details(&details)?;
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let (_, play) = logged_in(tx, entity)?;
                Ok(audit(tx, AuditEvent::Suspicious, severity, &play, Some(details.clone()))?)
            };
            self.at_home(entity, "darkages.suspicious", transaction).await
        })
    }
}

fn details(details: &serde_json::Value) -> Result<String> {
    let text = details.to_string();
    if text.len() > DETAILS_BYTES_MAX {
        let problem = format!("{} bytes as JSON, at most {DETAILS_BYTES_MAX} are allowed", text.len());
        return Err(Error::invalid("details", problem));
    }
    Ok(text)
}
