//! Changing profiles: names, addresses, logins, updates, bans.

use crate::registrations::player;
use crate::stores::{NOW, World};
use emberkeep_games::darkages::archive::Error;
use emberkeep_games::darkages::archive::profiles::{Ban, Login, ProfileUpdate};
use emberkeep_games::darkages::history::{ClaimKind, PlayerProfile, ProfileClaim};
use emberkeep_schema::Timestamp;
use uuid::Uuid;

pub(crate) async fn a_rename_frees_the_old_name(world: &World) {
    let archive = &world.archive;
    archive.register(player(2_000, "Old")).await.unwrap();
    let renamed = archive.rename(2_000, "New").await.unwrap();
    assert_eq!(renamed.username, "New");
    assert_eq!(archive.profile_by_username("new").await.unwrap(), Some(renamed.clone()));
    assert_eq!(archive.profile_by_username("old").await.unwrap(), None);
    // The indexes of the table follow.
    for (name, count) in [("Old", 0), ("New", 1)] {
        let rows = archive.history().range(PlayerProfile::by_username(name)).page(None).await.unwrap();
        assert_eq!(rows.rows.len(), count, "{name}");
    }
    archive.register(player(2_001, "OLD")).await.unwrap();
    let refused = archive.rename(2_001, "new").await.unwrap_err();
    assert_eq!(refused, Error::Taken { kind: ClaimKind::Username });
    // Only the case changes: the claim stays.
    assert_eq!(archive.rename(2_000, "NEW").await.unwrap().username, "NEW");
    assert_eq!(archive.profile_by_username("new").await.unwrap().unwrap().player_id, 2_000);
    // There and back again.
    archive.rename(2_000, "Newer").await.unwrap();
    assert_eq!(archive.rename(2_000, "New").await.unwrap().username, "New");
    assert_eq!(archive.rename(2_002, "Ghost").await.unwrap_err(), Error::NotFound { player_id: 2_002 });
}

