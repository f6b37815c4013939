//! What every store keeps for the consumer of a log.

use super::NOW;
use crate::{DeadLetter, History, LogState};
use emberkeep_schema::{Table, Timestamp};

fn state(incarnation: &str, sequence: u64) -> LogState {
    LogState { incarnation: incarnation.into(), sequence, mark: format!("mark {sequence}") }
}

pub(super) async fn positions_of_logs(history: &History) {
    let log = "shard-1/log:positions";
    assert_eq!(history.acknowledged(log).await.unwrap(), None);
    let refused = history.advance(log, Some(state("a", 1)), state("a", 2)).await.unwrap();
    assert!(!refused, "there is no position yet");
    assert!(history.advance(log, None, state("a", 5)).await.unwrap());
    assert!(!history.advance(log, None, state("a", 6)).await.unwrap(), "there is one already");
    for wrong in [state("a", 4), state("b", 5), LogState { mark: "other".into(), ..state("a", 5) }] {
        assert!(!history.advance(log, Some(wrong), state("a", 6)).await.unwrap());
    }
    assert!(history.advance(log, Some(state("a", 5)), state("a", 9)).await.unwrap());
    // A log that was set back has a new incarnation, and may begin again.
    assert!(history.advance(log, Some(state("a", 9)), state("b", 1)).await.unwrap());
    assert_eq!(history.acknowledged(log).await.unwrap(), Some(state("b", 1)));
    assert_eq!(history.acknowledged("shard-2/log:positions").await.unwrap(), None);
}

pub(super) async fn one_consumer_advances(history: &History) {
    let log = "shard-1/log:race";
    assert!(history.advance(log, None, state("a", 1)).await.unwrap());
    let tries: Vec<_> = (2..10)
        .map(|sequence| {
            let history = history.clone();
            let next = state("a", sequence);
            tokio::spawn(async move { history.advance(log, Some(state("a", 1)), next).await })
        })
        .collect();
    let mut winners = 0;
    for one in tries {
        winners += usize::from(one.await.unwrap().unwrap());
    }
    assert_eq!(winners, 1);
}

pub(super) async fn dead_letters(history: &History) {
    let letter = |sequence, incarnation: &str| DeadLetter {
        log: "shard-1/log:dead".into(),
        sequence,
        incarnation: incarnation.into(),
        reason: "a time before 1970".into(),
        entry: vec![0, 1, 2],
        at: Timestamp(NOW),
    };
    let letters = [letter(1, "a"), letter(1, "b"), letter(7, "a")];
    // In any order, and again.
    for place in [2, 0, 1, 0] {
        history.upsert(letters[place].clone()).await.unwrap();
    }
    let query = history.range(DeadLetter::partition("shard-1/log:dead"));
    assert_eq!(query.page(None).await.unwrap().rows, letters);
    history.delete(letters[1].row_key()).await.unwrap();
    assert_eq!(query.page(None).await.unwrap().rows, [letters[0].clone(), letters[2].clone()]);
}
