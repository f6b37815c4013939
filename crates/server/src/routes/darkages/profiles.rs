//! Profiles: registration, reading, changes, logins, bans.

use super::page::{archive, no_history, realm};
use super::rows::HistoryRow;
use crate::answer::Answer;
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::routes::path::{EmailPath, PlayerPath, UsernamePath};
use crate::routes::responses::{Conflict, Created, NotFound};
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use emberkeep_games::darkages::archive::Archive;
use emberkeep_games::darkages::archive::profiles::{Ban, Login, NewPlayer, ProfileUpdate};
use emberkeep_games::darkages::history::PlayerProfile;
use emberkeep_games::darkages::{BanRequest, EntityId};
use emberkeep_schema::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use utoipa::ToSchema;
use uuid::Uuid;

type Profile = HistoryRow<PlayerProfile>;

/// A player who registers.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"player_id": 12_345, "username": "Ann", "email": "ann@example.org"}))]
pub(super) struct Registration {
    /// The player; any number that no other player has.
    player_id: i64,
    /// At most 32 characters. Names that differ in case only are the same.
    username: String,
    /// At most 254 bytes.
    email: String,
}

/// Registers a player at level 1. One of several callers with the same name or address wins; the others get `taken`.
#[utoipa::path(post, path = "/v1/darkages/profiles", tag = "darkages",
    request_body = Registration,
    responses((status = 201, description = "The profile", body = Profile,
        headers(("Location" = String, description = "The URL of the profile"))), Conflict))]
pub(super) async fn register_player(
    State(app): State<AppState>,
    Json(body): Json<Registration>,
) -> Result<Created<Profile>, ApiError> {
    let Registration { player_id, username, email } = body;
    let profile = archive(&app)?.register(NewPlayer { player_id, username, email }).await?;
    Ok(Created { location: format!("/v1/darkages/profiles/{player_id}"), body: profile.into() })
}

/// Returns the profile of a player. A ban that has expired reads as none.
#[utoipa::path(get, path = "/v1/darkages/profiles/{player}", tag = "darkages",
    params(PlayerPath), responses((status = 200, description = "The profile", body = Profile), NotFound))]
pub(super) async fn get_profile(
    State(app): State<AppState>,
    Path(player): PlayerPath,
) -> Result<Answer<Profile>, ApiError> {
    found(archive(&app)?.profile(player.0).await?, &player.0)
}

/// Returns the profile with a name.
#[utoipa::path(get, path = "/v1/darkages/profiles/by-username/{username}", tag = "darkages",
    params(UsernamePath), responses((status = 200, description = "The profile", body = Profile), NotFound))]
pub(super) async fn get_profile_by_username(
    State(app): State<AppState>,
    Path(username): UsernamePath,
) -> Result<Answer<Profile>, ApiError> {
    found(archive(&app)?.profile_by_username(&username.0).await?, &username.0)
}

/// Returns the profile with an e-mail address.
#[utoipa::path(get, path = "/v1/darkages/profiles/by-email/{email}", tag = "darkages",
    params(EmailPath), responses((status = 200, description = "The profile", body = Profile), NotFound))]
pub(super) async fn get_profile_by_email(
    State(app): State<AppState>,
    Path(email): EmailPath,
) -> Result<Answer<Profile>, ApiError> {
    found(archive(&app)?.profile_by_email(&email.0).await?, &email.0)
}

fn found(
    profile: Option<PlayerProfile>,
    wanted: &dyn std::fmt::Display,
) -> Result<Answer<Profile>, ApiError> {
    profile.map(|profile| Answer(profile.into())).ok_or_else(|| {
        ApiError::new(StatusCode::NOT_FOUND, "not_registered", format!("no player is registered as {wanted}"))
    })
}

/// New values of a profile; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"level": 2, "experience": 150, "preferred_class": 3, "settings": {"volume": 7}}))]
pub(super) struct ProfileChange {
    /// The level, from 1.
    #[schema(minimum = 1)]
    level: Option<i32>,
    /// Points of experience, from 0.
    #[schema(minimum = 0)]
    experience: Option<i64>,
    /// Whole minutes of play, as the game counts them.
    #[schema(minimum = 0)]
    total_playtime_minutes: Option<i64>,
    /// The class; `null` removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<i8>)]
    preferred_class: Option<Option<i8>>,
    /// Settings, any JSON of at most 64 KiB; `null` removes them.
    #[serde(default, deserialize_with = "present")]
    settings: Option<Value>,
}

/// A field that is there, `null` included.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Changes level, experience, playtime, class and settings. No concurrent update is lost.
#[utoipa::path(post, path = "/v1/darkages/profiles/{player}/change", tag = "darkages",
    params(PlayerPath), request_body = ProfileChange,
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn change_profile(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<ProfileChange>,
) -> Result<Answer<Profile>, ApiError> {
    let settings = body.settings.map(|settings| match settings {
        Value::Null => None,
        settings => Some(settings.to_string().into_bytes()),
    });
    let update = ProfileUpdate {
        level: body.level,
        experience: body.experience,
        total_playtime_minutes: body.total_playtime_minutes,
        preferred_class: body.preferred_class,
        settings,
    };
    Ok(Answer(archive(&app)?.update_profile(player.0, update).await?.into()))
}

/// The new name of a registered player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"username": "Anna"}))]
pub(super) struct Rename {
    /// At most 32 characters.
    username: String,
}

