//! Reading profiles: by player, name and address.

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

    pub(super) async fn has_confirmed(&self, kind: ClaimKind, row: &PlayerProfile) -> Result<bool> {
        let claim = self.claim_of(kind, claimed(kind, row)).await?;
        Ok(claim.is_some_and(|claim| claim.player_id == row.player_id && claim.is_confirmed))
    }

    /// A stored row as callers see it; `None` if its registration has not ended. A name that is being changed is the old
    /// one until its claim is confirmed.
    pub(super) async fn shown(&self, mut row: PlayerProfile) -> Result<Option<PlayerProfile>> {
        self.end_ban(&mut row);
        let mut is_registered = false;
        for kind in [ClaimKind::Username, ClaimKind::Email] {
            let claim = self.claim_of(kind, claimed(kind, &row)).await?;
            let own = claim.filter(|claim| claim.player_id == row.player_id);
            is_registered |= own.as_ref().is_some_and(|claim| claim.is_confirmed);
            if let Some(previous) = own.and_then(|claim| claim.previous) {
                // Only a registered player has a name to change.
                is_registered = true;
                set_claimed(kind, &mut row, &previous);
            }
        }
        Ok(is_registered.then_some(row))
    }
}
