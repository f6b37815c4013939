//! Reconnect tokens, lock, bans, and another game in the same room.

use super::*;
use emberkeep_games::party::limits::DEVICES_MAX;
use emberkeep_games::party::model::Phase;
use tokio::task::JoinSet;

fn request(d: u32, token: Option<&str>) -> JoinRequest {
    JoinRequest { reconnect_token: token.map(str::to_owned), ..JoinRequest::new(device(d), 1) }
}

impl Party {
    /// A device comes in; its token, or why it was refused.
    async fn admit(&self, request: JoinRequest) -> std::result::Result<String, &'static str> {
        let admitted = self.rooms.admit(self.code, request).await;
        admitted.map(|admitted| admitted.reconnect_token).map_err(|error| error.code())
    }
}

pub async fn a_device_that_is_known_shows_its_token_in_a_strict_room(store: Store) {
    let rooms = Rooms::new(store.clone());
    let NewRoom { room_code: code, master_key: key } = rooms.create_strict().await.unwrap();
    let master = rooms.master(code, &key).await.unwrap();
    let party = Party { rooms, store: store.clone(), scope: store.scope(Room(code)), code, key, master };
    let token = party.admit(request(1, None)).await.unwrap();
    assert_eq!(party.admit(request(1, None)).await, Err("not_this_device"));
    assert_eq!(party.admit(request(1, Some("guess"))).await, Err("not_this_device"));
    assert_eq!(party.admit(request(1, Some(&token))).await.as_ref(), Ok(&token), "it stays the same");
    let led = JoinRequest { master: Some(party.master.clone()), ..request(1, None) };
    assert_ne!(party.admit(led).await.unwrap(), token, "the master key opens every door");
    assert_eq!(party.admit(request(1, Some(&token))).await, Err("not_this_device"), "it was replaced");
    let stored = party.scope.hgetall(&ROOM_DEVICES.key()).await.unwrap();
    assert!(!serde_json::to_string(&stored[0].1).unwrap().contains(&token), "only its digest is stored");
    party.all_end_together().await;
}

pub async fn an_open_room_takes_the_id_and_http_wants_the_token(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let first = party.admit(request(1, None)).await.unwrap();
    let proves = |request| JoinRequest { proves_itself: true, ..request };
    assert_eq!(party.admit(proves(request(1, None))).await, Err("not_this_device"));
    assert_eq!(party.admit(proves(request(1, Some(&first)))).await.as_ref(), Ok(&first));
    let second = party.admit(request(1, None)).await.unwrap();
    let verified = |token: String| {
        let party = party.clone();
        async move { party.rooms.verify_device(party.code, &device(1), &token).await }
    };
    assert_eq!(code_of(verified(first).await), "not_this_device");
    verified(second).await.unwrap();
    // A device that took its player without a token gets its first one by its id, and shows it from then on.
    party.take(2, 2).await.unwrap();
    let first = party.admit(proves(request(2, None))).await.unwrap();
    assert_eq!(party.admit(proves(request(2, None))).await, Err("not_this_device"));
    assert_eq!(party.admit(proves(request(2, Some(&first)))).await.as_ref(), Ok(&first));
}

pub async fn a_roster_of_a_former_version_learns_the_key_of_the_devices(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    let name = party.raw(&ROOM_DEVICES.key());
    let is_listed = async || party.scope.smembers(&ROOM_ROSTER.key()).await.unwrap().contains(&name.to_vec());
    let forget = async || party.external(&ROOM_ROSTER.key(), Write::SRem(vec![name.clone()])).await;
    forget().await;
    party.admit(request(2, None)).await.unwrap();
    assert!(is_listed().await, "a device got a token");
    forget().await;
    party.rooms.delete_player(&party.master, &player(1)).await.unwrap();
    assert!(is_listed().await, "a device lost its player");
}

