//! The views of players and of the master.

use super::*;
use emberkeep_games::party::model::Status;
use emberkeep_games::party::view::PlayerStatus;

/// Words that stand for what only the master may know before the reveal.
const SECRET: &[&str] = &["true_sender", "selections", "vote_results", "votes_received", "points", "phone-"];

pub async fn before_the_reveal_only_the_master_sees_votes_and_true_senders(store: Store) {
    let party = Party::voting(&store, 2).await;
    let hidden = |json: &str| {
        for word in SECRET {
            assert!(!json.contains(word), "{word} in {json}");
        }
        // Nor what was not opened yet.
        assert!(!json.contains("example.org/1/2") && !json.contains("example.org/2"), "{json}");
    };
    let check = || async {
        hidden(&serde_json::to_string(&party.sync(1).await).unwrap());
        hidden(&serde_json::to_string(&party.rooms.sync(party.code, None).await.unwrap()).unwrap());
        for recorded in party.rooms.events_after(party.code, 0).await.unwrap().events {
            if recorded.entry.event.audience() == Audience::Everyone {
                hidden(&serde_json::to_string(&recorded).unwrap());
            }
        }
    };
    check().await;
    party.vote(1, &[1]).await.unwrap();
    check().await;
    assert!(
        party.sync_master().await.current_vote_results.is_none(),
        "not even the master, while it is open"
    );
    party.vote(2, &[3]).await.unwrap();
    check().await;
    let master = serde_json::to_value(party.sync_master().await).unwrap();
    assert_eq!(master["current_vote_results"]["true_sender_ids"], serde_json::json!(["s1", "s2"]));
    assert_eq!(master["current_vote_results"]["players"][0]["points"], 1);
    assert!(master.get("votes_received_player_ids").is_none());
    party.rooms.reveal(&party.master).await.unwrap();
    let shown = serde_json::to_value(party.sync(1).await).unwrap();
    assert_eq!(shown["game"]["revealed"]["true_sender_ids"], serde_json::json!(["s1", "s2"]));
    assert_eq!(shown["game"]["revealed"]["players"][1]["selections"], serde_json::json!(["s3"]));
    let master = party.sync_master().await;
    assert!(master.current_vote_results.is_none());
}

pub async fn everybody_sees_all_players_and_senders(store: Store) {
    let party = Party::set_up(&store, 3).await;
    party.take(1, 2).await.unwrap();
    party.rooms.toggle_player(&party.master, &player(3), false).await.unwrap();
    let sync = party.sync(1).await;
    let found: Vec<_> = sync.players_visible.iter().map(|player| (player.status, player.active)).collect();
    use PlayerStatus::{Free, Taken};
    assert_eq!(found, [(Free, true), (Taken, true), (Free, false)]);
    assert_eq!(sync.senders_visible.len(), 4);
    let json = serde_json::to_value(&sync).unwrap();
    assert_eq!(json["players_visible"][1]["status"], "taken");
    assert_eq!((&json["my_player_id"], &json["phase"]), (&"p2".into(), &"lobby".into()));
    assert!(json.get("players_all").is_none());
}

pub async fn the_master_sees_more_on_top_of_the_same(store: Store) {
    let party = Party::voting(&store, 2).await;
    let master = party.rooms.sync_master(&party.master, Some(&device(2))).await.unwrap();
    assert_eq!(master.visible.my_player_id, Some(player(2)));
    let json = serde_json::to_value(&master).unwrap();
    assert_eq!(json["my_player_id"], "p2", "the same names at the same places");
    assert_eq!(json["players_all"].as_array().unwrap().len(), 2);
    assert_eq!(json["senders_all"].as_array().unwrap().len(), 4);
    assert_eq!(json["votes_received_player_ids"], serde_json::json!([]));
}

pub async fn an_open_item_is_shown_with_its_choices(store: Store) {
    let party = Party::voting(&store, 2).await;
    let game = party.sync(1).await.game.unwrap();
    assert_eq!((game.status, game.rounds, game.items), (Status::Vote, 2, 2));
    let item_shown = game.item.unwrap();
    assert_eq!((item_shown.item_id, item_shown.k), (item(1), 2));
    assert_eq!(item_shown.selectable_sender_ids, senders(&[1, 2, 3, 4]));
    assert_eq!(item_shown.reel_url, "https://example.org/1/1");
}

pub async fn what_other_services_wrote_survives_our_transactions(store: Store) {
    let party = Party::set_up(&store, 2).await;
    party
        .external_change(&ROOM_STATE.key(), |state| {
            state["theme"] = "dark".into();
            state["lobby"]["players"][0]["team"] = serde_json::json!([]);
        })
        .await;
    party.external_change(&ROOM_META.key(), |meta| meta["region"] = "eu".into()).await;
    party.take(1, 1).await.unwrap();
    party.rooms.rename_player(&party.master, &player(1), "Other").await.unwrap();
    let state: Value = serde_json::from_str(&party.stored(&ROOM_STATE.key()).await.unwrap()).unwrap();
    assert_eq!(
        (&state["theme"], &state["lobby"]["players"][0]["team"]),
        (&"dark".into(), &serde_json::json!([]))
    );
    let meta: Value = serde_json::from_str(&party.stored(&ROOM_META.key()).await.unwrap()).unwrap();
    assert_eq!(meta["region"], "eu");
}
