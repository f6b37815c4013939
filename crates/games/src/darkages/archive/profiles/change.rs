//! Another name or address for a player.

use super::super::error::{Error, Result};
use super::super::{Answer, Archive};
use super::names::checked;
use super::{claimed, fold, set_claimed};
use crate::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use uuid::Uuid;

impl Archive {
    /// Gives a player another name and frees the old one. A name that differs in case only needs no new claim.
    pub fn rename<'a>(&'a self, player_id: i64, username: &'a str) -> Answer<'a, PlayerProfile> {
        Box::pin(self.change_claimed(ClaimKind::Username, player_id, username))
    }

    /// Gives a player another e-mail address and frees the old one.
    pub fn change_email<'a>(&'a self, player_id: i64, email: &'a str) -> Answer<'a, PlayerProfile> {
        Box::pin(self.change_claimed(ClaimKind::Email, player_id, email))
    }

    async fn change_claimed(&self, kind: ClaimKind, player_id: i64, text: &str) -> Result<PlayerProfile> {
        let folded = checked(kind, text)?;
        let row = self.registered(player_id).await?;
        let old = claimed(kind, &row).to_owned();
        let replace = |from: &str, to: &str| {
            let (from, to) = (from.to_owned(), to.to_owned());
            move |profile: &mut PlayerProfile| {
                if claimed(kind, profile) != from {
                    return Err(Error::Conflict { player_id, reason: "its name was changed" });
                }
                set_claimed(kind, profile, &to);
                Ok(())
            }
        };
        if fold(&old) == folded {
            return self.change_row(row, replace(&old, text)).await;
        }
        let pending = ProfileClaim {
            kind,
            folded,
            player_id,
            token: Uuid::new_v4(),
            is_confirmed: false,
            claimed_at: self.now(),
            previous: Some(old.clone()),
        };
        self.claim(&pending).await?;
        let changed = match self.change_row(row, replace(&old, text)).await {
            Ok(changed) => changed,
            Err(refused) => {
                self.release(&pending).await?;
                return Err(refused);
            }
        };
        if !self.confirm(&pending).await? {
            self.change_row(changed, replace(text, &old)).await?;
            let reason = "the change took too long, and another player took the name or the address";
            return Err(Error::Conflict { player_id, reason });
        }
        let former = self.claim_of(kind, &old).await?;
        if let Some(former) = former.filter(|claim| claim.player_id == player_id && claim.is_confirmed) {
            self.release(&former).await?;
        }
        Ok(changed)
    }
}
