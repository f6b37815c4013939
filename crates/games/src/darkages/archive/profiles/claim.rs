//! Claims of names and addresses: make, confirm, release, take over.

use super::super::Archive;
use super::super::error::{Error, Result};
use super::super::limits::{CHANGE_TRIES_MAX, CLAIM_PENDING_MAX};
use super::registration::Registration;
use super::{claimed, fold};
use crate::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use emberkeep_history::Applied;
use emberkeep_history::limits::PAGE_ROWS_MAX;

/// Whether a claim was made after another one of the same player. Only confirmed claims with a later one beside them are
/// removed, so the latest one stays, whatever calls meet.
pub(super) fn is_later(claim: &ProfileClaim, other: &ProfileClaim) -> bool {
    (claim.claimed_at, claim.token) > (other.claimed_at, other.token)
}

impl Archive {
    pub(super) async fn claim_of(&self, kind: ClaimKind, text: &str) -> Result<Option<ProfileClaim>> {
        Ok(self.history.get(ProfileClaim::key(kind, fold(text))).await?)
    }

    /// The confirmed claims of a player, the latest last. The last one is the player's name or address.
    pub(super) async fn confirmed(&self, kind: ClaimKind, player_id: i64) -> Result<Vec<ProfileClaim>> {
        let claims = self.history.range(ProfileClaim::by_player(player_id)).rows_max(PAGE_ROWS_MAX);
        let mut found = claims.page(None).await?.into_rows()?;
        found.retain(|claim| claim.kind == kind && claim.is_confirmed);
        found.sort_by_key(|claim| (claim.claimed_at, claim.token));
        Ok(found)
    }

    /// The claim by which the player of a profile has a name or an address; `None` if the player is not registered. It is
    /// that of the profile's text, or the latest one if a change of the profile has not ended.
    pub(super) async fn current_claim(
        &self,
        kind: ClaimKind,
        row: &PlayerProfile,
    ) -> Result<Option<ProfileClaim>> {
        // Between two reads a claim may be confirmed and the one before it released.
        for _ in 0..2 {
            let claim = self.claim_of(kind, claimed(kind, row)).await?;
            let own = claim.filter(|claim| claim.player_id == row.player_id && claim.is_confirmed);
            let latest = match own {
                None => self.confirmed(kind, row.player_id).await?.pop(),
                own => own,
            };
            if latest.is_some() {
                return Ok(latest);
            }
        }
        Ok(None)
    }

    /// Makes a pending claim, if the text is free.
    pub(super) async fn claim(&self, wanted: &ProfileClaim) -> Result<()> {
        let claimed = self.try_claim(wanted).await;
        if let Err(Error::History(_)) = &claimed {
            // It may have been made although the answer was lost; the caller is to be able to try again at once.
            let _ = self.release(wanted).await;
        }
        claimed
    }

    async fn try_claim(&self, wanted: &ProfileClaim) -> Result<()> {
        for _ in 0..CHANGE_TRIES_MAX {
            let current = match self.history.insert_if_absent(wanted.clone()).await? {
                Applied::Yes => return Ok(()),
                Applied::No(None) => continue,
                Applied::No(Some(current)) => current,
            };
            if current.token == wanted.token {
                return Ok(());
            }
            if !self.is_free(&current).await? {
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
    async fn is_free(&self, current: &ProfileClaim) -> Result<bool> {
        if !current.is_confirmed && !self.is_overdue(current) {
            return Ok(false);
        }
        let Some(row) = self.history.get(PlayerProfile::key(current.player_id)).await? else {
            return Ok(self.is_overdue(current));
        };
        if fold(claimed(current.kind, &row)) == current.folded {
            return Ok(match self.finish(&row).await? {
                Registration::UnderWay => false,
                Registration::Lost => self.is_overdue(current),
                Registration::Complete => {
                    if !current.is_confirmed {
                        self.confirm(current).await?;
                    }
                    false
                }
            });
        }
        if !current.is_confirmed {
            return Ok(true);
        }
        // The old name of a rename is free as soon as the new one is the player's.
        let claim = self.current_claim(current.kind, &row).await?;
        if claim.as_ref().is_some_and(|claim| is_later(current, claim)) {
            // Two renames met and the later one stopped: the profile has the text of the earlier one.
            match self.write_claimed(current.kind, row, &current.text).await {
                Ok(_) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(claim.is_some_and(|claim| is_later(&claim, current)))
    }

    pub(super) fn is_overdue(&self, claim: &ProfileClaim) -> bool {
        self.now().0.saturating_sub(claim.claimed_at.0) > CLAIM_PENDING_MAX.as_millis() as i64
    }

    /// Confirms a pending claim; `false` if it was lost to another call.
    pub(super) async fn confirm(&self, pending: &ProfileClaim) -> Result<bool> {
        let confirmed = ProfileClaim { is_confirmed: true, ..pending.clone() };
        Ok(match self.history.replace_if(pending.clone(), confirmed).await? {
            Applied::Yes => true,
            // Another call has found the profile and confirmed the claim.
            Applied::No(current) => {
                current.is_some_and(|current| current.token == pending.token && current.is_confirmed)
            }
        })
    }

    /// Gives a claim back, if it is exactly as it was read: one that another call has confirmed since stays.
    pub(super) async fn release(&self, claim: &ProfileClaim) -> Result<()> {
        self.history.delete_if(claim.clone()).await?;
        Ok(())
    }
}
