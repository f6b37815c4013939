//! Sessions and profiles joined: logins are noted, bans refuse logins and end sessions.

use super::City;
use emberkeep_games::darkages::archive::profiles::{Ban, NewPlayer};
use emberkeep_games::darkages::archive::{Archive, AuditFilter, PageRequest, TimeRange};
use emberkeep_games::darkages::history::{AuditEntry, AuditEvent, Severity, schema};
use emberkeep_games::darkages::{LoginPolicy, Realm, RealmError, consumers};
use emberkeep_history::{Clock, Embedded, History, ManualClock, embedded::Options};
use emberkeep_hot::Store;
use emberkeep_schema::Timestamp;
use emberkeep_testkit::{Scratch, scratch};
use std::sync::Arc;

struct Joined {
    city: City,
    archive: Archive,
    realm: Realm,
    clock: ManualClock,
    began: i64,
    _folder: Scratch,
}

impl Joined {
    async fn of(store: &Store) -> Joined {
        let (city, folder) = (City::of(store), scratch());
        let began = store.now().await.unwrap();
        let clock = ManualClock::at(began);
        let options =
            Options { clock: Clock::Manual(clock.clone()), free_bytes_min: 0, ..Options::default() };
        let embedded = Embedded::open(folder.path(), schema(), options).unwrap();
        let archive = Archive::new(History::new(Arc::new(embedded)));
        let realm = Realm::new(city.game.clone(), archive.clone());
        Joined { city, archive, realm, clock, began, _folder: folder }
    }

    async fn register(&self, number: i64) -> i64 {
        let player_id = self.city.player(number).0;
        let (username, email) = (format!("player {player_id}"), format!("{player_id}@example.org"));
        self.archive.register(NewPlayer { player_id, username, email }).await.unwrap();
        player_id
    }

    /// The audit entries of a player, after everything that waits was delivered.
    async fn audit(&self, player_id: i64, event_type: AuditEvent) -> Vec<AuditEntry> {
        for consumer in consumers(&self.city.scope, self.archive.history()).unwrap() {
            consumer.drain_once().await.unwrap().expect("no other consumer has the lease");
        }
        let range = TimeRange::new(Timestamp(self.began - 60_000), Timestamp(self.began + 600_000)).unwrap();
        let filter = AuditFilter { event_type: Some(event_type), severity: None };
        let request = PageRequest { rows_max: 1_000, ..PageRequest::default() };
        let page = self.archive.audit_entries(filter, range, request).await.unwrap();
        page.rows.into_iter().filter(|entry| entry.player_id == player_id).collect()
    }
}

pub async fn a_login_is_noted_in_the_profile(store: Store) {
    let joined = Joined::of(&store).await;
    let player_id = joined.register(1).await;
    let mut request = joined.city.request(1);
    (request.ip, request.client_version) = ("192.0.2.7".parse().ok(), "1.2.3".into());
    let logged_in = joined.realm.login(request).await.unwrap();
    let profile = logged_in.profile.unwrap().unwrap();
    assert_eq!(profile.last_login, Some(Timestamp(logged_in.session.login_time)));
    assert_eq!(profile.last_known_ip, "192.0.2.7".parse().ok());
    assert!(profile.client_versions.contains("1.2.3"));
    assert_eq!(joined.archive.profile(player_id).await.unwrap(), Some(profile));
    // A player without a profile logs in, too.
    let stranger = joined.realm.login(joined.city.request(2)).await.unwrap();
    assert_eq!(stranger.profile, Ok(None));
}

