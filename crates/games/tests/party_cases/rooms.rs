//! Creation, closing and versions of rooms.

use super::*;
use std::sync::atomic::{AtomicU8, Ordering};

pub async fn a_created_room_is_an_empty_lobby_of_the_documents_shape(store: Store) {
    let party = Party::new(&store).await;
    let state: Value = serde_json::from_str(&party.stored(&ROOM_STATE.key()).await.unwrap()).unwrap();
    let code = party.code.to_string();
    let expected = serde_json::json!({
        "room_code": code, "phase": "lobby", "lobby": { "players": [], "senders": [] }, "game": null, "scores": {},
    });
    assert_eq!(state, expected);
    let meta: Value = serde_json::from_str(&party.stored(&ROOM_META.key()).await.unwrap()).unwrap();
    assert_eq!((&meta["room_code"], &meta["protocol_version"]), (&code.into(), &1.into()));
    let life = meta["expires_at"].as_i64().unwrap() - meta["created_at"].as_i64().unwrap();
    assert_eq!(life, DAY_MS);
    party.all_end_together().await;
    assert_eq!(party.events().await, [Event::RoomCreated]);
}

pub async fn the_master_key_is_stored_as_its_digest_only(store: Store) {
    let party = Party::new(&store).await;
    let meta = party.stored(&ROOM_META.key()).await.unwrap();
    assert!(!meta.contains(party.key.as_str()));
    let meta: Value = serde_json::from_str(&meta).unwrap();
    let hash = meta["master_hash"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert_eq!(party.key.as_str().len(), 32);
}

pub async fn a_key_that_is_not_the_rooms_leads_nothing(store: Store) {
    let (party, other) = (Party::new(&store).await, Party::new(&store).await);
    let refused = party.rooms.master(party.code, &other.key).await;
    assert_eq!(refused.unwrap_err(), Error::NotMaster(party.code));
    assert!(party.rooms.master(party.code, &party.key).await.is_ok());
}

/// Codes that begin with these bytes, then others: the first ones are taken.
fn first_then(taken: [u8; 6], times: u8) -> RandomSource {
    let left = AtomicU8::new(times);
    RandomSource::of(move |bytes| {
        let repeat = bytes.len() == 6 && left.load(Ordering::Relaxed) > 0;
        if repeat {
            left.fetch_sub(1, Ordering::Relaxed);
            bytes.copy_from_slice(&taken);
        } else {
            bytes.iter_mut().zip(uuid::Uuid::new_v4().as_bytes().iter().cycle()).for_each(|(b, r)| *b = *r);
        }
    })
}

pub async fn a_code_that_is_in_use_is_not_given_again(store: Store) {
    let bytes: [u8; 6] = uuid::Uuid::new_v4().as_bytes()[..6].try_into().unwrap();
    let first = Rooms::with_random(store.clone(), first_then(bytes, 1)).create().await.unwrap();
    let rooms = Rooms::with_random(store.clone(), first_then(bytes, 3));
    let second = rooms.create().await.unwrap();
    assert_ne!(first.room_code, second.room_code);
    assert!(rooms.master(first.room_code, &first.master_key).await.is_ok(), "the first room is as it was");
    let stubborn = Rooms::with_random(store, first_then(bytes, u8::MAX));
    assert_eq!(code_of(stubborn.create().await), "conflict");
}

pub async fn an_unknown_room_is_not_found(store: Store) {
    let party = Party::new(&store).await;
    party.rooms.close(&party.master).await.unwrap();
    let (rooms, code) = (&party.rooms, party.code);
    assert_eq!(rooms.sync(code, None).await.unwrap_err(), Error::RoomNotFound(code));
    assert_eq!(rooms.join(code, &device(1), 1).await, Err(Error::RoomNotFound(code)));
    assert_eq!(party.take(1, 1).await, Err(Error::RoomNotFound(code)));
    assert_eq!(rooms.events_after(code, 0).await, Err(Error::RoomNotFound(code)));
    assert_eq!(rooms.settle(code).await, Err(Error::RoomNotFound(code)));
    assert_eq!(rooms.close(&party.master).await, Err(Error::RoomNotFound(code)));
}

pub async fn a_closed_room_leaves_no_key(store: Store) {
    let party = Party::voting(&store, 3).await;
    party.vote(1, &[1]).await.unwrap();
    assert!(party.keys().await.len() >= 8);
    party.rooms.close(&party.master).await.unwrap();
    assert_eq!(party.keys().await, []);
}

/// A room under the code of one that was closed.
pub async fn successor(party: &Party) -> Party {
    let bytes = party.code.as_str().bytes().map(|byte| {
        let place = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789".iter().position(|known| *known == byte);
        place.unwrap() as u8
    });
    let bytes: Vec<u8> = bytes.collect();
    let rooms = Rooms::with_random(party.store.clone(), first_then(bytes.try_into().unwrap(), 1));
    let created = rooms.create().await.unwrap();
    assert_eq!(created.room_code, party.code);
    let master = rooms.master(created.room_code, &created.master_key).await.unwrap();
    Party { rooms, key: created.master_key, master, ..party.clone() }
}

pub async fn a_proof_of_a_closed_room_is_nothing_to_its_successor(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.rooms.close(&party.master).await.unwrap();
    let after = successor(&party).await;
    assert_eq!(after.events().await, [Event::RoomCreated], "its log begins anew");
    let refused = party.rooms.setup(&party.master, setup_of(2)).await;
    assert_eq!(refused, Err(Error::NotMaster(party.code)));
    assert_eq!(party.rooms.close(&party.master).await, Err(Error::NotMaster(party.code)));
    after.rooms.setup(&after.master, setup_of(2)).await.unwrap();
}

pub async fn a_corrupt_state_is_named_and_the_room_can_be_closed(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.external(&ROOM_STATE.key(), Write::Set(Bytes::from_static(b"{\"phase\""), Expiry::Keep)).await;
    let error = party.rooms.sync(party.code, None).await.unwrap_err();
    assert_eq!(error.code(), "corrupt");
    assert!(error.to_string().contains(":state"), "{error}");
    assert_eq!(code_of(party.take(1, 1).await), "corrupt");
    let master = party.rooms.master(party.code, &party.key).await.unwrap();
    party.rooms.close(&master).await.unwrap();
    assert_eq!(party.keys().await, []);
}

pub async fn a_room_whose_keys_are_of_other_types_can_be_closed(store: Store) {
    let party = Party::set_up(&store, 2).await;
    for key in [party.raw(&DEVICE_TO_PLAYER.key()), party.raw(&ROOM_ROSTER.key())] {
        let transaction = move |tx: &mut Tx<'_, Room>| {
            tx.raw_write(key.clone(), Write::Set(Bytes::from_static(b"x"), Expiry::Never))
        };
        party.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    let error = party.take(1, 1).await.unwrap_err();
    assert!(matches!(error, Error::Store(hot::Error::WrongType { .. })), "{error:?}");
    party.rooms.close(&party.master).await.unwrap();
    assert_eq!(party.keys().await, []);
}

pub async fn a_room_of_another_version_is_refused_and_can_be_closed(store: Store) {
    let (party, other) = (Party::set_up(&store, 2).await, Party::set_up(&store, 2).await);
    party.external_change(&ROOM_META.key(), |meta| meta["protocol_version"] = 2.into()).await;
    let refused = Error::ProtocolVersion { found: 1, expected: 2 };
    assert_eq!(party.rooms.join(party.code, &device(1), 2).await, Err(refused.clone()), "we do not speak it");
    assert_eq!(party.take(1, 1).await, Err(refused.clone()));
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), refused);
    assert_eq!(party.rooms.follow(party.code, 0).await.unwrap_err(), refused);
    assert_eq!(party.rooms.events_after(party.code, 0).await.unwrap_err(), refused);
    other.take(1, 1).await.unwrap();
    party.rooms.close(&party.master).await.unwrap();
    assert_eq!(party.take(1, 1).await, Err(Error::RoomNotFound(party.code)));
}

