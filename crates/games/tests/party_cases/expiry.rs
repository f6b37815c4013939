//! The expiry of rooms.

use super::*;

/// Lets the room have expired so long ago, as if it had not been used; its keys are still there.
async fn expire(party: &Party, ago_ms: i64) {
    let at = party.store.now().await.unwrap() - ago_ms;
    party.external_change(&ROOM_META.key(), |meta| meta["expires_at"] = at.into()).await;
}

/// Lets all keys of the room end sooner.
async fn shorten(party: &Party) -> i64 {
    let until = party.store.now().await.unwrap() + 3_600_000;
    for (name, _) in party.keys().await {
        let cluster = party.store.key_layout().topology() == emberkeep_schema::Topology::Cluster;
        let name = if cluster { format!("{{{}}}{name}", party.code) } else { name };
        let life = if name.ends_with(":meta") { DAY_MS } else { 0 };
        let transaction = move |tx: &mut Tx<'_, Room>| {
            tx.raw_write(Bytes::from(name.clone()), Write::ExpireAt(until + life))
        };
        party.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    party.external_change(&ROOM_META.key(), |meta| meta["expires_at"] = until.into()).await;
    assert_eq!(party.all_end_together().await, until);
    until
}

pub async fn every_operation_moves_the_end_of_every_key(store: Store) {
    let party = Party::voting(&store, 3).await;
    party.vote(1, &[1]).await.unwrap();
    for operation in 0..8 {
        let until = shorten(&party).await;
        match operation {
            0 => drop(party.rooms.join(party.code, &device(7), 1).await.unwrap()),
            1 => drop(party.sync(1).await),
            2 => drop(party.sync_master().await),
            3 => party.rooms.rename_player(&party.master, &player(1), "Renamed").await.unwrap(),
            4 => drop(party.rooms.force_close_vote(&party.master).await.unwrap()),
            5 => drop(party.vote(2, &[1]).await.unwrap()),
            6 => drop(party.rooms.release_player(party.code, &device(1)).await.unwrap()),
            _ => drop(party.vote(3, &[1]).await.unwrap()),
        }
        let end = party.all_end_together().await;
        assert!(end > until + DAY_MS / 2, "operation {operation} left the end where it was");
    }
}

pub async fn a_look_at_the_log_or_an_idle_timer_keeps_no_room_alive(store: Store) {
    let party = Party::voting(&store, 2).await;
    let until = shorten(&party).await;
    party.rooms.settle(party.code).await.unwrap();
    party.rooms.events_after(party.code, 0).await.unwrap();
    party.rooms.master(party.code, &party.key).await.unwrap();
    party.rooms.view(party.code).await.unwrap();
    party.rooms.sync(party.code, None).await.unwrap();
    party.rooms.sync(party.code, Some(&device(9))).await.unwrap();
    party.rooms.may_join(party.code, JoinRequest::new(device(9), 1)).await.unwrap();
    assert_eq!(code_of(party.rooms.join(party.code, &device(9), 2).await), "invalid_protocol_version");
    assert_eq!(code_of(party.rooms.verify_device(party.code, &device(1), "guess").await), "not_this_device");
    assert_eq!(code_of(party.take(1, 2).await), "device_already_has_player");
    assert_eq!(party.all_end_together().await, until);
}

pub async fn an_expired_room_says_so_and_its_leftovers_go(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    expire(&party, 1).await;
    assert_eq!(party.rooms.events_after(party.code, 0).await, Err(Error::RoomExpired(party.code)));
    assert_eq!(party.vote(2, &[1]).await, Err(Error::RoomExpired(party.code)));
    assert_eq!(party.names().await, ["meta"], "the tombstone stays, nothing else");
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), Error::RoomExpired(party.code));
    assert_eq!(party.rooms.join(party.code, &device(1), 1).await, Err(Error::RoomExpired(party.code)));
    assert_eq!(party.rooms.close(&party.master).await, Err(Error::RoomExpired(party.code)));
    assert_eq!(party.names().await, ["meta"]);
}

pub async fn a_room_whose_state_is_gone_has_expired(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.external(&ROOM_STATE.key(), Write::Del).await;
    assert_eq!(party.rooms.sync(party.code, None).await.unwrap_err(), Error::RoomExpired(party.code));
    assert_eq!(party.names().await, ["meta"]);
}

pub async fn a_roster_that_was_lost_is_made_again(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    party.external(&ROOM_ROSTER.key(), Write::Del).await;
    shorten(&party).await;
    party.sync(1).await;
    party.all_end_together().await;
    party.external(&ROOM_ROSTER.key(), Write::Del).await;
    party.rooms.close(&party.master).await.unwrap();
    assert_eq!(party.keys().await, [], "what a room can have is known without it");
}

pub async fn a_key_that_lost_its_end_gets_it_back(store: Store) {
    let party = Party::voting(&store, 2).await;
    party.vote(1, &[1]).await.unwrap();
    for key in [party.raw(&VOTES.key(round(1), item(1))), party.raw(&ROOM_STATE.key())] {
        let transaction = move |tx: &mut Tx<'_, Room>| tx.raw_write(key.clone(), Write::Persist);
        party.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    party.sync(1).await;
    party.all_end_together().await;
}

pub async fn a_name_of_another_room_in_the_roster_does_no_harm(store: Store) {
    let (party, other) = (Party::set_up(&store, 2).await, Party::set_up(&store, 2).await);
    let stranger = other.raw(&ROOM_STATE.key());
    party
        .external(&ROOM_ROSTER.key(), Write::SAdd(vec![stranger.clone(), Bytes::from_static(b"rubbish")]))
        .await;
    let before = other.all_end_together().await;
    party.rooms.touch(party.code).await.unwrap();
    assert_eq!(other.all_end_together().await, before);
    party.external(&ROOM_ROSTER.key(), Write::SAdd(vec![stranger])).await;
    party.rooms.close(&party.master).await.unwrap();
    assert_eq!(other.sync(1).await.players_visible.len(), 2);
}
