//! What every store refuses, with which error, and that nothing is written then.

use super::writes::profile;
use super::{AllTimeBoard, CombatEvent, NOW, Name, PlayerStats, Profile, event, kills};
use crate::{Cursor, Error, History, LogState, RawRow, Source, TotalsEntry, UnreadableRow, Write};
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
    let error = history
        .insert_if_absent(Name { name: "n".repeat(9_000), player_id: 1, token: None })
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "bytes", .. }), "{error}");
    // Zero bytes stand doubled in a key.
    let error = history
        .insert_if_absent(Name { name: "\0".repeat(5_000), player_id: 1, token: None })
        .await
        .unwrap_err();
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
    let (sound, other) = (event(320, 1, 320), event(320, 2, 321));
    let mut row: RawRow = other.clone().into_values();
    row[CombatEvent::DECLARATION.index("hit_type").unwrap()] = Some(Value::Text("grazed".into()));
    history.store().write(CombatEvent::DECLARATION, Write::Insert(vec![row])).await.unwrap();
    history.insert_many([sound.clone(), event(320, 3, 322)]).await.unwrap();
    let error = history.get(other.row_key()).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { table: "combat_events", column: "hit_type", .. }), "{error}");
    // It does not hide the rest of its range.
    let query = history.range(CombatEvent::by_attacker(320, Timestamp(NOW).day())).rows_max(2);
    let page = query.page(None).await.unwrap();
    assert_eq!(page.rows, [sound]);
    let key: Vec<_> = other.row_key().into_values().into_iter().flatten().collect();
    assert_eq!(page.unreadable, [UnreadableRow { key, error: error.clone() }]);
    let rest = query.page(page.next.as_ref()).await.unwrap();
    assert_eq!(rest.into_rows().unwrap(), [event(320, 3, 322)]);
    assert_eq!(page.into_rows().unwrap_err(), error);
}

pub(super) async fn entries_out_of_order(history: &History) {
    let source = Source::of_log("shard", "log", "bad");
    let entry = |position| kills(position, 330, 0);
    let entries = [
        vec![entry(2), entry(1)],
        vec![entry(0)],
        vec![entry(1), entry(1)],
        vec![entry(1 << 63)],
        vec![entry(1), entry(u64::MAX)],
        vec![TotalsEntry { at: Timestamp(-1), ..entry(1) }],
        vec![TotalsEntry { at: Timestamp(i64::MAX), ..entry(1) }],
    ];
    for entries in entries {
        let error = history.fold(&source, entries).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
    }
    history.fold(&source, [kills(1, 331, i64::MAX)]).await.unwrap();
    let error = history.fold(&source, [kills(2, 330, 1), kills(2, 331, 1)]).await.unwrap_err();
    assert!(matches!(error, Error::Overflow { sum: "total_kills", .. }), "{error}");
    assert_eq!(history.totals::<PlayerStats>(330).await.unwrap(), None, "nothing of the call is written");
}

pub(super) async fn keys_that_stand_twice(history: &History) {
    let (one, two) = (profile(340, "one"), profile(340, "two"));
    let error = history.upsert_many([one, profile(341, "three"), two]).await.unwrap_err();
    assert!(error.code() == "invalid" && error.to_string().contains("stands twice"), "{error}");
    assert_eq!(history.get(Profile::key(341)).await.unwrap(), None, "nothing of the call is written");
    let board = |best| AllTimeBoard { category: "twice".into(), entries: vec![(1, "ann".into(), best)] };
    let error = history.replace_at([], [board(1), board(2)], 1).await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
    let error = history.replace_at([board(1).row_key(), board(2).row_key()], [], 1).await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
    // Rows of two partitions are not written together on CQL.
    let other = AllTimeBoard { category: "other".into(), ..board(1) };
    for (removed, rows) in [(vec![], vec![board(1), other.clone()]), (vec![board(1).row_key()], vec![other])]
    {
        let error = history.replace_at(removed, rows, 1).await.unwrap_err();
        assert!(error.to_string().contains("several partitions"), "{error}");
    }
    let (expected, row) = (Name { name: "n".into(), player_id: 1, token: None }, "m".to_owned());
    let error = history.replace_if(expected.clone(), Name { name: row, ..expected }).await.unwrap_err();
    assert!(error.to_string().contains("another key"), "{error}");
}

pub(super) async fn versions_out_of_range(history: &History) {
    let board = AllTimeBoard { category: "range".into(), entries: vec![] };
    for version in [0, -1, i64::MIN] {
        let error = history.upsert_at(board.clone(), version).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
        let error = history.delete_at(board.row_key(), version).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
    }
    assert_eq!(history.get(board.row_key()).await.unwrap(), None);
}

pub(super) async fn log_states_out_of_bounds(history: &History) {
    let state = |sequence, mark: &str| LogState { incarnation: "a".into(), sequence, mark: mark.into() };
    let long = "x".repeat(201);
    for (log, next) in [("log", state(1 << 63, "m")), ("log", state(1, &long)), (&*long, state(1, "m"))] {
        let error = history.advance(log, None, next).await.unwrap_err();
        assert!(matches!(error.code(), "invalid" | "too_large"), "{error}");
    }
    assert_eq!(history.acknowledged("log").await.unwrap(), None);
}
