//! Reading profiles by player, name and address.

use super::super::error::Result;
use super::super::{Answer, Archive};
use super::{claimed, fold, set_claimed};
use crate::darkages::history::{ClaimKind, PlayerProfile};

impl Archive {
    /// The profile of a player; `None` if the player is not registered. A ban that has expired reads as none.
    pub fn profile(&self, player_id: i64) -> Answer<'_, Option<PlayerProfile>> {
        Box::pin(async move {
            let row = self.history.get(PlayerProfile::key(player_id)).await?;
            match row {
                Some(row) => self.shown(row).await,
                None => Ok(None),
            }
        })
    }

    /// The profile with this name, in whatever case.
    pub fn profile_by_username<'a>(&'a self, username: &'a str) -> Answer<'a, Option<PlayerProfile>> {
        Box::pin(self.profile_by(ClaimKind::Username, username))
    }

    /// The profile with this e-mail address, in whatever case.
    pub fn profile_by_email<'a>(&'a self, email: &'a str) -> Answer<'a, Option<PlayerProfile>> {
        Box::pin(self.profile_by(ClaimKind::Email, email))
    }

    async fn profile_by(&self, kind: ClaimKind, text: &str) -> Result<Option<PlayerProfile>> {
        let claim = self.claim_of(kind, text).await?.filter(|claim| claim.is_confirmed);
        let Some(claim) = claim else { return Ok(None) };
        let profile = self.profile(claim.player_id).await?;
        Ok(profile.filter(|profile| fold(claimed(kind, profile)) == claim.folded))
    }

    /// A stored row as callers see it; `None` if its registration has not ended. Name and address are those of confirmed
    /// claims, whatever a change that has not ended left in the row.
    pub(super) async fn shown(&self, mut row: PlayerProfile) -> Result<Option<PlayerProfile>> {
        self.end_ban(&mut row);
        for kind in [ClaimKind::Username, ClaimKind::Email] {
            let Some(claim) = self.current_claim(kind, &row).await? else { return Ok(None) };
            if fold(claimed(kind, &row)) != claim.folded {
                set_claimed(kind, &mut row, &claim.text);
            }
        }
        Ok(Some(row))
    }
}
