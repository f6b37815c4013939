//! Sessions: login, reading, activity, changes, logout.

use super::sessions_split::Audit;
use super::*;
use crate::darkages::events::{audit, event_id};
use crate::darkages::history::{AuditEvent, Severity};
use crate::darkages::limits::{HEALTH_MAX, STATUS_BYTES_MAX};
use crate::darkages::model::{Point, Position};
use emberkeep_hot::engine::Pending;
use std::net::IpAddr;

/// What a login does if the player has a living session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoginPolicy {
    /// Closes it into history.
    #[default]
    Replace,
    /// Refuses the login with [`AlreadyLoggedIn`](Error::AlreadyLoggedIn).
    Refuse,
}

/// A player who logs in.
#[derive(Debug, Clone, PartialEq)]
pub struct LoginRequest {
    /// The player, who may play several entities.
    pub player_id: i64,
    /// The entity; `None` = the player's id.
    pub entity: Option<EntityId>,
    /// The client's own name, at most 128 bytes.
    pub client_id: String,
    /// The name that leaderboards show.
    pub player_name: String,
    /// The zone that the player enters; [`ZoneId::NONE`] for none.
    pub zone: ZoneId,
    /// Where in the zone.
    pub position: Point,
    /// Full health, with which the player begins. From 1.
    pub max_health: i32,
    /// The team; 0 = none.
    pub team_id: i32,
    /// The client's version, at most 128 bytes; empty = unknown.
    pub client_version: String,
    /// The client's address; `None` = unknown.
    pub ip: Option<IpAddr>,
    /// What to do with a living session.
    pub existing: LoginPolicy,
}

impl LoginRequest {
    /// A login with full health of 100, no team, and the id as name.
    pub fn new(player_id: i64, client_id: impl Into<String>, zone: ZoneId, position: Point) -> LoginRequest {
        LoginRequest {
            player_id,
            entity: None,
            client_id: client_id.into(),
            player_name: player_id.to_string(),
            zone,
            position,
            max_health: 100,
            team_id: 0,
            client_version: String::new(),
            ip: None,
            existing: LoginPolicy::Replace,
        }
    }

    pub(super) fn entity(&self) -> EntityId {
        self.entity.unwrap_or(EntityId(self.player_id))
    }

    fn check(&self) -> Result<()> {
        check_text("client id", &self.client_id)?;
        check_text("player name", &self.player_name)?;
        check_text("client version", &self.client_version)?;
        check_health("full health", self.max_health, 1)?;
        if self.zone.0 < 0 {
            return Err(Error::invalid("zone", format!("{}, expected 0 or more", self.zone.0)));
        }
        check_point(&self.position)
    }
}

/// What changes in a session; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// Health, up to the full one.
    pub health: Option<i32>,
    /// Full health, from 1.
    pub max_health: Option<i32>,
    /// The team; 0 = none.
    pub team_id: Option<i32>,
    /// The status in the words of the game, at most 32 bytes.
    pub status: Option<String>,
}

