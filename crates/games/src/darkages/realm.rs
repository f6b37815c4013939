//! Profiles joined to sessions: logins that respect bans and are noted in the profile, bans that end the session.
//!
//! Hot state and history commit apart, so the order counts. A login notes itself in the profile after the session began,
//! by compare and set; a ban changes the same profile first and ends the session afterwards. Whichever is first, the
//! other one sees it: a banned player has no session when both have returned.

use super::archive::profiles::{Ban, Login};
use super::archive::{self, Archive};
use super::history::{AuditEntry, AuditEvent, PlayerProfile, Severity};
use super::{DarkAges, EntityId, Error as HotError, LoginRequest, Session};
use emberkeep_hot::engine::Pending;
use emberkeep_schema::Timestamp;
use uuid::{Builder, Uuid};

/// Hot state and archive of one game. Cheap to clone.
#[derive(Clone)]
pub struct Realm {
    game: DarkAges,
    archive: Archive,
}

/// Why an operation on a realm failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The player is banned. There is no session.
    #[error("player {player_id} is banned: {}; it ends by itself or by `unban`", .ban.reason)]
    Banned {
        /// The player who is banned.
        player_id: i64,
        /// Why and until when.
        ban: Ban,
    },
    /// An error of hot state, unchanged.
    #[error(transparent)]
    Hot(#[from] HotError),
    /// An error of the archive, unchanged.
    #[error(transparent)]
    Archive(#[from] archive::Error),
}

/// A player who has logged in.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedIn {
    /// The session that began.
    pub session: Session,
    /// The profile with the login noted in it; `None` if the player is not registered. After an error the session lives, and
    /// the profile may lack the login: [`Realm::note_login`] notes it again.
    pub profile: archive::Result<Option<PlayerProfile>>,
}

/// A ban with what makes it the same when it is called again.
#[derive(Debug, Clone, PartialEq)]
pub struct BanRequest {
    /// The player who is banned.
    pub player_id: i64,
    /// The entity whose session ends; `None` = the player's id.
    pub entity: Option<EntityId>,
    /// Why and until when.
    pub ban: Ban,
    /// When it was decided; the time of its audit entry.
    pub at: Timestamp,
    /// The id of its audit entry. A call with the same time and id is the same ban, and is in the audit log once.
    pub event_id: Uuid,
}

/// What a ban did.
#[derive(Debug, Clone, PartialEq)]
pub struct Banned {
    /// The profile with the ban.
    pub profile: PlayerProfile,
    /// Whether a living session was ended.
    pub was_kicked: bool,
}

impl Realm {
    /// The realm of a game and its archive.
    pub fn new(game: DarkAges, archive: Archive) -> Realm {
        Realm { game, archive }
    }

    /// A ban that is decided now.
    pub fn ban_request(&self, player_id: i64, ban: Ban) -> BanRequest {
        let at = self.archive.history().store().now();
        let random = *Uuid::new_v4().as_bytes();
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&random[..10]);
        let event_id = Builder::from_unix_timestamp_millis(at.max(0) as u64, &bytes).into_uuid();
        BanRequest { player_id, entity: None, ban, at: Timestamp(at), event_id }
    }

    /// Logs a player in, as [`DarkAges::login`], unless the player is banned, and notes the login in the profile. A player
    /// without a profile cannot be banned and logs in.
    pub fn login(&self, request: LoginRequest) -> Pending<'_, Result<LoggedIn, RealmError>> {
        Box::pin(async move {
            let player_id = request.player_id;
            if let Some(ban) = self.archive.profile(player_id).await?.as_ref().and_then(ban_of) {
                return Err(RealmError::Banned { player_id, ban });
            }
            let entity = request.entity.unwrap_or(EntityId(player_id));
            let (ip, client_version) = (request.ip, request.client_version.clone());
            let session = self.game.login(request).await?;
            let login = Login { at: Timestamp(session.login_time), ip, client_version };
            let profile = self.note_login(player_id, login).await;
            if let Ok(Some(profile)) = &profile
                && let Some(ban) = ban_of(profile)
            {
                self.kick(entity, player_id, &ban.reason).await?;
                return Err(RealmError::Banned { player_id, ban });
            }
            Ok(LoggedIn { session, profile })
        })
    }

    /// Notes time, address and client of a login in the profile; `None` if the player is not registered.
    pub fn note_login(
        &self,
        player_id: i64,
        login: Login,
    ) -> Pending<'_, archive::Result<Option<PlayerProfile>>> {
        Box::pin(async move {
            match self.archive.record_login(player_id, login).await {
                Ok(profile) => Ok(Some(profile)),
                Err(archive::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// Bans a player: the profile, the audit log, then the living session, which becomes a play session of history. After
    /// an error call it again with the same request: what was done is not done twice.
    pub fn ban(&self, request: BanRequest) -> Pending<'_, Result<Banned, RealmError>> {
        Box::pin(async move {
            let BanRequest { player_id, entity, ban, at, event_id } = request;
            let details = serde_json::json!({ "reason": ban.reason, "expires": ban.expires.map(|at| at.0) });
            let profile = self.archive.ban(player_id, ban.clone()).await?;
            let entry = AuditEntry {
                timestamp: at,
                event_id,
                event_type: AuditEvent::Ban,
                player_id,
                player_ip: None,
                details: Some(details.to_string().into_bytes()),
                severity: Severity::Critical,
            };
            self.archive.record_audit(entry).await?;
            let entity = entity.unwrap_or(EntityId(player_id));
            let was_kicked = self.kick(entity, player_id, &ban.reason).await?;
            Ok(Banned { profile, was_kicked })
        })
    }

    /// Ends a ban. Without one the profile stays as it is.
    pub fn unban(&self, player_id: i64) -> Pending<'_, Result<PlayerProfile, RealmError>> {
        Box::pin(async move { Ok(self.archive.unban(player_id).await?) })
    }

    /// Ends the session of a banned player; `false` if there is none.
    async fn kick(&self, entity: EntityId, player_id: i64, reason: &str) -> Result<bool, RealmError> {
        match self.game.kick_player(entity, player_id, format!("banned: {reason}")).await {
            Ok(()) => Ok(true),
            Err(HotError::NotLoggedIn { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn ban_of(profile: &PlayerProfile) -> Option<Ban> {
    let reason = profile.ban_reason.clone().unwrap_or_default();
    profile.is_banned.then_some(Ban { reason, expires: profile.ban_expires })
}
