//! Connections: found by their entity, and gone with its session.

use super::City;
use bytes::Bytes;
use emberkeep_games::darkages::events::AuditRecord;
use emberkeep_games::darkages::limits::CONNECTIONS_PER_ENTITY_MAX;
use emberkeep_games::darkages::{
    AUDIT_LOG, CONNECTION, CONNECTIONS, ConnectionRequest, EntityId, Error, LoginRequest, SESSION,
};
use emberkeep_hot::command::Write;
use emberkeep_hot::{self as hot, Store};
use emberkeep_schema::Name;

impl City {
    fn connection(&self, entity: EntityId, number: usize) -> ConnectionRequest {
        let id = Name::new(format!("c-{}-{number}", entity.0)).unwrap();
        let ip_address = Some("203.0.113.7".parse().unwrap());
        ConnectionRequest { id, entity, ip_address, client_version: "2.1".into() }
    }

    pub(super) async fn open(&self, entity: EntityId, number: usize) -> Name {
        self.game.open_connection(self.connection(entity, number)).await.unwrap().id
    }

    pub(super) async fn connection_ids(&self, entity: EntityId) -> Vec<Name> {
        let connections = self.game.connections(entity).await.unwrap();
        let mut ids: Vec<Name> = connections.into_iter().map(|connection| connection.id).collect();
        ids.sort();
        ids
    }
}

pub async fn a_connection_has_the_fields_of_the_document(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    let before = store.now().await.unwrap();
    let opened = city.game.open_connection(city.connection(entity, 1)).await.unwrap();
    assert!((before..=store.now().await.unwrap()).contains(&opened.connect_time), "in milliseconds");
    assert_eq!(city.game.connection(opened.id.clone()).await.unwrap(), Some(opened.clone()));
    let mut fields = city.scope.hgetall(&CONNECTION.key(&opened.id)).await.unwrap();
    fields.sort();
    let time = opened.connect_time.to_string();
    let id = entity.0.to_string();
    let expected = [
        ("client_version", "2.1"),
        ("connect_time", &time),
        ("entity_id", &id),
        ("ip_address", "203.0.113.7"),
    ];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let deadline = city.scope.deadline_of(&CONNECTION.key(&opened.id)).await.unwrap().unwrap();
    assert_eq!(deadline - opened.connect_time, 3_600_000);
    assert!(city.game.touch_connection(opened.id.clone()).await.unwrap());
    assert!(city.game.close_connection(opened.id.clone()).await.unwrap());
    assert!(!city.game.close_connection(opened.id.clone()).await.unwrap(), "closed once");
    assert!(!city.game.touch_connection(opened.id.clone()).await.unwrap(), "and not opened by a touch");
    assert_eq!(city.game.connection(opened.id).await.unwrap(), None);
    assert!(city.game.session(entity).await.unwrap().is_some(), "the session goes on without a connection");
}