/// Gives a player another name and frees the old one. Its session and the leaderboards get the name, too. After an error the
/// same call completes what was begun.
#[utoipa::path(put, path = "/v1/darkages/profiles/{player}/username", tag = "darkages",
    params(PlayerPath), request_body = Rename,
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn change_username(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<Rename>,
) -> Result<Answer<Profile>, ApiError> {
    let profile = archive(&app)?.rename(player.0, &body.username).await?;
    app.darkages.rename_player(player.0, &profile.username).await?;
    Ok(Answer(profile.into()))
}

/// The new e-mail address of a registered player.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"email": "anna@example.org"}))]
pub(super) struct EmailChange {
    /// At most 254 bytes.
    email: String,
}

/// Gives a player another e-mail address and frees the old one.
#[utoipa::path(put, path = "/v1/darkages/profiles/{player}/email", tag = "darkages",
    params(PlayerPath), request_body = EmailChange,
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn change_email(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<EmailChange>,
) -> Result<Answer<Profile>, ApiError> {
    Ok(Answer(archive(&app)?.change_email(player.0, &body.email).await?.into()))
}

/// What is known of a login.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"client_version": "1.4.2", "ip": "192.0.2.7"}))]
pub(super) struct LoginRecord {
    /// When it was, in milliseconds since 1970; now if absent.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64)]
    at: Option<i64>,
    /// The client's address; absent if it is not known.
    #[schema(value_type = Option<String>)]
    ip: Option<IpAddr>,
    /// By which client, at most 128 bytes.
    client_version: String,
}

/// Records the time, address and client of a login in the profile.
#[utoipa::path(post, path = "/v1/darkages/profiles/{player}/logins", tag = "darkages",
    params(PlayerPath), request_body = LoginRecord,
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn record_login(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<LoginRecord>,
) -> Result<Answer<Profile>, ApiError> {
    let archive = archive(&app)?;
    let at = body.at.map_or_else(|| now(&archive), Timestamp);
    if !at.is_valid() {
        return Err(outside("at", at));
    }
    let login = Login { at, ip: body.ip, client_version: body.client_version };
    Ok(Answer(archive.record_login(player.0, login).await?.into()))
}

fn outside(what: &'static str, at: Timestamp) -> ApiError {
    let detail = format!("{what} is {}, expected milliseconds from 1970 to 9999", at.0);
    ApiError::invalid(detail).with("what", what)
}

/// The time of history.
pub(super) fn now(archive: &Archive) -> Timestamp {
    Timestamp(archive.history().store().now())
}

/// Why and until when a player is banned.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"reason": "speed hack"}))]
pub(super) struct ProfileBan {
    /// Why, at most 1,024 bytes.
    reason: String,
    /// When it ends, in milliseconds since 1970; never if absent.
    expires: Option<i64>,
    /// The entity whose session ends; the player's id if absent.
    entity_id: Option<i64>,
    /// The id of its entry in the audit log, by which a repeated call writes the same entry; a new one if absent.
    event_id: Option<Uuid>,
    /// When it was decided, in milliseconds since 1970; now if absent. A repeated call has the same.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64)]
    timestamp: Option<i64>,
}

/// Bans a player: the profile, the audit log, then the living session, which ends. A ban replaces the one before. After an error
/// the same call completes what was begun; with `event_id` and `timestamp` it is in the audit log once.
#[utoipa::path(put, path = "/v1/darkages/profiles/{player}/ban", tag = "darkages",
    params(PlayerPath), request_body = ProfileBan,
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn ban_profile(
    State(app): State<AppState>,
    Path(player): PlayerPath,
    Json(body): Json<ProfileBan>,
) -> Result<Answer<Profile>, ApiError> {
    let realm = realm(&app).ok_or_else(no_history)?;
    let ban = Ban { reason: body.reason, expires: body.expires.map(Timestamp) };
    let new = realm.ban_request(player.0, ban);
    let at = body.timestamp.map_or(new.at, Timestamp);
    if !at.is_valid() {
        return Err(outside("timestamp", at));
    }
    let (entity, event_id) = (body.entity_id.map(EntityId), body.event_id.unwrap_or(new.event_id));
    let banned = realm.ban(BanRequest { at, entity, event_id, ..new }).await?;
    Ok(Answer(banned.profile.into()))
}

/// A ban that has not expired.
#[derive(Serialize, ToSchema)]
pub(super) struct LivingBan {
    /// The reason that the ban was given with.
    #[schema(example = "speed hack")]
    reason: String,
    /// When it ends, in milliseconds since 1970; `null` if never.
    expires: Option<i64>,
}

/// Returns the ban of a player that has not expired.
#[utoipa::path(get, path = "/v1/darkages/profiles/{player}/ban", tag = "darkages",
    params(PlayerPath), responses((status = 200, description = "The ban", body = LivingBan), NotFound))]
pub(super) async fn get_ban(
    State(app): State<AppState>,
    Path(player): PlayerPath,
) -> Result<Answer<LivingBan>, ApiError> {
    let ban = archive(&app)?.ban_of(player.0).await?;
    let Ban { reason, expires } =
        ban.ok_or_else(|| ApiError::not_found(format!("player {} is not banned", player.0)))?;
    Ok(Answer(LivingBan { reason, expires: expires.map(|expires| expires.0) }))
}

/// Ends the ban of a player. A player without one stays as it is.
#[utoipa::path(delete, path = "/v1/darkages/profiles/{player}/ban", tag = "darkages",
    params(PlayerPath),
    responses((status = 200, description = "The profile", body = Profile), NotFound, Conflict))]
pub(super) async fn unban_profile(
    State(app): State<AppState>,
    Path(player): PlayerPath,
) -> Result<Answer<Profile>, ApiError> {
    Ok(Answer(archive(&app)?.unban(player.0).await?.into()))
}
