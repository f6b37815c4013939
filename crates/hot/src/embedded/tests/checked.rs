//! Closures under test: pure ones pass, and every kind of impurity is reported.

use super::*;
use std::sync::atomic::AtomicU32;

fn checking() -> Embedded {
    options(&ManualClock::at(T0)).check_closures(true).open().unwrap()
}

/// What the engine says of a body.
fn answer(body: impl FnMut(&mut RawTx<'_>) -> Result<()> + Send + 'static) -> String {
    let engine = checking();
    set(&engine, "a", "1");
    match transaction(&engine, body) {
        Err(Error::ImpureClosure { difference }) => {
            assert_eq!(text(&engine, "b"), None, "nothing was written");
            difference
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pure_body_runs_for_each_first_read_and_twice() {
    let engine = checking();
    set(&engine, "a", "1");
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let sum = transaction(&engine, move |tx| {
        counted.fetch_add(1, Ordering::Relaxed);
        let sum = number(tx, &key("a"))? + number(tx, &key("b"))? + tx.now() % 7 + (tx.random() % 5) as i64;
        put_number(tx, &key("b"), sum)?;
        let own = number(tx, &key("b"))?;
        put_number(tx, &key("c"), own)?;
        Ok(sum)
    });
    assert_eq!(text(&engine, "c"), Some(sum.unwrap().to_string()));
    assert_eq!(runs.load(Ordering::Relaxed), 4, "two first reads, then a run and its repetition");
    assert_eq!(engine.stats().unwrap().conflicts, 0, "nothing of this is a conflict");
}

#[test]
fn a_body_that_counts_its_runs_is_found() {
    let mut runs = 0;
    let difference = answer(move |tx| {
        runs += 1;
        put_number(tx, &key("b"), runs)
    });
    assert!(difference.starts_with("write 1 of its first run was "), "{difference}");
    assert!(difference.contains("b\"1\"") && difference.contains("b\"2\""), "{difference}");
}

#[test]
fn a_body_that_writes_only_once_is_found() {
    let mut sent = false;
    let difference = answer(move |tx| {
        if !std::mem::replace(&mut sent, true) {
            tx.publish(bytes("channel"), bytes("once"))?;
        }
        Ok(())
    });
    assert!(
        difference.contains("message 1") && difference.ends_with("of its second run nothing"),
        "{difference}"
    );
}

#[test]
fn a_body_that_fails_only_once_is_found() {
    let mut failed = false;
    let difference = answer(move |tx| {
        put_number(tx, &key("b"), 1)?;
        if std::mem::replace(&mut failed, true) { Ok(()) } else { Err(Error::Closed) }
    });
    assert_eq!(difference, "its first run returned an error, its second run Ok");
}

#[test]
fn a_body_that_unwraps_a_read_is_found() {
    let difference = answer(|tx| {
        let found = match tx.text(&key("a")) {
            Ok(found) => found.is_some(),
            // As `.unwrap()`, but without the hook's trace on stderr.
            Err(error) => std::panic::resume_unwind(Box::new(format!("unwrap: {error}"))),
        };
        put_number(tx, &key("b"), i64::from(found))
    });
    assert!(difference.starts_with("it panicked when a was not available yet: "), "{difference}");
}

#[test]
fn a_body_that_reads_other_keys_in_each_run_is_found() {
    let mut runs = 0;
    let difference = answer(move |tx| {
        runs += 1;
        number(tx, &key(format!("key {runs}"))).map(drop)
    });
    assert!(difference.contains("it still reads new keys"), "{difference}");
}

#[test]
fn an_error_and_a_panic_of_a_pure_body_stay_what_they_are() {
    let engine = checking();
    let refused = transaction(&engine, |tx| {
        number(tx, &key("a"))?;
        Err::<(), _>(Error::Closed)
    });
    assert_eq!(refused, Err(Error::Closed));
    let panicked: Result<()> = transaction(&engine, |tx| {
        number(tx, &key("a"))?;
        std::panic::resume_unwind(Box::new("a rule".to_owned()))
    });
    assert_eq!(panicked, Err(Error::Panicked { message: "a rule".into() }));
}
