//! Registering players: who wins a name, and what a process that stops in between leaves.

use crate::stores::World;
use emberkeep_games::darkages::archive::profiles::NewPlayer;
use emberkeep_games::darkages::archive::{Archive, Error};
use emberkeep_games::darkages::history::{ClaimKind, PlayerProfile};

pub(crate) fn player(player_id: i64, username: &str) -> NewPlayer {
    let email = format!("{}-{player_id}@example.org", username.replace(' ', "-"));
    NewPlayer { player_id, username: username.into(), email }
}

const TAKEN: Error = Error::Taken { kind: ClaimKind::Username };

async fn by_name(archive: &Archive, name: &str) -> Option<i64> {
    archive.profile_by_username(name).await.unwrap().map(|profile| profile.player_id)
}

pub(crate) async fn a_registered_player_is_found_by_name_and_address(world: &World) {
    let archive = &world.archive;
    assert_eq!(archive.profile(1_000).await.unwrap(), None);
    let profile = archive.register(player(1_000, "Öland Straße")).await.unwrap();
    assert_eq!((profile.level, profile.experience), (1, 0));
    assert_eq!(archive.profile(1_000).await.unwrap(), Some(profile.clone()));
    for name in ["Öland Straße", "ÖLAND STRASSE", "O\u{308}land strasse"] {
        assert_eq!(archive.profile_by_username(name).await.unwrap(), Some(profile.clone()), "{name}");
    }
    let found = archive.profile_by_email("öland-STRASSE-1000@EXAMPLE.org").await.unwrap();
    assert_eq!(found, Some(profile));
    assert_eq!(by_name(archive, "Stranger").await, None);
}

pub(crate) async fn a_name_is_taken_in_any_case(world: &World) {
    world.archive.register(player(1_010, "Ann")).await.unwrap();
    assert_eq!(world.archive.register(player(1_011, "ANN")).await.unwrap_err(), TAKEN);
    assert_eq!(world.archive.profile(1_011).await.unwrap(), None);
    // The address of the refused registration is free.
    let second = NewPlayer { email: "ANN-1011@example.org".into(), ..player(1_012, "Anna") };
    world.archive.register(second).await.unwrap();
}

