//! Claims of devices on players.

use super::*;

fn lost(d: u32, p: u32, reason: Invalidation) -> Event {
    Event::SlotInvalidated { device_id: device(d), player_id: player(p), reason }
}

pub async fn a_device_takes_a_player_and_gives_it_up(store: Store) {
    let party = Party::set_up(&store, 2).await;
    assert_eq!(party.player_of(1).await, None);
    party.take(1, 2).await.unwrap();
    assert_eq!(party.player_of(1).await, Some(player(2)));
    assert_eq!(party.player_of(2).await, None);
    let maps = (
        party.scope.hgetall(&DEVICE_TO_PLAYER.key()).await.unwrap(),
        party.scope.hgetall(&PLAYER_TO_DEVICE.key()).await.unwrap(),
    );
    assert_eq!(maps, (vec![(device(1), player(2))], vec![(player(2), device(1))]));
    party.all_end_together().await;
    assert_eq!(party.rooms.release_player(party.code, &device(1)).await, Ok(player(2)));
    assert_eq!(code_of(party.rooms.release_player(party.code, &device(1)).await), "not_claimed");
    assert_eq!(party.player_of(1).await, None);
    assert_eq!(party.names().await.iter().filter(|name| name.contains("_to_")).count(), 0);
    party.take(2, 2).await.unwrap();
}

pub async fn what_is_taken_is_taken(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.take(1, 1).await.unwrap();
    assert_eq!(party.take(2, 1).await, Err(Error::TakenNow(player(1))));
    assert_eq!(party.take(1, 2).await, Err(Error::DeviceAlreadyHasPlayer(player(1))));
    assert_eq!(party.take(1, 1).await, Err(Error::DeviceAlreadyHasPlayer(player(1))));
    assert_eq!(party.events().await[2..], [Event::PlayerTaken { player_id: player(1) }]);
}

pub async fn checks_come_in_the_order_of_the_document(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.take(1, 1).await.unwrap();
    party.take(2, 2).await.unwrap();
    party
        .external_change(&ROOM_STATE.key(), |state| state["lobby"]["players"][1]["active"] = false.into())
        .await;
    // A device that has one, a player that is taken, and only then one that is not active.
    assert_eq!(code_of(party.take(1, 2).await), "device_already_has_player");
    assert_eq!(code_of(party.take(1, 9).await), "device_already_has_player");
    assert_eq!(code_of(party.take(3, 2).await), "taken_now");
    assert_eq!(code_of(party.take(3, 9).await), "player_not_found");
    party.rooms.toggle_player(&party.master, &player(3), false).await.unwrap();
    assert_eq!(code_of(party.take(3, 3).await), "inactive");
    assert_eq!(party.player_of(3).await, None, "a refused wish leaves nothing behind");
    assert_eq!(party.player_of(2).await, None, "a player that is not active has no device");
}

pub async fn a_player_that_is_deactivated_loses_its_device(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    let one = player(1);
    let toggle = |active| party.rooms.toggle_player(&party.master, &one, active);
    toggle(false).await.unwrap();
    toggle(false).await.unwrap();
    assert_eq!(party.player_of(1).await, None);
    let toggled = |active| Event::PlayerToggled { player_id: player(1), active };
    let expected = [lost(1, 1, Invalidation::PlayerDeactivated), toggled(false)];
    assert_eq!(party.events().await[3..], expected, "said twice, it is done once");
    toggle(true).await.unwrap();
    assert_eq!(party.player_of(1).await, None, "it is free, not given back");
    party.take(2, 1).await.unwrap();
    party.all_end_together().await;
}

pub async fn a_player_that_is_deleted_loses_its_device(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    party.rooms.delete_player(&party.master, &player(1)).await.unwrap();
    let deleted = Event::PlayerDeleted { player_id: player(1) };
    assert_eq!(party.events().await[3..], [lost(1, 1, Invalidation::PlayerDeleted), deleted]);
    party.take(1, 2).await.unwrap();
}

pub async fn a_reset_makes_all_players_free_and_tells_each_device(store: Store) {
    let party = Party::set_up(&store, 3).await;
    for n in 1..=3 {
        party.take(n, n).await.unwrap();
    }
    assert_eq!(party.rooms.reset_claims(&party.master).await, Ok(3));
    let events = party.events().await;
    for n in 1..=3 {
        assert!(events.contains(&lost(n, n, Invalidation::ClaimsReset)), "{events:?}");
        assert_eq!(party.player_of(n).await, None);
    }
    assert_eq!(events.last(), Some(&Event::ClaimsReset));
    party.take(3, 1).await.unwrap();
    assert_eq!(party.rooms.reset_claims(&party.master).await, Ok(1));
    party.all_end_together().await;
}

pub async fn half_a_claim_is_none_but_in_the_way(store: Store) {
    let party = Party::set_up(&store, 3).await;
    // A service in another language, between its two commands.
    party.external_hset(&PLAYER_TO_DEVICE.key(), "p1", "phone-7").await;
    assert_eq!(party.player_of(7).await, None);
    assert_eq!(code_of(party.take(1, 1).await), "taken_now");
    assert_eq!(
        party.statuses().await,
        ["taken", "free", "free"],
        "what cannot be taken is not shown as free"
    );
    party.external_hset(&DEVICE_TO_PLAYER.key(), "phone-8", "p2").await;
    assert_eq!(party.statuses().await, ["taken", "free", "free"], "another device may take player 2");
    assert_eq!(party.player_of(8).await, None);
    assert_eq!(code_of(party.take(8, 3).await), "device_already_has_player");
    // The other halves come, and they are claims.
    party.external_hset(&DEVICE_TO_PLAYER.key(), "phone-7", "p1").await;
    party.external_hset(&PLAYER_TO_DEVICE.key(), "p2", "phone-8").await;
    assert_eq!((party.player_of(7).await, party.player_of(8).await), (Some(player(1)), Some(player(2))));
    party.all_end_together().await;
}

pub async fn half_a_claim_that_can_never_be_whole_is_replaced(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.take(1, 1).await.unwrap();
    // Device 2 believes that it has player 1, and player 3 that device 1 has it.
    party.external_hset(&DEVICE_TO_PLAYER.key(), "phone-2", "p1").await;
    party.external_hset(&PLAYER_TO_DEVICE.key(), "p3", "phone-1").await;
    assert_eq!(party.player_of(2).await, None);
    assert_eq!(party.statuses().await, ["taken", "free", "free"]);
    party.take(2, 3).await.unwrap();
    assert_eq!((party.player_of(1).await, party.player_of(2).await), (Some(player(1)), Some(player(3))));
    let events = party.events().await;
    assert!(events.contains(&lost(2, 1, Invalidation::Replaced)), "{events:?}");
}

pub async fn a_device_whose_player_was_deleted_takes_another(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party.take(1, 1).await.unwrap();
    party
        .external_change(&ROOM_STATE.key(), |state| {
            state["lobby"]["players"].as_array_mut().unwrap().remove(0);
        })
        .await;
    assert_eq!(party.player_of(1).await, None);
    party.take(1, 2).await.unwrap();
    assert_eq!(party.player_of(1).await, Some(player(2)));
    assert_eq!(party.scope.hlen(&PLAYER_TO_DEVICE.key()).await, Ok(1));
}
