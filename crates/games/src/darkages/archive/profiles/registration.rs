//! Registration: claim the name and the address, write the profile, confirm both.

use super::super::error::{Error, Result};
use super::super::limits::CHANGE_TRIES_MAX;
use super::super::{Answer, Archive};
use super::claimed;
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
                    text: text.to_owned(),
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
            if let Err(refused) = self.write_first(&reservation.profile).await {
                // The write may have happened although its answer was lost.
                let row = self.history.get(PlayerProfile::key(reservation.profile.player_id)).await;
                match row {
                    Ok(Some(row)) if is_of(&row, &reservation.profile) => {}
                    Ok(_) => {
                        self.release(&reservation.username).await?;
                        self.release(&reservation.email).await?;
                        return Err(refused);
                    }
                    Err(_) => return Err(refused),
                }
            }
            if self.confirm(&reservation.username).await? && self.confirm(&reservation.email).await? {
                return Ok(reservation.profile);
            }
            self.undo(reservation).await
        })
    }

    /// Ends a registration that has lost a claim, unless another call completed it and the player has changed the name
    /// or the address since.
    async fn undo(&self, reservation: Reservation) -> Result<PlayerProfile> {
        let Reservation { username, email, profile } = reservation;
        let player_id = profile.player_id;
        let current = self.profile(player_id).await?;
        if let Some(current) = current.filter(|current| current.created_at == profile.created_at) {
            return Ok(current);
        }
        self.remove_profile(profile).await?;
        for claim in [username, email] {
            self.release(&ProfileClaim { is_confirmed: true, ..claim.clone() }).await?;
            self.release(&claim).await?;
        }
        let reason = "the reservation had ended, and another player took the name or the address";
        Err(Error::Conflict { player_id, reason })
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

    /// Removes a profile that a registration left behind when it lost a claim. Any other profile is an error: its player
    /// is registered, or is about to be.
    async fn clear_unfinished(&self, row: PlayerProfile) -> Result<()> {
        let player_id = row.player_id;
        match self.finish(&row).await? {
            Registration::Complete => Err(Error::Registered { player_id }),
            Registration::UnderWay => {
                Err(Error::Conflict { player_id, reason: "a registration is under way" })
            }
            // The token of a claim is gone, so that the registration can no longer succeed.
            Registration::Lost => self.remove_profile(row).await,
        }
    }

    /// Completes the registration of a profile that another call has written and not confirmed within 60 seconds.
    pub(super) async fn finish(&self, row: &PlayerProfile) -> Result<Registration> {
        if self.shown(row.clone()).await?.is_some() {
            return Ok(Registration::Complete);
        }
        for kind in [ClaimKind::Username, ClaimKind::Email] {
            let claim = self.claim_of(kind, claimed(kind, row)).await?;
            match claim.filter(|claim| claim.player_id == row.player_id) {
                None => return Ok(Registration::Lost),
                Some(claim) if claim.is_confirmed => {}
                Some(claim) if !self.is_overdue(&claim) => return Ok(Registration::UnderWay),
                Some(claim) => {
                    if !self.confirm(&claim).await? {
                        return Ok(Registration::Lost);
                    }
                }
            }
        }
        Ok(Registration::Complete)
    }

    /// Removes the profile that a registration wrote.
    async fn remove_profile(&self, written: PlayerProfile) -> Result<()> {
        let mut current = Some(written.clone());
        while let Some(row) = current.filter(|row| is_of(row, &written)) {
            current = match self.history.delete_if(row).await? {
                Applied::Yes => None,
                Applied::No(current) => current,
            };
        }
        Ok(())
    }
}

/// How far the registration of a stored profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registration {
    /// The player has name and address.
    Complete,
    /// A claim is pending for at most 60 seconds.
    UnderWay,
    /// A claim was taken over, so that it can no longer succeed.
    Lost,
}

/// Whether a row is the profile that a registration wrote.
fn is_of(row: &PlayerProfile, written: &PlayerProfile) -> bool {
    let of = |profile: &PlayerProfile| (profile.created_at, profile.username.clone(), profile.email.clone());
    of(row) == of(written)
}