impl DarkAges {
    /// Logs a player in: session, zone, position and play record, and the login in the audit log. A play record that was
    /// left behind is closed into history first. A player may have several entities: history names a session by the player
    /// and its start, so each begins in a millisecond of its own. Between shards that are partitions of their own that holds
    /// for one entity.
    ///
    /// [`LogFull`](hot::Error::LogFull) = [`AUDIT_LOG_MAX`](crate::darkages::limits::AUDIT_LOG_MAX) entries wait for
    /// history.
    pub fn login(&self, request: LoginRequest) -> Pending<'_, Result<Session>> {
        Box::pin(async move {
            request.check()?;
            if self.is_split() {
                return self.login_split(request).await;
            }
            let (server, zone) = (self.server_instance.clone(), request.zone);
            let transaction = move |tx: &mut Tx<'_, Shard>| login(tx, &request, &server);
            self.scope_of(zone).named("darkages.login").transact(transaction).await
        })
    }

    /// A session; `None` if the entity is not logged in. [`Error::InTransit`] between two shards.
    pub fn session(&self, entity: EntityId) -> Pending<'_, Result<Option<Session>>> {
        Box::pin(async move {
            if self.home.is_some() || !self.is_split() {
                return Ok(self.scope().get(&SESSION.key(entity)).await?);
            }
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                tx.get(&SESSION.key(entity))?.ok_or(Error::NotLoggedIn { entity })
            };
            match self.at_home(entity, "darkages.session", transaction).await {
                Ok(session) => Ok(Some(session)),
                Err(Error::NotLoggedIn { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// Notes that a player is active: the session lives for another hour.
    pub fn touch(&self, entity: EntityId) -> Pending<'_, Result<Session>> {
        self.change(entity, SessionChange::default())
    }

    /// Changes a session. This is activity, too.
    pub fn change(&self, entity: EntityId, change: SessionChange) -> Pending<'_, Result<Session>> {
        Box::pin(async move {
            check_change(&change)?;
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let (mut session, mut play) = logged_in(tx, entity)?;
                apply(&mut session, &change);
                put_active(tx, entity, &mut session, &mut play)?;
                Ok(session)
            };
            self.at_home(entity, "darkages.change", transaction).await
        })
    }

    /// Gives a player another name on the leaderboards, and in its session if it has one.
    pub fn rename<'a>(&'a self, entity: EntityId, name: &'a str) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            check_text("player name", name)?;
            let player_name = name.to_owned();
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let Some(play) = tx.get(&PLAY.key(entity))? else { return Ok(entity.0) };
                tx.put(&PLAY.key(entity), &Play { player_name: player_name.clone(), ..play.clone() })?;
                Ok::<_, Error>(play.player_id)
            };
            // First the session, so that no later hit has the old name.
            let player_id = match self.at_home(entity, "darkages.rename", transaction).await {
                Err(Error::NotLoggedIn { .. }) => entity.0,
                renamed => renamed?,
            };
            self.boards().rename(player_id, name).await
        })
    }

    /// The same for a player, by its id: an entity with this id that another player plays keeps its name.
    pub fn rename_player<'a>(&'a self, player_id: i64, name: &'a str) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            check_text("player name", name)?;
            let (entity, player_name) = (EntityId(player_id), name.to_owned());
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let own = tx.get(&PLAY.key(entity))?.filter(|play| play.player_id == player_id);
                let Some(play) = own else { return Ok(()) };
                Ok(tx.put(&PLAY.key(entity), &Play { player_name: player_name.clone(), ..play })?)
            };
            match self.at_home(entity, "darkages.rename_player", transaction).await {
                Err(Error::NotLoggedIn { .. }) => {}
                renamed => renamed?,
            }
            self.boards().rename(player_id, name).await
        })
    }

    /// Ends a session: it becomes a play session of history, and nothing of it is left in hot state. A position that a zone
    /// server sets later lives for two minutes, without effect.
    ///
    /// [`LogFull`](hot::Error::LogFull) = [`PLAYS_LOG_MAX`](crate::darkages::limits::PLAYS_LOG_MAX) play sessions wait
    /// for history: the player stays logged in.
    pub fn logout(&self, entity: EntityId) -> Pending<'_, Result<()>> {
        self.end(entity, AuditEvent::Logout, Severity::Info, None)
    }

    /// Ends a session against the player's will, with a reason for the audit log.
    pub fn kick(&self, entity: EntityId, reason: String) -> Pending<'_, Result<()>> {
        self.end(entity, AuditEvent::Kick, Severity::Warning, Some(reason))
    }

    fn end(
        &self,
        entity: EntityId,
        event: AuditEvent,
        severity: Severity,
        reason: Option<String>,
    ) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            reason.as_deref().map_or(Ok(()), |reason| check_text("reason", reason))?;
            let details = reason.map(|reason| serde_json::json!({ "reason": reason }).to_string());
            self.end_audited(entity, None, Audit { event, severity, details }).await
        })
    }

    /// Ends a session, if it is that of this player.
    pub(super) async fn end_audited(
        &self,
        entity: EntityId,
        player: Option<i64>,
        entry: Audit,
    ) -> Result<()> {
        let is_other = move |play: &Play| player.is_some_and(|player| player != play.player_id);
        if self.is_split() {
            if player.is_some() {
                let owner = move |tx: &mut Tx<'_, Shard>| Ok(is_other(&logged_in(tx, entity)?.1));
                if self.at_home(entity, "darkages.kick_player", owner).await? {
                    return Err(Error::NotLoggedIn { entity });
                }
            }
            return self.end_split(entity, entry).await;
        }
        let transaction = move |tx: &mut Tx<'_, Shard>| {
            let (_, play) = logged_in(tx, entity)?;
            if is_other(&play) {
                return Err(Error::NotLoggedIn { entity });
            }
            audit(tx, entry.event, entry.severity, &play, entry.details.clone())?;
            let now = tx.now();
            Ok(close(tx, entity, play, now)?)
        };
        self.at_home(entity, "darkages.logout", transaction).await
    }
}

