//! Changes of a profile other than its name and address: compare and set, so that no update is lost.

use super::super::error::{Error, Result, check_json, check_text};
use super::super::limits::{
    CHANGE_PAUSE_MAX, CHANGE_TRIES_MAX, CLIENT_VERSION_BYTES_MAX, CLIENT_VERSIONS_MAX, SETTINGS_BYTES_MAX,
};
use super::super::{Answer, Archive};
use crate::darkages::history::PlayerProfile;
use emberkeep_history::Applied;
use emberkeep_schema::Timestamp;
use std::net::IpAddr;

/// What is known of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// When the player logged in.
    pub at: Timestamp,
    /// The client's address; `None` = unknown.
    pub ip: Option<IpAddr>,
    /// By which client, at most 128 bytes; empty = unknown.
    pub client_version: String,
}

/// New values of a profile; those that are absent stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileUpdate {
    /// The level, from 1.
    pub level: Option<i32>,
    /// The points of experience, from 0.
    pub experience: Option<i64>,
    /// Whole minutes, from 0 on.
    pub total_playtime_minutes: Option<i64>,
    /// The game's number of a class; `Some(None)` removes it.
    pub preferred_class: Option<Option<i8>>,
    /// JSON of at most 64 KiB; `Some(None)` removes it.
    pub settings: Option<Option<Vec<u8>>>,
}

impl Archive {
    /// Writes the facts of a login: its time, address and client. An older login changes only the set of clients.
    pub fn record_login(&self, player_id: i64, login: Login) -> Answer<'_, PlayerProfile> {
        Box::pin(async move {
            if !login.client_version.is_empty() {
                check_text("client version", &login.client_version, CLIENT_VERSION_BYTES_MAX)?;
            }
            self.change(player_id, |profile| {
                if profile.last_login.is_none_or(|last| last <= login.at) {
                    profile.last_login = Some(login.at);
                    profile.last_known_ip = login.ip.or(profile.last_known_ip);
                }
                if login.client_version.is_empty() {
                    return Ok(());
                }
                profile.client_versions.insert(login.client_version.clone());
                if profile.client_versions.len() > CLIENT_VERSIONS_MAX {
                    let first =
                        profile.client_versions.iter().find(|version| **version != login.client_version);
                    let first = first.cloned();
                    first.map(|first| profile.client_versions.remove(&first));
                }
                Ok(())
            })
            .await
        })
    }

    /// Changes level, experience, playtime, class and settings.
    pub fn update_profile(&self, player_id: i64, update: ProfileUpdate) -> Answer<'_, PlayerProfile> {
        Box::pin(async move {
            check(&update)?;
            self.change(player_id, |profile| {
                let ProfileUpdate { level, experience, total_playtime_minutes, preferred_class, settings } =
                    update.clone();
                profile.level = level.unwrap_or(profile.level);
                profile.experience = experience.unwrap_or(profile.experience);
                profile.total_playtime_minutes =
                    total_playtime_minutes.unwrap_or(profile.total_playtime_minutes);
                profile.preferred_class = preferred_class.unwrap_or(profile.preferred_class);
                profile.settings = settings.unwrap_or_else(|| profile.settings.take());
                Ok(())
            })
            .await
        })
    }

    /// Changes the profile of a registered player; the answer is as callers see it.
    pub(super) async fn change(
        &self,
        player_id: i64,
        change: impl Fn(&mut PlayerProfile) -> Result<()>,
    ) -> Result<PlayerProfile> {
        let row = self.registered(player_id).await?;
        let changed = self.change_row(row, change).await?;
        self.shown(changed).await?.ok_or(Error::NotFound { player_id })
    }

    /// The stored row of a registered player.
    pub(super) async fn registered(&self, player_id: i64) -> Result<PlayerProfile> {
        let row =
            self.history.get(PlayerProfile::key(player_id)).await?.ok_or(Error::NotFound { player_id })?;
        match self.shown(row.clone()).await? {
            Some(_) => Ok(row),
            None => Err(Error::NotFound { player_id }),
        }
    }

    /// Changes a stored row, again and again from what another call made of it.
    pub(super) async fn change_row(
        &self,
        mut row: PlayerProfile,
        change: impl Fn(&mut PlayerProfile) -> Result<()>,
    ) -> Result<PlayerProfile> {
        let player_id = row.player_id;
        for _ in 0..CHANGE_TRIES_MAX {
            let mut next = row.clone();
            self.end_ban(&mut next);
            change(&mut next)?;
            if next == row {
                return Ok(row);
            }
            row = match self.history.replace_if(row, next.clone()).await? {
                Applied::Yes => return Ok(next),
                Applied::No(current) => current.ok_or(Error::NotFound { player_id })?,
            };
            tokio::time::sleep(CHANGE_PAUSE_MAX.mul_f64(random_share())).await;
        }
        Err(Error::Conflict { player_id, reason: "too many calls change it at once" })
    }
}

/// A number from 0 to 1, so that callers do not meet again.
fn random_share() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0
}

fn check(update: &ProfileUpdate) -> Result<()> {
    if update.level.is_some_and(|level| level < 1) {
        return Err(Error::invalid("level", "expected 1 or more"));
    }
    for (what, number) in
        [("experience", update.experience), ("total_playtime_minutes", update.total_playtime_minutes)]
    {
        if number.is_some_and(|number| number < 0) {
            return Err(Error::invalid(what, "expected 0 or more"));
        }
    }
    match &update.settings {
        Some(Some(settings)) => check_json("settings", settings, SETTINGS_BYTES_MAX),
        _ => Ok(()),
    }
}
