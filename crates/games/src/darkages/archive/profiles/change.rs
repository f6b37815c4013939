//! Another name or address for a player: claim it, write the profile, confirm the claim, release the old one.
//!
//! The confirmation decides: before it the player has the old name, after it the new one.

use super::super::error::{Error, Result};
use super::super::{Answer, Archive};
use super::claim::is_later;
use super::names::checked;
use super::{claimed, fold, set_claimed};
use crate::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use emberkeep_schema::Timestamp;
use uuid::Uuid;

const LOST: &str = "the change took too long, and another call took the name or the address";

impl Archive {
    /// Gives a player another name and frees the old one. A name that differs in case only needs no new claim.
    ///
    /// After an error of history the player has the old name or the new one. Called again, it ends what was begun.
    pub fn rename<'a>(&'a self, player_id: i64, username: &'a str) -> Answer<'a, PlayerProfile> {
        Box::pin(self.change_claimed(ClaimKind::Username, player_id, username))
    }

    /// Gives a player another e-mail address and frees the old one, as [`rename`](Self::rename) does.
    pub fn change_email<'a>(&'a self, player_id: i64, email: &'a str) -> Answer<'a, PlayerProfile> {
        Box::pin(self.change_claimed(ClaimKind::Email, player_id, email))
    }

    async fn change_claimed(&self, kind: ClaimKind, player_id: i64, text: &str) -> Result<PlayerProfile> {
        let folded = checked(kind, text)?;
        let row = self.registered(player_id).await?;
        let current = self.current_claim(kind, &row).await?.ok_or(Error::NotFound { player_id })?;
        let confirmed = self.confirmed(kind, player_id).await?;
        let former: Vec<_> = confirmed.into_iter().chain([current]).collect();
        let has_it = fold(claimed(kind, &row)) == folded;
        let own = self.claim_of(kind, text).await?.filter(|claim| claim.player_id == player_id);
        let (claim, changed) = match own {
            // The player has it already: at most its case changes.
            Some(claim) if claim.is_confirmed && !former.iter().any(|other| is_later(other, &claim)) => {
                let changed = self.write_claimed(kind, row, text).await?;
                (self.claim_in_this_case(claim, text).await?, changed)
            }
            // A former call stopped before it could confirm.
            Some(claim) if !claim.is_confirmed && has_it => {
                let changed = self.write_claimed(kind, row, text).await?;
                (self.confirm_or_revert(claim, &changed).await?, changed)
            }
            _ => {
                let latest = former.iter().map(|claim| claim.claimed_at.0 + 1);
                let claim = ProfileClaim {
                    kind,
                    folded,
                    player_id,
                    token: Uuid::new_v4(),
                    is_confirmed: false,
                    claimed_at: Timestamp(latest.fold(self.now().0, i64::max)),
                    text: text.to_owned(),
                };
                self.claim(&claim).await?;
                let changed = self.write_or_release(row, &claim).await?;
                (self.confirm_or_revert(claim, &changed).await?, changed)
            }
        };
        for former in former.iter().filter(|former| is_later(&claim, former)) {
            // The name was changed. A claim that is left over is free for the next caller that meets it.
            let _ = self.release(former).await;
        }
        self.shown(changed).await?.ok_or(Error::NotFound { player_id })
    }

    /// Writes a name or an address into a profile that has another one still.
    pub(super) async fn write_claimed(
        &self,
        kind: ClaimKind,
        row: PlayerProfile,
        text: &str,
    ) -> Result<PlayerProfile> {
        let (player_id, from) = (row.player_id, claimed(kind, &row).to_owned());
        let change = |profile: &mut PlayerProfile| {
            if claimed(kind, profile) != from && claimed(kind, profile) != text {
                return Err(Error::Conflict { player_id, reason: "its name or address was changed" });
            }
            set_claimed(kind, profile, text);
            Ok(())
        };
        self.change_row(row, change).await
    }

    /// Writes the text of a pending claim into the profile. If that fails, the claim is released, unless the profile has
    /// the text: the write may have happened although its answer was lost. If that cannot be found out, the claim stays
    /// pending, and the next caller that meets it decides.
    async fn write_or_release(&self, row: PlayerProfile, claim: &ProfileClaim) -> Result<PlayerProfile> {
        let (kind, player_id) = (claim.kind, row.player_id);
        let refused = match self.write_claimed(kind, row, &claim.text).await {
            Ok(changed) => return Ok(changed),
            Err(refused) => refused,
        };
        match self.history.get(PlayerProfile::key(player_id)).await {
            Ok(Some(row)) if fold(claimed(kind, &row)) == claim.folded => Ok(row),
            Ok(_) => {
                self.release(claim).await?;
                Err(refused)
            }
            Err(_) => Err(refused),
        }
    }

    /// Confirms a claim whose text the profile has. If it was lost, or a later change of the same player was confirmed
    /// first, the profile gets the text of the claim that the player has.
    async fn confirm_or_revert(&self, claim: ProfileClaim, row: &PlayerProfile) -> Result<ProfileClaim> {
        let (kind, player_id) = (claim.kind, claim.player_id);
        let is_confirmed = self.confirm(&claim).await?;
        let claim = ProfileClaim { is_confirmed: true, ..claim };
        let latest = self.confirmed(kind, player_id).await?.pop();
        let later = latest.filter(|latest| !is_confirmed || is_later(latest, &claim));
        if is_confirmed && later.is_none() {
            return Ok(claim);
        }
        if let Some(later) = later {
            self.write_claimed(kind, row.clone(), &later.text).await?;
        }
        if is_confirmed {
            self.release(&claim).await?;
        }
        Err(Error::Conflict { player_id, reason: LOST })
    }

    /// The claim of a name whose case has changed.
    async fn claim_in_this_case(&self, claim: ProfileClaim, text: &str) -> Result<ProfileClaim> {
        let changed = ProfileClaim { text: text.to_owned(), ..claim.clone() };
        if changed != claim {
            self.history.replace_if(claim, changed.clone()).await?;
        }
        Ok(changed)
    }
}