pub async fn ids_with_names_of_javascript_objects_are_read_and_not_created(store: Store) {
    let party = Party::set_up(&store, 2).await;
    // As a former version stored it.
    let rename = |state: &mut Value| state["lobby"]["players"][0]["player_id"] = "constructor".into();
    party.external_change(&ROOM_STATE.key(), rename).await;
    assert_eq!(party.state().await.lobby.players[0].player_id.as_str(), "constructor");
    party.take(1, 2).await.unwrap();
    let of_request = |id: &str| serde_json::from_value(Value::from(id)).unwrap();
    let added = party.rooms.add_player(&party.master, SetupPlayer::new(of_request("__proto__"), "Eve")).await;
    assert_eq!(code_of(added), "invalid_payload");
    let eve: DeviceId = serde_json::from_value("__proto__".into()).unwrap();
    assert_eq!(code_of(party.rooms.join(party.code, &eve, 1).await), "invalid_payload");
    assert_eq!(code_of(party.rooms.take_player(party.code, &eve, &player(2)).await), "invalid_payload");
}

pub async fn a_device_with_a_player_and_no_token_is_refused_in_a_strict_room(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.external_change(&ROOM_META.key(), |meta| meta["strict_devices"] = true.into()).await;
    party.take(1, 1).await.unwrap();
    let proves = JoinRequest { proves_itself: true, ..request(1, None) };
    assert_eq!(party.admit(proves).await, Err("not_this_device"));
    assert_eq!(party.admit(request(1, None)).await, Err("not_this_device"));
}

pub async fn the_devices_that_a_room_remembers_are_bounded(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let token = party.admit(request(1, None)).await.unwrap();
    party.take(1, 1).await.unwrap();
    for d in 2..=DEVICES_MAX as u32 + 5 {
        party.admit(request(d, None)).await.unwrap();
    }
    let known = party.scope.hgetall(&ROOM_DEVICES.key()).await.unwrap().len();
    assert!(known < DEVICES_MAX, "{known}");
    party.rooms.verify_device(party.code, &device(1), &token).await.unwrap();
    party.all_end_together().await;
}

pub async fn a_locked_room_lets_no_unknown_device_in(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.admit(request(1, None)).await.unwrap();
    party.rooms.lock_lobby(&party.master, true).await.unwrap();
    party.rooms.lock_lobby(&party.master, true).await.unwrap();
    assert!(party.sync(1).await.locked);
    assert_eq!(party.admit(request(2, None)).await, Err("room_locked"));
    assert_eq!(code_of(party.rooms.may_join(party.code, request(2, None)).await.map(drop)), "room_locked");
    assert_eq!(code_of(party.take(2, 2).await), "room_locked");
    let led = JoinRequest { master: Some(party.master.clone()), ..request(3, None) };
    party.admit(led).await.unwrap();
    party.admit(request(1, None)).await.unwrap();
    party.take(1, 1).await.unwrap();
    party.rooms.lock_lobby(&party.master, false).await.unwrap();
    party.admit(request(2, None)).await.unwrap();
    let locks = party.events().await;
    let locks: Vec<_> = locks.iter().filter(|event| matches!(event, Event::LobbyLocked { .. })).collect();
    assert_eq!(locks, [&Event::LobbyLocked { locked: true }, &Event::LobbyLocked { locked: false }]);
    party.all_end_together().await;
}

pub async fn a_banned_device_neither_joins_nor_takes_a_player(store: Store) {
    let party = Party::voting(&store, 3).await;
    let token = party.admit(request(1, None)).await.unwrap();
    party.vote(2, &[1]).await.unwrap();
    party.vote(3, &[1]).await.unwrap();
    let ban = party.rooms.ban_player(&party.master, &player(1)).await.unwrap();
    assert_eq!(party.status().await, "reveal_wait", "the vote does not wait for it");
    assert_eq!(party.player_of(1).await, None);
    assert_eq!(party.admit(request(1, Some(&token))).await, Err("banned"));
    assert_eq!(code_of(party.take(1, 1).await), "banned");
    assert_eq!(code_of(party.rooms.verify_device(party.code, &device(1), &token).await), "banned");
    assert_eq!(code_of(party.rooms.ban_player(&party.master, &player(1)).await), "not_claimed");
    assert_eq!(code_of(party.rooms.ban_player(&party.master, &player(9)).await), "player_not_found");
    let shown = serde_json::to_value(party.sync_master().await).unwrap();
    assert_eq!(
        (&shown["bans"][0]["ban_id"], &shown["bans"][0]["player_id"]),
        (&ban.clone().into(), &"p1".into())
    );
    assert!(!shown.to_string().contains("phone-"), "no id of a device is shown: {shown}");
    party.take(4, 1).await.unwrap();
    assert_eq!(code_of(party.rooms.unban(&party.master, "b9").await), "ban_not_found");
    party.rooms.unban(&party.master, &ban).await.unwrap();
    party.admit(request(1, None)).await.unwrap();
    assert!(!party.stored(&ROOM_STATE.key()).await.unwrap().contains("bans"), "as if it had never been");
    party.all_end_together().await;
}

