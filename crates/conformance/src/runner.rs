//! Runs every case on one engine, names those that fail.

use crate::context::{Backend, Context};
use crate::rng::Rng;
use crate::{CASES, CaseFn};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A case that takes longer hangs.
const CASE_MAX: Duration = Duration::from_secs(180);

/// Runs all cases, prints a line for each, and panics with the names of those that failed.
///
/// `EMBERKEEP_CASE=text` runs only the cases whose name contains the text; the output says so.
pub async fn run_all(backend: &Backend) {
    let only = std::env::var("EMBERKEEP_CASE").unwrap_or_default();
    let started = Instant::now();
    let mut failed = Vec::new();
    let mut count = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(&only)) {
        count += 1;
        let begun = Instant::now();
        let outcome = run_one(backend, name, *case).await;
        let took = begun.elapsed();
        match outcome {
            Ok(()) => say(&format!("  ok      {name} ({took:.1?})")),
            Err(why) => {
                say(&format!("  FAILED  {name} ({took:.1?}): {why}"));
                failed.push(*name);
            }
        }
    }
    let filter = if only.is_empty() { String::new() } else { format!(" (only those with {only:?})") };
    say(&format!(
        "{count} cases on {}{filter}, {} failed, {:.1?}",
        backend.name,
        failed.len(),
        started.elapsed()
    ));
    assert!(failed.is_empty(), "{} of {count} cases failed on {}: {failed:#?}", failed.len(), backend.name);
}

async fn run_one(backend: &Backend, name: &str, case: CaseFn) -> Result<(), String> {
    let partition = format!("w{:x}", Rng::random_seed());
    let context = Arc::new(Context::new(backend, &partition));
    // A task of its own catches the panic, so that the other cases go on.
    let task = tokio::spawn(async move { case(&context).await });
    let abort = task.abort_handle();
    match tokio::time::timeout(CASE_MAX, task).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(death)) => Err(text_of(death)),
        Err(_) => {
            abort.abort();
            Err(format!("{name} hangs: not done after {CASE_MAX:?}"))
        }
    }
}

fn text_of(death: tokio::task::JoinError) -> String {
    let Ok(panic) = death.try_into_panic() else { return "cancelled".into() };
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// Straight to the descriptor: the test harness would swallow what the print macros write.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
