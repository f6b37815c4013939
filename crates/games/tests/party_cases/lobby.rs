//! The setup and the players of a room.

use super::*;
use emberkeep_games::party::limits::*;

pub async fn a_room_is_set_up_once(store: Store) {
    let party = Party::set_up(&store, 3).await;
    let again = party.rooms.setup(&party.master, setup_of(2)).await;
    assert_eq!(code_of(again), "conflict");
    let sync = party.sync(1).await;
    assert_eq!((sync.players_visible.len(), sync.senders_visible.len()), (3, 4));
    assert_eq!(sync.scores.0.values().copied().collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(party.events().await, [Event::RoomCreated, Event::SetUp]);
    party.all_end_together().await;
}

pub async fn a_setup_that_makes_no_sense_is_refused(store: Store) {
    type Break = fn(&mut Setup);
    let cases: &[(&str, Break)] = &[
        ("none, expected", |s| s.senders.clear()),
        ("none, expected", |s| s.rounds.clear()),
        ("none, expected", |s| s.rounds[0].items.clear()),
        ("s1 occurs twice", |s| s.senders[1].sender_id = sender(1)),
        ("r1 occurs twice", |s| s.rounds[1].round_id = round(1)),
        ("i1 occurs twice", |s| s.rounds[0].items[1].item_id = item(1)),
        ("player p1 already exists", |s| s.players[1].player_id = player(1)),
        ("0 for item i1, expected 1 to 4", |s| s.rounds[0].items[0].k = 0),
        ("5 for item i1, expected 1 to 4", |s| s.rounds[0].items[0].k = 5),
        ("2 for item i1, expected 1 to 1", |s| s.senders.iter_mut().skip(1).for_each(|s| s.active = false)),
        ("s9 of item i1", |s| s.rounds[0].items[0].true_sender_ids = senders(&[9])),
        ("s1 occurs twice", |s| s.rounds[0].items[0].true_sender_ids = senders(&[1, 1])),
        ("none, expected", |s| s.rounds[0].items[0].true_sender_ids.clear()),
        ("s9, expected a sender", |s| s.players[0].sender_id = Some(sender(9))),
        ("0 characters", |s| s.players[0].name = " \t ".into()),
        ("65 characters", |s| s.senders[0].name = "ä".repeat(65)),
        ("control character", |s| s.players[0].name = "a\u{7}b".into()),
        ("0 bytes", |s| s.rounds[0].items[0].reel_url.clear()),
        ("space or a control", |s| s.rounds[0].items[0].reel_url = "a b".into()),
        ("begins with http", |s| s.rounds[0].items[0].reel_url = "javascript:alert(1)".into()),
        ("begins with http", |s| s.players[0].avatar_url = Some("data:image/png;base64,AA".into())),
        ("invisible character", |s| s.players[0].name = "A\u{200b}".into()),
        ("shorten names", |s| {
            s.senders = (1..=64)
                .map(|n| SetupSender {
                    sender_id: sender(n), name: "👑".repeat(64), ..s.senders[0].clone()
                })
                .collect();
            s.players = (1..=64).map(|n| SetupPlayer::new(player(n), "👑".repeat(64))).collect();
        }),
        ("64 players", |s| {
            s.players = (1..=PLAYERS_MAX as u32 + 1).map(|n| SetupPlayer::new(player(n), "x")).collect();
        }),
        ("512 items", |s| {
            let many = s.rounds[0].items[0].clone();
            s.rounds[0].items = vec![many; ITEMS_MAX + 1];
        }),
        ("bytes in total", |s| {
            let one = s.rounds[0].items[0].clone();
            let long = |n| SetupItem {
                item_id: item(n),
                reel_url: format!("https://{}", "x".repeat(URL_BYTES_MAX - 8)),
                ..one.clone()
            };
            s.rounds[0].items = (1..=ITEMS_MAX as u32 - 2).map(long).collect();
        }),
    ];
    let party = Party::new(&store).await;
    for (expected, damage) in cases {
        let mut setup = setup_of(2);
        damage(&mut setup);
        let error = party.rooms.setup(&party.master, setup).await.expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}, expected {expected}");
    }
    assert_eq!(party.events().await, [Event::RoomCreated], "nothing was changed");
    party.rooms.setup(&party.master, setup_of(2)).await.unwrap();
}

