//! A room that waits for players, so that a new server has something to join.

use emberkeep::games::party::{
    ItemId, NewRoom, PlayerId, Rooms, RoundId, SenderId, Setup, SetupItem, SetupPlayer, SetupRound,
    SetupSender,
};
use emberkeep::hot::Store;

const NAMES: [&str; 4] = ["Ann", "Ben", "Cleo", "Dan"];
const ROUNDS: usize = 2;
const ITEMS_PER_ROUND: usize = 3;

/// Creates a room for four, with two rounds to play.
pub async fn open_room(store: &Store) -> anyhow::Result<NewRoom> {
    let rooms = Rooms::new(store.clone());
    let created = rooms.create().await?;
    let master = rooms.master(created.room_code, &created.master_key).await?;
    rooms.setup(&master, setup()?).await?;
    Ok(created)
}

fn setup() -> anyhow::Result<Setup> {
    let mut setup = Setup::default();
    for (number, name) in (1..).zip(NAMES) {
        setup.players.push(SetupPlayer::new(PlayerId::new(format!("p{number}"))?, name));
        let sender_id = SenderId::new(format!("s{number}"))?;
        setup.senders.push(SetupSender { sender_id, name: name.to_owned(), active: true, reels_count: 2 });
    }
    for round in 1..=ROUNDS {
        let items = (1..=ITEMS_PER_ROUND).map(|item| item_of(round, item)).collect::<anyhow::Result<_>>()?;
        setup.rounds.push(SetupRound { round_id: RoundId::new(format!("r{round}"))?, items });
    }
    Ok(setup)
}

fn item_of(round: usize, item: usize) -> anyhow::Result<SetupItem> {
    let sender = 1 + (round + item) % NAMES.len();
    Ok(SetupItem {
        item_id: ItemId::new(format!("i{item}"))?,
        reel_url: format!("https://reels.example/{round}/{item}"),
        k: 1,
        true_sender_ids: vec![SenderId::new(format!("s{sender}"))?],
    })
}