pub async fn a_ban_ends_the_session_and_is_audited_once(store: Store) {
    let joined = Joined::of(&store).await;
    let player_id = joined.register(1).await;
    joined.realm.login(joined.city.request(1)).await.unwrap();
    let expires = Some(Timestamp(joined.clock.now() + 60_000));
    let ban = Ban { reason: "a speed hack".into(), expires };
    let request = joined.realm.ban_request(player_id, ban.clone());
    let banned = joined.realm.ban(request.clone()).await.unwrap();
    assert!(banned.was_kicked && banned.profile.is_banned);
    assert_eq!(joined.city.game.session(joined.city.player(1)).await.unwrap(), None);
    assert_eq!(joined.city.play_ends(player_id).await.len(), 1);
    // As a caller does that got no answer.
    assert!(!joined.realm.ban(request.clone()).await.unwrap().was_kicked);
    let entries = joined.audit(player_id, AuditEvent::Ban).await;
    assert_eq!(
        (entries.len(), entries[0].event_id, entries[0].severity),
        (1, request.event_id, Severity::Critical)
    );
    assert_eq!(joined.audit(player_id, AuditEvent::Kick).await.len(), 1);
    // Where the caller asks for it, a login is refused, and the session of another does not help.
    for existing in [LoginPolicy::Replace, LoginPolicy::Refuse] {
        let mut request = joined.city.request(1);
        request.existing = existing;
        let refused = joined.realm.login(request).await.unwrap_err();
        assert_eq!(refused, RealmError::Banned { player_id, ban: ban.clone() });
    }
    assert_eq!(joined.city.game.session(joined.city.player(1)).await.unwrap(), None);
    // It ends by itself.
    joined.clock.advance(60_000);
    joined.realm.login(joined.city.request(1)).await.unwrap();
}

pub async fn a_ban_of_a_player_without_a_profile_is_refused(store: Store) {
    let joined = Joined::of(&store).await;
    let (entity, _) = joined.city.login(1).await;
    let request = joined.realm.ban_request(entity.0, Ban { reason: "spam".into(), expires: None });
    joined.realm.ban(request).await.unwrap_err();
    assert!(joined.city.game.session(entity).await.unwrap().is_some());
    assert_eq!(joined.audit(entity.0, AuditEvent::Ban).await, []);
    // The entity of another player is not kicked.
    let player_id = joined.register(2).await;
    let mut request = joined.realm.ban_request(player_id, Ban { reason: "spam".into(), expires: None });
    request.entity = Some(entity);
    assert!(!joined.realm.ban(request).await.unwrap().was_kicked);
    assert!(joined.city.game.session(entity).await.unwrap().is_some());
}

/// A login and a ban at once, 32 times: when both have returned, a banned player has no session.
pub async fn a_ban_and_a_login_at_once_leave_no_session(store: Store) {
    let joined = Joined::of(&store).await;
    for number in 1..=32 {
        let player_id = joined.register(number).await;
        let request = joined.realm.ban_request(player_id, Ban { reason: "spam".into(), expires: None });
        let (login, ban) =
            tokio::join!(joined.realm.login(joined.city.request(number)), joined.realm.ban(request));
        ban.unwrap();
        assert!(matches!(login, Ok(_) | Err(RealmError::Banned { .. })), "{login:?}");
        let session = joined.city.game.session(joined.city.player(number)).await.unwrap();
        assert_eq!(session, None, "{player_id} is banned");
    }
}

pub async fn suspicious_activity_is_audited(store: Store) {
    let joined = Joined::of(&store).await;
    let (entity, _) = joined.city.login(1).await;
    let details = serde_json::json!({ "speed": 99.5 });
    joined.city.game.suspicious(entity, Severity::Critical, details).await.unwrap();
    let entries = joined.audit(entity.0, AuditEvent::Suspicious).await;
    assert_eq!((entries.len(), entries[0].severity), (1, Severity::Critical));
    assert_eq!(entries[0].details.as_deref(), Some(br#"{"speed":99.5}"#.as_slice()));
    assert!(joined.city.game.session(entity).await.unwrap().is_some());
    let long = serde_json::json!("x".repeat(4_095));
    joined.city.game.suspicious(entity, Severity::Info, long).await.unwrap_err();
    let absent = joined.city.player(9);
    joined.city.game.suspicious(absent, Severity::Info, serde_json::json!({})).await.unwrap_err();
}