pub async fn players_are_added_renamed_and_deleted(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let (rooms, master) = (&party.rooms, &party.master);
    rooms.add_player(master, SetupPlayer::new(player(3), "  Cleo ")).await.unwrap();
    assert_eq!(code_of(rooms.add_player(master, SetupPlayer::new(player(3), "Dan")).await), "conflict");
    rooms.rename_player(master, &player(1), " Anna ").await.unwrap();
    rooms.delete_player(master, &player(2)).await.unwrap();
    assert_eq!(rooms.delete_player(master, &player(2)).await, Err(Error::PlayerNotFound(player(2))));
    assert_eq!(rooms.rename_player(master, &player(2), "x").await, Err(Error::PlayerNotFound(player(2))));
    let sync = party.sync(1).await;
    let names: Vec<&str> = sync.players_visible.iter().map(|player| player.name.as_str()).collect();
    assert_eq!(names, ["Anna", "Cleo"]);
    assert_eq!(sync.scores.0.keys().cloned().collect::<Vec<_>>(), [player(1), player(3)]);
    let events = party.events().await;
    assert_eq!(events[2], Event::PlayerAdded { player_id: player(3), name: "Cleo".into() });
    assert_eq!(events[3], Event::PlayerRenamed { player_id: player(1), name: "Anna".into() });
    assert_eq!(events[4..], [Event::PlayerDeleted { player_id: player(2) }]);
    party.all_end_together().await;
}

pub async fn a_full_room_takes_no_more_players(store: Store) {
    let party = Party::set_up(&store, PLAYERS_MAX as u32).await;
    let refused = party.rooms.add_player(&party.master, SetupPlayer::new(player(99), "x")).await;
    assert_eq!(refused, Err(Error::RoomFull { what: "players", max: PLAYERS_MAX }));
}

pub async fn a_device_renames_its_own_player(store: Store) {
    let party = Party::set_up(&store, 2).await;
    let rename = |d: u32, name: &'static str| {
        let party = party.clone();
        async move { party.rooms.rename_own_player(party.code, &device(d), None, name).await }
    };
    assert_eq!(code_of(rename(1, "Me").await), "not_claimed");
    party.take(1, 2).await.unwrap();
    assert_eq!(rename(1, "Me").await, Ok(player(2)));
    assert_eq!(code_of(rename(1, "\n").await), "invalid_payload");
    assert_eq!(party.state().await.player(&player(2)).unwrap().name, "Me");
    let before = party.events().await.len();
    rename(1, "Me").await.unwrap();
    assert_eq!(party.events().await.len(), before, "the same name is not an event");
    let (own, others) = (player(2), player(1));
    let named = |of: &PlayerId| {
        let (party, of) = (party.clone(), of.clone());
        async move { party.rooms.rename_own_player(party.code, &device(1), Some(&of), "You").await }
    };
    assert_eq!(code_of(named(&others).await), "not_master", "another's name is not the device's business");
    assert_eq!(named(&own).await, Ok(own));
    let message = named(&others).await.unwrap_err().to_string();
    assert!(message.contains("p1 belongs to another device"), "{message}");
    assert_eq!(code_of(rename(1, " PLAYER 1 ").await), "conflict", "another player's name");
    party.rooms.rename_player(&party.master, &player(2), "Player 1").await.unwrap();
}

pub async fn after_the_start_players_and_setup_are_fixed(store: Store) {
    let party = Party::playing(&store, 2).await;
    let add = party.rooms.add_player(&party.master, SetupPlayer::new(player(3), "Late")).await;
    assert_eq!(code_of(add), "not_in_phase");
    assert_eq!(code_of(party.rooms.setup(&party.master, setup_of(2)).await), "not_in_phase");
    assert_eq!(code_of(party.rooms.start_game(&party.master).await), "not_in_phase");
    party.rooms.rename_player(&party.master, &player(1), "Still").await.unwrap();
}
