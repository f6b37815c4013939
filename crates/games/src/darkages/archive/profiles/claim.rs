//! Claims of names and addresses: make, confirm, release, take over.

use super::super::Archive;
use super::super::error::{Error, Result};
use super::super::limits::{CHANGE_TRIES_MAX, CLAIM_PENDING_MAX};
use super::{claimed, fold};
use crate::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use emberkeep_history::Applied;

impl Archive {
    pub(super) async fn claim_of(&self, kind: ClaimKind, text: &str) -> Result<Option<ProfileClaim>> {
        Ok(self.history.get(ProfileClaim::key(kind, fold(text))).await?)
    }

    /// Makes a pending claim, if the text is free.
    pub(super) async fn claim(&self, wanted: &ProfileClaim) -> Result<()> {
        for _ in 0..CHANGE_TRIES_MAX {
            let current = match self.history.insert_if_absent(wanted.clone()).await? {
                Applied::Yes => return Ok(()),
                Applied::No(None) => continue,
                Applied::No(Some(current)) => current,
            };
            if current.token == wanted.token {
                return Ok(());
            }
            if !self.is_free(&current, wanted.player_id).await? {
                return Err(Error::Taken { kind: wanted.kind });
            }
            if self.history.replace_if(current, wanted.clone()).await? == Applied::Yes {
                return Ok(());
            }
        }
        Err(Error::Taken { kind: wanted.kind })
    }

    /// Whether a claim of another call can be taken over. A pending claim whose profile was written is confirmed instead:
    /// its process died before it could.
    async fn is_free(&self, current: &ProfileClaim, player_id: i64) -> Result<bool> {
        let is_own = current.player_id == player_id && current.is_confirmed;
        if !is_own && !self.is_overdue(current) {
            return Ok(false);
        }
        let profile = self.history.get(PlayerProfile::key(current.player_id)).await?;
        if profile.is_none_or(|profile| fold(claimed(current.kind, &profile)) != current.folded) {
            return Ok(true);
        }
        if !current.is_confirmed {
            self.confirm(current).await?;
        }
        Ok(false)
    }

    pub(super) fn is_overdue(&self, claim: &ProfileClaim) -> bool {
        self.now().0.saturating_sub(claim.claimed_at.0) > CLAIM_PENDING_MAX.as_millis() as i64
    }

    /// Confirms a pending claim; `false` if it was lost to another player.
    pub(super) async fn confirm(&self, pending: &ProfileClaim) -> Result<bool> {
        let confirmed = ProfileClaim { is_confirmed: true, previous: None, ..pending.clone() };
        Ok(match self.history.replace_if(pending.clone(), confirmed).await? {
            Applied::Yes => true,
            // Another call has found the profile and confirmed the claim.
            Applied::No(current) => {
                current.is_some_and(|current| current.token == pending.token && current.is_confirmed)
            }
        })
    }

    /// Gives a claim back, if it is still the one of this token.
    pub(super) async fn release(&self, claim: &ProfileClaim) -> Result<()> {
        let mut current = Some(claim.clone());
        while let Some(claim_now) = current.filter(|current| current.token == claim.token) {
            current = match self.history.delete_if(claim_now).await? {
                Applied::Yes => None,
                Applied::No(current) => current,
            };
        }
        Ok(())
    }
}