pub(crate) async fn one_of_many_renames_wins(world: &World) {
    for n in 0..16 {
        world.archive.register(player(2_100 + n, &format!("Heir {n}"))).await.unwrap();
    }
    let tries: Vec<_> = (0..16)
        .map(|n| {
            let archive = world.archive.clone();
            tokio::spawn(async move { archive.rename(2_100 + n, "King").await })
        })
        .collect();
    let mut winners = Vec::new();
    for one in tries {
        winners.extend(one.await.unwrap().ok().map(|profile| profile.player_id));
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    let king = world.archive.profile_by_username("king").await.unwrap().unwrap();
    assert_eq!(king.player_id, winners[0]);
    for n in (0..16).filter(|n| 2_100 + n != winners[0]) {
        let profile = world.archive.profile_by_username(&format!("heir {n}")).await.unwrap();
        assert_eq!(profile.unwrap().player_id, 2_100 + n, "the others have their names");
    }
}

pub(crate) async fn an_address_changes(world: &World) {
    let archive = &world.archive;
    archive.register(player(2_200, "Mover")).await.unwrap();
    let moved = archive.change_email(2_200, "new@example.org").await.unwrap();
    assert_eq!(archive.profile_by_email("NEW@example.org").await.unwrap(), Some(moved));
    assert_eq!(archive.profile_by_email("Mover-2200@example.org").await.unwrap(), None);
    assert_eq!(archive.profile_by_username("mover").await.unwrap().unwrap().email, "new@example.org");
}

/// A rename stops after it wrote the profile; its player has the old name until a rival of the new one confirms it.
pub(crate) async fn a_paused_rename_keeps_the_old_name(world: &World) {
    let archive = &world.archive;
    let before = archive.register(player(2_300, "Chrysalis")).await.unwrap();
    let pending = ProfileClaim {
        kind: ClaimKind::Username,
        folded: "butterfly".into(),
        player_id: 2_300,
        token: Uuid::from_u128(1),
        is_confirmed: false,
        claimed_at: Timestamp(world.clock.now() + 1),
        text: "Butterfly".into(),
    };
    archive.history().insert_if_absent(pending).await.unwrap();
    let renamed = PlayerProfile { username: "Butterfly".into(), ..before.clone() };
    archive.history().replace_if(before.clone(), renamed.clone()).await.unwrap();
    assert_eq!(archive.profile(2_300).await.unwrap(), Some(before.clone()));
    assert_eq!(archive.profile_by_username("chrysalis").await.unwrap(), Some(before));
    assert_eq!(archive.profile_by_username("butterfly").await.unwrap(), None);
    world.clock.advance(61_000);
    let refused = archive.register(player(2_301, "Butterfly")).await.unwrap_err();
    assert_eq!(refused, Error::Taken { kind: ClaimKind::Username });
    assert_eq!(archive.profile_by_username("butterfly").await.unwrap(), Some(renamed));
    assert_eq!(archive.profile_by_username("chrysalis").await.unwrap(), None);
    archive.register(player(2_302, "Chrysalis")).await.unwrap();
}

pub(crate) async fn logins_and_updates(world: &World) {
    let archive = &world.archive;
    archive.register(player(2_400, "Player")).await.unwrap();
    let login = |at: i64, ip: &str, version: &str| Login {
        at: Timestamp(at),
        ip: Some(ip.parse().unwrap()),
        client_version: version.into(),
    };
    archive.record_login(2_400, login(NOW, "192.0.2.1", "1.1")).await.unwrap();
    let profile = archive.record_login(2_400, login(NOW - 5, "2001:db8::1", "1.0")).await.unwrap();
    assert_eq!((profile.last_login, profile.last_known_ip), (Some(Timestamp(NOW)), "192.0.2.1".parse().ok()));
    assert_eq!(profile.client_versions.into_iter().collect::<Vec<_>>(), ["1.0", "1.1"]);
    let update = ProfileUpdate {
        level: Some(i32::MAX),
        experience: Some(i64::MAX),
        total_playtime_minutes: Some(7),
        preferred_class: Some(Some(i8::MIN)),
        settings: Some(Some(br#"{"volume": 1}"#.to_vec())),
    };
    let profile = archive.update_profile(2_400, update).await.unwrap();
    assert_eq!(
        (profile.level, profile.experience, profile.preferred_class),
        (i32::MAX, i64::MAX, Some(i8::MIN))
    );
    let removed =
        ProfileUpdate { preferred_class: Some(None), settings: Some(None), ..ProfileUpdate::default() };
    let profile = archive.update_profile(2_400, removed).await.unwrap();
    assert_eq!((profile.level, profile.preferred_class, profile.settings), (i32::MAX, None, None));
    assert_eq!(profile.total_playtime_minutes, 7);
    let absent = archive.update_profile(2_401, ProfileUpdate::default()).await.unwrap_err();
    assert_eq!(absent, Error::NotFound { player_id: 2_401 });
}

pub(crate) async fn updates_at_once_are_all_there(world: &World) {
    world.archive.register(player(2_500, "Busy")).await.unwrap();
    let tries: Vec<_> = (0..8)
        .map(|n| {
            let archive = world.archive.clone();
            let login = Login { at: Timestamp(NOW + n), ip: None, client_version: format!("version {n}") };
            tokio::spawn(async move { archive.record_login(2_500, login).await })
        })
        .collect();
    for one in tries {
        one.await.unwrap().unwrap();
    }
    let profile = world.archive.profile(2_500).await.unwrap().unwrap();
    assert_eq!(profile.client_versions.len(), 8);
    assert_eq!(profile.last_login, Some(Timestamp(NOW + 7)));
}

pub(crate) async fn bans_end_by_themselves(world: &World) {
    let archive = &world.archive;
    archive.register(player(2_600, "Rascal")).await.unwrap();
    let expires = Timestamp(world.clock.now() + 10_000);
    let ban = Ban { reason: "spam".into(), expires: Some(expires) };
    assert!(archive.ban(2_600, ban.clone()).await.unwrap().is_banned);
    assert_eq!(archive.ban_of(2_600).await.unwrap(), Some(ban));
    world.clock.advance(10_000);
    let profile = archive.profile(2_600).await.unwrap().unwrap();
    assert_eq!((profile.is_banned, profile.ban_reason, profile.ban_expires), (false, None, None));
    assert_eq!(archive.ban_of(2_600).await.unwrap(), None);
    let for_ever = Ban { reason: "cheating".into(), expires: None };
    archive.ban(2_600, for_ever.clone()).await.unwrap();
    world.clock.advance(1_000_000);
    assert_eq!(archive.ban_of(2_600).await.unwrap(), Some(for_ever));
    assert!(!archive.unban(2_600).await.unwrap().is_banned);
    let past = Ban { reason: "late".into(), expires: Some(Timestamp(world.clock.now())) };
    assert!(matches!(archive.ban(2_600, past).await.unwrap_err(), Error::Invalid { .. }));
    assert_eq!(archive.ban_of(2_601).await.unwrap_err(), Error::NotFound { player_id: 2_601 });
}
