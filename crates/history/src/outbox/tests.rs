//! The plan in examples; `model.rs` has it in a model.

use super::plan::{Action, Claim, Owner, Run, closed, first_run, incarnation_of, spooled_run};
use crate::delivery::Entry;
use bytes::Bytes;

fn entry(sequence: u64, mark: u32) -> Entry {
    Entry { sequence, position: sequence, mark, event: Ok(Bytes::new()) }
}

fn entries(marks: &[(u64, u32)]) -> Vec<Entry> {
    marks.iter().map(|(sequence, mark)| entry(*sequence, *mark)).collect()
}

fn claim(incarnation: &str, first: u64, marks: &[u32]) -> Claim {
    let owner = Owner::Incarnation(incarnation.into());
    Claim { owner, first, marks: marks.into(), delivered: first }
}

fn run(incarnation: &str, len: usize, is_new: bool, next: &str) -> Run {
    Run { action: Action::Deliver, incarnation: incarnation.into(), len, is_new, next: next.into() }
}

#[test]
fn a_log_begins_with_an_incarnation_of_its_first_entry_and_goes_on_with_it() {
    let log = entries(&[(1, 0xa), (2, 0xb)]);
    assert_eq!(first_run("", &log, &[], false), run("1-0000000a", 2, true, "1-0000000a"));
    assert_eq!(first_run("x", &log, &[], false), run("x", 2, true, "x"));
}

#[test]
fn what_a_killed_consumer_claimed_goes_on_under_its_incarnation() {
    let log = entries(&[(1, 0xa), (2, 0xb), (3, 0xc)]);
    let claims = [claim("1-0000000a", 1, &[0xa, 0xb])];
    assert_eq!(first_run("", &log, &claims, false), run("1-0000000a", 2, false, "1-0000000a"));
    assert_eq!(first_run("1-0000000a", &log[2..], &claims, false), run("1-0000000a", 1, true, "1-0000000a"));
}

#[test]
fn entries_after_a_set_back_begin_a_new_incarnation() {
    let claims = [claim("i", 1, &[1, 2, 3, 4])];
    let log = entries(&[(1, 1), (2, 2), (3, 30), (4, 40), (5, 50)]);
    assert_eq!(first_run("", &log, &claims, false), run("i", 2, false, ""));
    assert_eq!(first_run("", &log[2..], &claims, false), run("3-0000001e", 3, true, "3-0000001e"));
    // A crash after the claim, and the set-back before the position was stored.
    assert_eq!(first_run("i", &log[2..], &claims, false), run("3-0000001e", 3, true, "3-0000001e"));
}

#[test]
fn a_closed_source_is_replaced_for_what_it_had_claimed() {
    let log = entries(&[(5, 0xa), (6, 0xb)]);
    let claims = [claim("5-0000000a", 5, &[0xa, 0xb])];
    let found = first_run(&closed("5-0000000a"), &log, &claims, false);
    assert_eq!(found, run("5-0000000a~", 2, true, "5-0000000a~"));
    assert_eq!(
        first_run(&closed("i"), &log, &[claim("i", 4, &[9, 0xa, 0xb])], false).incarnation,
        "5-0000000a"
    );
}

fn spool(source: &str, first: u64, position: u64, marks: &[u32]) -> Claim {
    let owner = Owner::Spool { source: source.into(), position };
    Claim { owner, first, marks: marks.into(), delivered: first }
}

fn outcome(run: Run) -> (Action, usize, bool) {
    (run.action, run.len, run.is_new)
}

#[test]
fn a_consumer_of_the_log_leaves_to_spools_what_they_have_claimed() {
    let log = entries(&[(4, 0xa), (5, 0xb), (6, 0xc)]);
    let found = first_run("1-00000001", &log, &[spool("s", 3, 1, &[9, 0xa, 0xb])], true);
    assert_eq!((outcome(found.clone()), found.next.as_str()), ((Action::Skip, 2, false), ""));
}

#[test]
fn a_spool_delivers_its_own_and_skips_those_of_others() {
    let own: Vec<_> = (1..=3).map(|n| Entry { position: n, ..entry(n + 3, n as u32) }).collect();
    assert_eq!(outcome(spooled_run("s", &own, &[], None)), (Action::DeliverOwn, 3, true));
    let claims = [spool("s", 4, 1, &[1, 2]), spool("other", 6, 9, &[3])];
    assert_eq!(outcome(spooled_run("s", &own, &claims, None)), (Action::DeliverOwn, 2, false));
    assert_eq!(outcome(spooled_run("s", &own[2..], &claims, None)), (Action::Skip, 1, false));
    // The same entries, moved a second time.
    let again: Vec<_> =
        own.iter().map(|entry| Entry { position: entry.position + 9, ..entry.clone() }).collect();
    assert_eq!(outcome(spooled_run("s", &again[..2], &claims, None)), (Action::Skip, 2, false));
}

#[test]
fn a_spool_goes_on_with_what_a_consumer_had_claimed_but_never_leaves_out_an_entry() {
    let moved: Vec<_> = (1..=3).map(|n| Entry { position: n, ..entry(n + 3, n as u32) }).collect();
    let claimed = |delivered| [Claim { delivered, ..claim("i", 3, &[9, 1, 2, 3]) }];
    let run = |delivered, acknowledged| outcome(spooled_run("s", &moved, &claimed(delivered), acknowledged));
    assert_eq!(run(4, None), (Action::Deliver, 3, false));
    assert_eq!(run(3, None), (Action::Wait, 3, false), "entry 3 is in another spool");
    assert_eq!(run(3, Some(("i", 3))), (Action::Deliver, 3, false));
    assert_eq!(run(3, Some(("i", 5))), (Action::Skip, 2, false));
    assert_eq!(run(6, Some(("other", 9))), (Action::Skip, 2, false));
}

#[test]
fn the_name_of_an_incarnation_fits_its_limit() {
    let name = incarnation_of(&entry(emberkeep_hot::limits::LOG_SEQUENCE_MAX, u32::MAX));
    assert!(closed(&closed(&name)).len() <= crate::limits::INCARNATION_BYTES_MAX);
    assert!(uuid::Uuid::nil().simple().to_string().len() <= crate::limits::INCARNATION_BYTES_MAX);
}