/// 64 at once: one of them wins, and the winner is the one that is found.
pub(crate) async fn one_of_many_registrations_wins(world: &World) {
    let tries: Vec<_> = (0..64)
        .map(|n| {
            let archive = world.archive.clone();
            tokio::spawn(async move { archive.register(player(1_100 + n, "Highlander")).await })
        })
        .collect();
    let mut winners = Vec::new();
    for one in tries {
        match one.await.unwrap() {
            Ok(profile) => winners.push(profile.player_id),
            Err(error) => assert_eq!(error, TAKEN),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(by_name(&world.archive, "highlander").await, Some(winners[0]));
    for player_id in (1_100..1_164).filter(|player_id| *player_id != winners[0]) {
        assert_eq!(world.archive.profile(player_id).await.unwrap(), None);
    }
}

/// A registrar stops for 90 seconds between claim and profile.
pub(crate) async fn a_paused_registration_loses_its_name(world: &World) {
    let archive = &world.archive;
    let paused = archive.reserve(player(1_200, "Sleeper")).await.unwrap();
    assert_eq!(archive.register(player(1_201, "Sleeper")).await.unwrap_err(), TAKEN, "it is claimed");
    world.clock.advance(90_000);
    archive.register(player(1_202, "sleeper")).await.unwrap();
    let lost = archive.complete(paused.clone()).await.unwrap_err();
    assert!(matches!(lost, Error::Conflict { player_id: 1_200, .. }), "{lost}");
    assert_eq!(archive.profile(1_200).await.unwrap(), None, "the profile was reverted");
    assert_eq!(by_name(archive, "Sleeper").await, Some(1_202));
    // Both can be had again: the player by another name, and the address.
    archive.register(NewPlayer { username: "Waker".into(), ..player(1_200, "Sleeper") }).await.unwrap();
    // Without a rival a late registration succeeds.
    let paused = archive.reserve(player(1_203, "Snoozer")).await.unwrap();
    world.clock.advance(90_000);
    archive.complete(paused).await.unwrap();
    assert_eq!(by_name(archive, "snoozer").await, Some(1_203));
}

pub(crate) async fn a_paused_registration_loses_its_address(world: &World) {
    let archive = &world.archive;
    let paused = archive.reserve(player(1_210, "Dozer")).await.unwrap();
    world.clock.advance(90_000);
    let email = player(1_210, "Dozer").email;
    archive.register(NewPlayer { email: email.clone(), ..player(1_211, "Riser") }).await.unwrap();
    let lost = archive.complete(paused).await.unwrap_err();
    assert!(matches!(lost, Error::Conflict { player_id: 1_210, .. }), "{lost}");
    assert_eq!(archive.profile(1_210).await.unwrap(), None);
    let owner = archive.profile_by_email(&email).await.unwrap().unwrap();
    assert_eq!(owner.player_id, 1_211);
    archive.register(player(1_212, "Dozer")).await.expect("the name is free again");
}

/// A registrar dies after it wrote the profile and before it confirmed the claims.
pub(crate) async fn an_unfinished_registration_is_completed_by_its_rival(world: &World) {
    let archive = &world.archive;
    archive.reserve(player(1_300, "Widow")).await.unwrap();
    let template = archive.register(player(1_301, "Template")).await.unwrap();
    let NewPlayer { username, email, .. } = player(1_300, "Widow");
    let written = PlayerProfile { player_id: 1_300, username, email, ..template };
    archive.history().insert_if_absent(written.clone()).await.unwrap();
    assert_eq!(archive.profile(1_300).await.unwrap(), None, "it is not confirmed");
    assert_eq!(by_name(archive, "Widow").await, None);
    world.clock.advance(61_000);
    assert_eq!(archive.register(player(1_302, "widow")).await.unwrap_err(), TAKEN);
    assert_eq!(archive.profile(1_300).await.unwrap(), Some(written));
    assert_eq!(by_name(archive, "WIDOW").await, Some(1_300));
}

pub(crate) async fn a_player_registers_once(world: &World) {
    let archive = &world.archive;
    archive.register(player(1_400, "First")).await.unwrap();
    let again = archive.register(player(1_400, "Second")).await.unwrap_err();
    assert_eq!(again, Error::Registered { player_id: 1_400 });
    archive.register(player(1_401, "Second")).await.unwrap();
    let tries: Vec<_> = (0..16)
        .map(|n| {
            let archive = world.archive.clone();
            tokio::spawn(async move { archive.register(player(1_402, &format!("Clone {n}"))).await })
        })
        .collect();
    let mut winners = 0;
    for one in tries {
        match one.await.unwrap() {
            Ok(_) => winners += 1,
            Err(error) => {
                assert!(matches!(error, Error::Registered { .. } | Error::Conflict { .. }), "{error}");
            }
        }
    }
    assert_eq!(winners, 1);
    let name = archive.profile(1_402).await.unwrap().unwrap().username;
    for n in 0..16 {
        let found = by_name(archive, &format!("Clone {n}")).await;
        assert_eq!(found, (name == format!("Clone {n}")).then_some(1_402));
    }
}

pub(crate) async fn a_taken_address_frees_the_name(world: &World) {
    let archive = &world.archive;
    archive.register(player(1_500, "Owner")).await.unwrap();
    let same = NewPlayer { email: player(1_500, "Owner").email, ..player(1_501, "Other") };
    let refused = archive.register(same).await.unwrap_err();
    assert_eq!(refused, Error::Taken { kind: ClaimKind::Email });
    archive.register(player(1_502, "Other")).await.unwrap();
}