fn login(tx: &mut Tx<'_, Shard>, request: &LoginRequest, server: &str) -> Result<Session> {
    let entity = request.entity();
    let last = LAST_LOGIN.key(EntityId(request.player_id));
    let (session, play, last) =
        tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity)), tx.get(&last)))?;
    if let (Some(session), LoginPolicy::Refuse) = (&session, request.existing) {
        return Err(Error::AlreadyLoggedIn { entity, since: session.login_time });
    }
    let now = tx.now();
    // The key of a play session is the player and its start.
    let begins = last.into_iter().chain(play.as_ref().map(|play| play.login_time));
    let begins = begins.chain(session.as_ref().map(|session| session.login_time)).map(|at| at + 1);
    let login_time = begins.fold(now, i64::max);
    end_former(tx, entity, session, play)?;
    let identity = Identity { session_id: event_id(tx), login_time, number: 0 };
    begin(tx, request, server, &identity)
}

/// Closes what a player left behind in this partition. `false` = nothing.
pub(super) fn end_former(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    session: Option<Session>,
    play: Option<Play>,
) -> hot::Result<bool> {
    let now = tx.now();
    let (play, ended_at) = match (session, play) {
        (Some(session), play) => (play_of(tx, entity, play, &session)?, now),
        (None, Some(play)) => {
            let ended_at = play.last_activity;
            (play, ended_at)
        }
        (None, None) => return Ok(false),
    };
    close(tx, entity, play, ended_at)?;
    Ok(true)
}

/// What tells a session from every other one.
pub(super) struct Identity {
    pub(super) session_id: uuid::Uuid,
    pub(super) login_time: i64,
    /// That of the directory; 0 without one.
    pub(super) number: i64,
}

/// Writes a session, its play record, position and zone, and the login in the audit log.
pub(super) fn begin(
    tx: &mut Tx<'_, Shard>,
    request: &LoginRequest,
    server: &str,
    identity: &Identity,
) -> Result<Session> {
    let (entity, now) = (request.entity(), tx.now());
    let Identity { session_id, login_time, number } = *identity;
    let LoginRequest { zone, max_health, team_id, .. } = *request;
    let mut session = Session {
        team_id,
        ..Session::new(
            entity.0,
            request.client_id.clone(),
            zone.0,
            login_time,
            now,
            request.position.clone(),
            max_health,
            max_health,
        )
    };
    let mut play = Play {
        player_name: request.player_name.clone(),
        client_version: request.client_version.clone(),
        server_instance: server.to_owned(),
        ip: request.ip,
        number,
        ..Play::new(session_id, request.player_id, login_time, now, zone.0)
    };
    put_active(tx, entity, &mut session, &mut play)?;
    tx.put(&LAST_LOGIN.key(EntityId(request.player_id)), &login_time)?;
    let Point { x, y, z, .. } = request.position;
    tx.put(&POSITION.key(entity), &Position { x, y, z, at: now })?;
    super::zones::enter(tx, entity, ZoneId::NONE, zone)?;
    sessions_due().set(tx, &entity, if number == 0 { session_end(now) } else { next_check(now) })?;
    audit(tx, AuditEvent::Login, Severity::Info, &play, None)?;
    Ok(session)
}

fn apply(session: &mut Session, change: &SessionChange) {
    session.max_health = change.max_health.unwrap_or(session.max_health);
    session.health = change.health.unwrap_or(session.health).min(session.max_health);
    session.team_id = change.team_id.unwrap_or(session.team_id);
    if let Some(status) = &change.status {
        session.status.clone_from(status);
    }
}

fn check_change(change: &SessionChange) -> Result<()> {
    change.health.map_or(Ok(()), |health| check_health("health", health, 0))?;
    change.max_health.map_or(Ok(()), |health| check_health("full health", health, 1))?;
    match change.status.as_deref().and_then(|status| word_problem(status, STATUS_BYTES_MAX)) {
        Some(problem) => Err(Error::invalid("status", problem)),
        None => Ok(()),
    }
}

fn check_health(what: &'static str, health: i32, min: i32) -> Result<()> {
    if (min..=HEALTH_MAX).contains(&health) {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{health}, expected {min} to {HEALTH_MAX}")))
}

pub(super) fn check_point(point: &Point) -> Result<()> {
    if point.is_finite() {
        return Ok(());
    }
    Err(Error::invalid("position", "a coordinate that is infinite or not a number"))
}