pub async fn another_game_is_played_in_the_same_room(store: Store) {
    let party = Party::voting(&store, 2).await;
    for (d, chosen) in [(1, [1]), (2, [3])] {
        party.vote(d, &chosen).await.unwrap();
    }
    party.open(1, 2).await.unwrap();
    assert_eq!(party.sync(1).await.scores.0[&player(1)], 1);
    party.vote_on(1, 1, 2, &[1]).await.unwrap();
    party.rooms.play_again(&party.master, true).await.unwrap();
    let sync = party.sync(1).await;
    assert_eq!((sync.phase, sync.my_player_id, sync.game), (Phase::Lobby, Some(player(1)), None));
    assert!(sync.scores.0.values().all(|points| *points == 0), "{:?}", sync.scores);
    assert!(!party.names().await.iter().any(|name| name.starts_with("vote")), "votes of before are gone");
    party.all_end_together().await;
    party.rooms.start_game(&party.master).await.unwrap();
    party.open(1, 1).await.unwrap();
    party.vote(1, &[1, 2]).await.unwrap();
    party.rooms.play_again(&party.master, false).await.unwrap();
    assert_eq!(code_of(party.rooms.start_game(&party.master).await), "not_in_phase", "nothing to be played");
    let again = Setup { players: vec![], ..setup_of(0) };
    party.rooms.setup(&party.master, again).await.unwrap();
    party.rooms.start_game(&party.master).await.unwrap();
    assert_eq!(party.sync(2).await.my_player_id, Some(player(2)));
    assert_eq!(
        party.events().await.iter().filter(|event| matches!(event, Event::BackToLobby { .. })).count(),
        2
    );
}

pub async fn of_many_masters_one_brings_the_room_back(store: Store) {
    let party = Party::voting(&store, 2).await;
    let mut masters = JoinSet::new();
    for _ in 0..16 {
        let party = party.clone();
        masters.spawn(async move { party.rooms.play_again(&party.master, true).await });
    }
    let outcomes = masters.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let refused = outcomes.into_iter().filter(|outcome| outcome.is_err()).map(code_of);
    assert!(refused.into_iter().all(|code| code == "not_in_phase"));
    party.all_end_together().await;
}

pub async fn a_ban_beside_claims_of_the_device_leaves_it_without_a_player(store: Store) {
    for _ in 0..5 {
        let party = Party::set_up(&store, 4).await;
        party.take(1, 1).await.unwrap();
        let mut calls = JoinSet::new();
        for n in 0..8_u32 {
            let party = party.clone();
            calls.spawn(async move {
                let _ = party.rooms.release_player(party.code, &device(1)).await;
                let _ = party.take(1, n % 4 + 1).await;
            });
        }
        let banned = {
            let party = party.clone();
            tokio::spawn(async move { party.rooms.ban_player(&party.master, &player(1)).await })
        };
        calls.join_all().await;
        let outcome = banned.await.unwrap();
        match outcome {
            Ok(_) => {
                assert_eq!((party.player_of(1).await, code_of(party.take(1, 2).await)), (None, "banned"))
            }
            Err(error) => assert_eq!(error.code(), "not_claimed", "the player was free at that moment"),
        }
        party.all_end_together().await;
    }
}

pub async fn a_lock_beside_joins_is_the_end_of_them(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let mut joins = JoinSet::new();
    for d in 10..42 {
        let party = party.clone();
        joins.spawn(async move { party.admit(request(d, None)).await });
    }
    party.rooms.lock_lobby(&party.master, true).await.unwrap();
    let known = party.scope.hgetall(&ROOM_DEVICES.key()).await.unwrap().len();
    let outcomes = joins.join_all().await;
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() || *outcome == Err("room_locked")));
    let joined = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(joined, known, "no device joined after the lock");
}
