//! Bans, for ever or until a time.

use super::super::error::{Error, check_text};
use super::super::limits::BAN_REASON_BYTES_MAX;
use super::super::{Answer, Archive};
use crate::darkages::history::PlayerProfile;
use emberkeep_schema::Timestamp;

/// A ban of a registered player, in its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// Why, at most 1,024 bytes.
    pub reason: String,
    /// When it ends; `None` = never.
    pub expires: Option<Timestamp>,
}

impl Archive {
    /// Bans a player: the profile only. [`Realm::ban`](crate::darkages::Realm::ban) writes the audit log and ends the session,
    /// too. A ban replaces the one before.
    pub fn ban(&self, player_id: i64, ban: Ban) -> Answer<'_, PlayerProfile> {
        Box::pin(async move {
            check_text("reason of a ban", &ban.reason, BAN_REASON_BYTES_MAX)?;
            if ban.expires.is_some_and(|expires| expires <= self.now() || !expires.is_valid()) {
                return Err(Error::invalid("end of a ban", "expected a time after now, or none"));
            }
            self.change(player_id, |profile| {
                set(profile, Some(&ban));
                Ok(())
            })
            .await
        })
    }

    /// Ends a ban; a player without one stays as it is.
    pub fn unban(&self, player_id: i64) -> Answer<'_, PlayerProfile> {
        Box::pin(self.change(player_id, |profile| {
            set(profile, None);
            Ok(())
        }))
    }

    /// The ban of a player that has not expired.
    pub fn ban_of(&self, player_id: i64) -> Answer<'_, Option<Ban>> {
        Box::pin(async move {
            let profile = self.profile(player_id).await?.ok_or(Error::NotFound { player_id })?;
            let reason = profile.ban_reason.unwrap_or_default();
            Ok::<_, Error>(profile.is_banned.then_some(Ban { reason, expires: profile.ban_expires }))
        })
    }

    /// Takes a ban away that has expired.
    pub(super) fn end_ban(&self, profile: &mut PlayerProfile) {
        if profile.ban_expires.is_some_and(|expires| expires <= self.now()) {
            set(profile, None);
        }
    }
}

fn set(profile: &mut PlayerProfile, ban: Option<&Ban>) {
    profile.is_banned = ban.is_some();
    profile.ban_reason = ban.map(|ban| ban.reason.clone());
    profile.ban_expires = ban.and_then(|ban| ban.expires);
}