pub async fn after_an_external_close_what_is_left_of_a_room_ends_by_itself(store: Store) {
    let party = Party::voting(&store, 2).await;
    let end = party.all_end_together().await;
    for key in [&party.raw(&ROOM_META.key()), &party.raw(&ROOM_STATE.key()), &party.raw(&ROOM_ROSTER.key())] {
        let key = key.clone();
        let transaction = move |tx: &mut Tx<'_, Room>| tx.raw_write(key.clone(), Write::Del);
        party.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), Error::RoomNotFound(party.code));
    let left = party.keys().await;
    assert!(left.iter().any(|(name, _)| name.starts_with("ember:log:")), "{left:?}");
    assert!(left.iter().all(|(_, at)| *at == end), "{left:?}");
}

pub async fn a_join_is_refused_to_another_version(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let refused = party.rooms.join(party.code, &device(1), 2).await;
    assert_eq!(refused, Err(Error::ProtocolVersion { found: 2, expected: 1 }));
    let joined = party.rooms.join(party.code, &device(1), 1).await.unwrap();
    assert_eq!((joined.my_player_id, joined.sequence), (None, 2));
    party.take(1, 2).await.unwrap();
    let again = party.rooms.join(party.code, &device(1), 1).await.unwrap();
    assert_eq!((again.my_player_id, again.sequence), (Some(player(2)), 3));
}
