//! Registration: claim the name and the address, write the profile, confirm both.

use super::super::error::{Error, Result};
use super::super::limits::CHANGE_TRIES_MAX;
use super::super::{Answer, Archive};
use super::names::checked;
use crate::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use emberkeep_history::Applied;
use std::collections::BTreeSet;
use uuid::Uuid;

/// A player who registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPlayer {
    /// The player; any number that no other player has.
    pub player_id: i64,
    /// At most 32 characters. Another player with a name that differs in case only is `Taken`.
    pub username: String,
    /// At most 254 bytes.
    pub email: String,
}

/// A name and an address that are claimed for a player, for 60 seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    username: ProfileClaim,
    email: ProfileClaim,
    profile: PlayerProfile,
}

impl Archive {
    /// Registers a player at level 1 without experience. One of several callers with the same name or address wins.
    pub fn register(&self, new: NewPlayer) -> Answer<'_, PlayerProfile> {
        Box::pin(async move {
            let reservation = self.reserve(new).await?;
            self.complete(reservation).await
        })
    }

    /// Claims the name and the address of a player, who has 60 seconds to [`complete`](Self::complete) the registration.
    pub fn reserve(&self, new: NewPlayer) -> Answer<'_, Reservation> {
        Box::pin(async move {
            let claim = |kind, text: &str| {
                Ok::<_, Error>(ProfileClaim {
                    kind,
                    folded: checked(kind, text)?,
                    player_id: new.player_id,
                    token: Uuid::new_v4(),
                    is_confirmed: false,
                    claimed_at: self.now(),
                    previous: None,
                })
            };
            let username = claim(ClaimKind::Username, &new.username)?;
            let email = claim(ClaimKind::Email, &new.email)?;
            if let Some(row) = self.history.get(PlayerProfile::key(new.player_id)).await? {
                self.clear_unfinished(row).await?;
            }
            self.claim(&username).await?;
            if let Err(refused) = self.claim(&email).await {
                self.release(&username).await?;
                return Err(refused);
            }
            let created_at = username.claimed_at;
            let NewPlayer { player_id, username: name, email: address } = new;
            let profile = PlayerProfile {
                player_id,
                username: name,
                email: address,
                created_at,
                last_login: None,
                level: 1,
                experience: 0,
                total_playtime_minutes: 0,
                preferred_class: None,
                settings: None,
                is_banned: false,
                ban_reason: None,
                ban_expires: None,
                client_versions: BTreeSet::new(),
                last_known_ip: None,
            };
            Ok(Reservation { username, email, profile })
        })
    }

    /// Writes the profile of a reservation and confirms its claims. `Conflict` if one was lost: they had waited for more
    /// than 60 seconds, and another player took the name or the address.
    pub fn complete(&self, reservation: Reservation) -> Answer<'_, PlayerProfile> {
        Box::pin(async move {
            let Reservation { username, email, profile } = reservation;
            if let Err(refused) = self.write_first(&profile).await {
                self.release(&username).await?;
                self.release(&email).await?;
                return Err(refused);
            }
            if self.confirm(&username).await? && self.confirm(&email).await? {
                return Ok(profile);
            }
            self.remove_profile(profile.clone()).await?;
            self.release(&username).await?;
            self.release(&email).await?;
            let reason = "the reservation had ended, and another player took the name or the address";
            Err(Error::Conflict { player_id: profile.player_id, reason })
        })
    }

    async fn write_first(&self, profile: &PlayerProfile) -> Result<()> {
        for _ in 0..CHANGE_TRIES_MAX {
            match self.history.insert_if_absent(profile.clone()).await? {
                Applied::Yes => return Ok(()),
                Applied::No(Some(row)) => self.clear_unfinished(row).await?,
                Applied::No(None) => {}
            }
        }
        Err(Error::Conflict { player_id: profile.player_id, reason: "several registrations at once" })
    }

    /// Removes a profile that a registration left behind when it lost its name. Any other profile is an error: its player
    /// is registered, or is about to be.
    async fn clear_unfinished(&self, row: PlayerProfile) -> Result<()> {
        let player_id = row.player_id;
        let claim = self.claim_of(ClaimKind::Username, &row.username).await?;
        let own = claim.filter(|claim| claim.player_id == player_id);
        match own {
            Some(claim) if !claim.is_confirmed && !self.is_overdue(&claim) => {
                return Err(Error::Conflict { player_id, reason: "a registration or rename is under way" });
            }
            Some(claim) => {
                if !claim.is_confirmed {
                    self.confirm(&claim).await?;
                }
                return Err(Error::Registered { player_id });
            }
            None => {}
        }
        if self.has_confirmed(ClaimKind::Email, &row).await? {
            return Err(Error::Registered { player_id });
        }
        // The token of its name is gone, so that its registration can no longer succeed.
        self.remove_profile(row).await
    }

    /// Removes the profile that a registration wrote, with what was changed in it since.
    async fn remove_profile(&self, written: PlayerProfile) -> Result<()> {
        let (created_at, mut current) = (written.created_at, Some(written));
        while let Some(row) = current.filter(|row| row.created_at == created_at) {
            current = match self.history.delete_if(row).await? {
                Applied::Yes => None,
                Applied::No(current) => current,
            };
        }
        Ok(())
    }
}
