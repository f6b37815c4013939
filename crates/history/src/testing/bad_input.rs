//! What every store refuses, with which error, and that nothing is written then.

use super::{CombatEvent, NOW, Name, PlayerStats, event};
use crate::{Cursor, Error, History, RawRow, Source, Write};
use emberkeep_schema::{Day, Table, Timestamp, Value};

async fn refused(history: &History, row: CombatEvent, code: &str, word: &str) {
    let sound = event(300, 77, 300_077);
    let error = history.insert_many([sound.clone(), row]).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(word), "{error}");
    assert_eq!(history.get(sound.row_key()).await.unwrap(), None, "nothing of the call is written");
}

pub(super) async fn numbers_that_are_not_finite(history: &History) {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(
            history,
            CombatEvent { position_y: number, ..event(300, 1, 1) },
            "invalid",
            "combat_events.position_y",
        )
        .await;
    }
}

pub(super) async fn times_out_of_range(history: &History) {
    for time in [-1, i64::MIN, i64::MAX, NOW + 2 * 86_400_000, NOW * 1_000] {
        let row = CombatEvent { timestamp: Timestamp(time), ..event(300, 1, 1) };
        refused(history, row.clone(), "invalid", "combat_events.timestamp").await;
        if !Timestamp(time).is_valid() {
            let error = history.get(row.row_key()).await.unwrap_err();
            assert_eq!(error.code(), "invalid", "{error}");
        }
    }
}

pub(super) async fn rows_over_the_limits(history: &History) {
    let row = |bytes| CombatEvent { server_instance: "x".repeat(bytes), ..event(300, 1, 1) };
    refused(history, row(2 * 1024 * 1024), "too_large", "a row of combat_events").await;
    let error = history.insert_many(vec![row(1); 10_001]).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "rows", .. }), "{error}");
    let error = history.insert_many(vec![row(1_000_000); 20]).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "bytes", .. }), "{error}");
    let error = history.insert(Name { name: "n".repeat(9_000), player_id: 1 }).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "bytes", .. }), "{error}");
    // Zero bytes stand doubled in a key.
    let error = history.insert(Name { name: "\0".repeat(5_000), player_id: 1 }).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "bytes", .. }), "{error}");
}

pub(super) async fn cursors_that_were_changed(history: &History) {
    history.insert_many((0..9).map(|n| event(310, n, n as u128))).await.unwrap();
    let day = Timestamp(NOW).day();
    let query = history.range(CombatEvent::by_attacker(310, day)).rows_max(3);
    let cursor = query.page(None).await.unwrap().next.unwrap().to_string();
    for at in 0..cursor.len() {
        let mut text = cursor.clone().into_bytes();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        let text = String::from_utf8(text).unwrap();
        let error = match text.parse::<Cursor>() {
            Ok(changed) => query.page(Some(&changed)).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.code(), "invalid_cursor", "{error}");
    }
    for text in ["", "=", "AAAA", "é", &cursor[..cursor.len() - 4], &"A".repeat(100_000)] {
        let parsed = text.parse::<Cursor>();
        let refused = match parsed {
            Ok(cursor) => query.page(Some(&cursor)).await.is_err(),
            Err(_) => true,
        };
        assert!(refused, "{}", text.len());
    }
    let of_other = history.range(CombatEvent::by_attacker(311, day)).rows_max(3);
    let error = of_other.page(Some(&cursor.parse().unwrap())).await.unwrap_err();
    assert!(error.to_string().contains("another query"), "{error}");
}

pub(super) async fn ranges_out_of_bounds(history: &History) {
    let day = Timestamp(NOW).day();
    let error = history.range(CombatEvent::partition(Day::MIN..=Day::MAX)).page(None).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "partitions", .. }), "{error}");
    for rows_max in [0, 1_001, usize::MAX] {
        let error =
            history.range(CombatEvent::partition(day)).rows_max(rows_max).page(None).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
    }
    let error = history.range(CombatEvent::partition(day)).equal(7_i64).page(None).await.unwrap_err();
    assert!(error.to_string().contains("expected timestamp"), "{error}");
    let absent = history.range(CombatEvent::partition(day)).equal(None::<Timestamp>);
    let error = absent.page(None).await.unwrap_err();
    assert!(error.to_string().contains("combat_events.timestamp"), "{error}");
    let error = history.range(Name::partition("n".repeat(9_000))).page(None).await.unwrap_err();
    assert_eq!(error.code(), "too_large", "{error}");
    let error = history.range(Name::partition("n")).equal(7_i64).page(None).await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
}

pub(super) async fn unknown_texts(history: &History) {
    // As another program, or a later version of this one, would write it.
    let mut row: RawRow = event(320, 1, 320).into_values();
    row[CombatEvent::DECLARATION.index("hit_type").unwrap()] = Some(Value::Text("grazed".into()));
    history.store().write(CombatEvent::DECLARATION, vec![Write::Insert(row)]).await.unwrap();
    let error = history.get(event(320, 1, 320).row_key()).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { table: "combat_events", column: "hit_type", .. }), "{error}");
    history.delete(event(320, 1, 320).row_key()).await.unwrap();
}

pub(super) async fn entries_out_of_order(history: &History) {
    let source = Source::of_log("shard", "log", "bad");
    let stats = PlayerStats::default;
    let entries = [
        vec![(2, 330, stats()), (1, 330, stats())],
        vec![(0, 330, stats())],
        vec![(1, 330, stats()), (1, 330, stats())],
        vec![(1 << 63, 330, stats())],
        vec![(1, 330, stats()), (u64::MAX, 330, stats())],
    ];
    for entries in entries {
        let error = history.fold(&source, entries).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
    }
    let most = PlayerStats { total_kills: i64::MAX, ..stats() };
    history.fold(&source, [(1, 331, most.clone())]).await.unwrap();
    let error = history.fold(&source, [(2, 330, most.clone()), (2, 331, most)]).await.unwrap_err();
    assert!(matches!(error, Error::Overflow { sum: "total_kills", .. }), "{error}");
    assert_eq!(history.totals::<PlayerStats>(330).await.unwrap(), None, "nothing of the call is written");
}
