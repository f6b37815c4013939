//! Sessions of hot state joined to the profiles of history: logins that a ban refuses, and bans that end sessions.
//!
//! 1. A player with a ban that has not expired does not log in here. A ban and a login at the same time leave no session: the
//!    ban is written before the session is ended, and the login looks again after it has begun one.
//! 2. A login of a registered player is written to its profile: time, address and client. That is a call of its own after the
//!    login, and not an event of an outbox: profiles are changed by compare and set only, and an event that is delivered late
//!    must not overwrite a later login. If the process dies in between, the audit log has the login and the profile has not.
//! 3. While history cannot be reached these logins fail; [`DarkAges::login`] does not ask it.

use super::archive::profiles::{Ban, Login};
use super::archive::{Archive, Error as ArchiveError};
use super::error::Error as HotError;
use super::history::{AuditEvent, PlayerProfile, Severity};
use super::model::{EntityId, Session};
use super::service::{AuditNote, DarkAges, LoginRequest};
use emberkeep_hot::engine::Pending;
use emberkeep_schema::Timestamp;

/// Both tiers of one game. Cheap to clone.
#[derive(Clone)]
pub struct Realm {
    game: DarkAges,
    archive: Archive,
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The player is banned.
    #[error("player {player_id} is banned{}: {reason}", .expires.map_or(String::new(), |at| format!(" until {} ms", at.0)))]
    Banned {
        /// The player.
        player_id: i64,
        /// Why.
        reason: String,
        /// When the ban ends; `None` = never.
        expires: Option<Timestamp>,
    },
    /// Hot state refused it.
    #[error(transparent)]
    Hot(#[from] HotError),
    /// The archive refused it.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

type Result<T> = std::result::Result<T, RealmError>;

impl Realm {
    /// Hot state and the archive of the same game.
    pub fn new(game: DarkAges, archive: Archive) -> Realm {
        Realm { game, archive }
    }

    /// The hot state.
    pub fn game(&self) -> &DarkAges {
        &self.game
    }

    /// The archive.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Logs a player in, unless it is banned, and notes the login in its profile, if it has one.
    pub fn login(&self, request: LoginRequest) -> Pending<'_, Result<Session>> {
        Box::pin(async move {
            let player_id = request.player_id;
            self.check_ban(player_id).await?;
            let (ip, client_version) = (request.ip, request.client_version.clone());
            let session = self.game.login(request).await?;
            if let Err(refused) = self.check_ban(player_id).await {
                self.end(EntityId(session.entity_id)).await?;
                return Err(refused);
            }
            let login = Login { at: Timestamp(session.login_time), ip, client_version };
            match self.archive.record_login(player_id, login).await {
                Ok(_) | Err(ArchiveError::NotFound { .. }) => Ok(session),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Bans a player, ends its session, if there is one, and writes both to the audit log. `entity` is the entity of the
    /// session, `None` = the player's id.
    pub fn ban(
        &self,
        player_id: i64,
        entity: Option<EntityId>,
        ban: Ban,
    ) -> Pending<'_, Result<PlayerProfile>> {
        Box::pin(async move {
            let details = serde_json::json!({ "reason": ban.reason, "expires": ban.expires.map(|at| at.0) });
            let profile = self.archive.ban(player_id, ban).await?;
            self.end(entity.unwrap_or(EntityId(player_id))).await?;
            let note = AuditNote {
                player_id,
                ip: profile.last_known_ip,
                severity: Severity::Critical,
                details: Some(details.to_string()),
            };
            self.game.audit(AuditEvent::Ban, note).await?;
            Ok(profile)
        })
    }

    /// Gives a player another name: in its profile, its session and on leaderboards.
    pub fn rename<'a>(
        &'a self,
        player_id: i64,
        entity: Option<EntityId>,
        username: &'a str,
    ) -> Pending<'a, Result<PlayerProfile>> {
        Box::pin(async move {
            let profile = self.archive.rename(player_id, username).await?;
            self.game.rename(entity.unwrap_or(EntityId(player_id)), username).await?;
            Ok(profile)
        })
    }

    /// Refuses a player with a ban that has not expired. A player without a profile has none.
    async fn check_ban(&self, player_id: i64) -> Result<()> {
        match self.archive.ban_of(player_id).await {
            Ok(Some(Ban { reason, expires })) => Err(RealmError::Banned { player_id, reason, expires }),
            Ok(None) | Err(ArchiveError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn end(&self, entity: EntityId) -> Result<()> {
        match self.game.kick(entity, "banned".into()).await {
            Ok(()) | Err(HotError::NotLoggedIn { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