pub async fn connections_end_with_the_session(store: Store) {
    let city = City::of(&store);
    let ((kicked, _), (gone, _)) = (city.login(1).await, city.login(2).await);
    for entity in [kicked, gone] {
        city.open(entity, 1).await;
        city.open(entity, 2).await;
        assert_eq!(city.connection_ids(entity).await.len(), 2);
    }
    city.game.kick(kicked, "speed".into()).await.unwrap();
    assert!(city.game.session(kicked).await.unwrap().is_none());
    let audit: Vec<AuditRecord> = city.waiting(AUDIT_LOG.key()).await;
    let own: Vec<_> = audit.iter().filter(|entry| entry.player_id == kicked.0).collect();
    assert_eq!(own.iter().map(|entry| entry.event_type.as_str()).collect::<Vec<_>>(), ["login", "kick"]);
    assert_eq!(own[1].details.as_deref(), Some(r#"{"reason":"speed"}"#));
    city.scope.del(&SESSION.key(gone)).await.unwrap();
    city.make_due(gone).await;
    assert_eq!(city.game.close_expired(10).await.unwrap().closed, 1);
    for entity in [kicked, gone] {
        assert_eq!(city.connection_ids(entity).await, [] as [Name; 0]);
        assert!(!city.scope.exists(&CONNECTIONS.key(entity)).await.unwrap());
        for number in 1..3 {
            let id = city.connection(entity, number).id;
            assert!(!city.scope.exists(&CONNECTION.key(&id)).await.unwrap(), "{id} of {entity}");
        }
    }
}

pub async fn connections_of_strangers_are_refused(store: Store) {
    let city = City::of(&store);
    let ((one, _), (other, _)) = (city.login(1).await, city.login(2).await);
    let id = city.open(one, 1).await;
    let stolen = ConnectionRequest { entity: other, ..city.connection(one, 1) };
    let in_use = Error::ConnectionInUse { connection: id.clone(), entity: one };
    assert_eq!(city.game.open_connection(stolen).await, Err(in_use));
    assert_eq!(city.open(one, 1).await, id, "its own entity opens it again");
    let entity = city.player(9);
    let stranger = city.game.open_connection(city.connection(entity, 1)).await;
    assert_eq!(stranger, Err(Error::NotLoggedIn { entity }));
    for number in 2..=CONNECTIONS_PER_ENTITY_MAX {
        city.open(one, number).await;
    }
    let full = city.game.open_connection(city.connection(one, 0)).await;
    assert_eq!(full, Err(Error::TooManyConnections { entity: one, max: CONNECTIONS_PER_ENTITY_MAX }));
    city.scope.del(&CONNECTION.key(&id)).await.unwrap();
    city.open(one, 0).await;
}

pub async fn connections_of_other_programs_keep_their_fields(store: Store) {
    let city = City::of(&store);
    let (entity, _) = city.login(1).await;
    let id = city.open(entity, 1).await;
    let set = |field: &'static str, value: &'static str| {
        Write::HSet(vec![(Bytes::from_static(field.as_bytes()), Bytes::from_static(value.as_bytes()))])
    };
    let key = CONNECTION.key(&id);
    city.external(&key, set("latency_ms", "31")).await;
    city.game.touch_connection(id.clone()).await.unwrap();
    let found = city.game.connection(id.clone()).await.unwrap().unwrap();
    assert_eq!(found.other.get("latency_ms").map(String::as_str), Some("31"));
    for (field, value) in [("ip_address", "here"), ("connect_time", "now"), ("entity_id", "9.5")] {
        city.external(&key, set(field, value)).await;
        let failed = city.game.connection(id.clone()).await;
        let Err(Error::Store(error @ hot::Error::Corrupt { .. })) = failed else { panic!("{failed:?}") };
        let text = error.to_string();
        assert!(text.contains(&format!("internal:conn:{id}")) && text.contains(field), "{text}");
    }
    assert!(city.game.close_connection(id.clone()).await.unwrap(), "it can be closed all the same");
    assert_eq!(city.connection_ids(entity).await, [] as [Name; 0]);
    city.external_set(&key, "not a hash").await;
    let failed = city.game.connection(id.clone()).await;
    assert!(matches!(failed, Err(Error::Store(hot::Error::WrongType { .. }))), "{failed:?}");
    assert!(city.game.close_connection(id).await.unwrap(), "it can be closed, too");
}

/// A connection of one entity expires while another one keeps its set; then the id is free.
pub async fn a_connection_belongs_to_who_opened_it_last(store: Store) {
    let city = City::of(&store);
    let ((one, _), (other, _)) = (city.login(1).await, city.login(2).await);
    let (id, second) = (city.open(one, 1).await, city.open(one, 2).await);
    city.scope.del(&CONNECTION.key(&id)).await.unwrap();
    let taken = ConnectionRequest { entity: other, ..city.connection(one, 1) };
    city.game.open_connection(taken).await.unwrap();
    assert_eq!(city.connection_ids(one).await, std::slice::from_ref(&second));
    city.external(&CONNECTIONS.key(one), Write::SAdd(vec![id.to_string().into()])).await;
    city.game.logout(one).await.unwrap();
    assert_eq!(city.game.connection(second).await.unwrap(), None);
    assert_eq!(city.connection_ids(other).await, [id], "it is the other's, and open");
}

pub async fn ids_of_connections_are_those_of_all_shards(store: Store) {
    let city = City::of_shards(&store);
    let (one, _) = city.login(1).await;
    let other = city.player(2);
    city.game.login(LoginRequest { zone: city.zone(11), ..city.request(2) }).await.unwrap();
    let id = city.open(one, 1).await;
    let stolen = ConnectionRequest { entity: other, ..city.connection(one, 1) };
    let in_use = Error::ConnectionInUse { connection: id, entity: one };
    assert_eq!(city.game.open_connection(stolen).await, Err(in_use));
    city.game.logout(one).await.unwrap();
    assert_eq!(city.connection_ids(one).await, [] as [Name; 0], "of who is not logged in there is none");
}
