//! Two processes: one is killed and what it acknowledged is there; one is refused while the other runs.

mod folders;

use emberkeep_history::testing::{CombatEvent, NOW, PlayerStats, event, kills, schema};
use emberkeep_history::{Embedded, History, Source};
use emberkeep_schema::Timestamp;
use folders::{Folder, options};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FOLDER_VARIABLE: &str = "EMBERKEEP_HISTORY_CHILD_FOLDER";
/// The child is killed long before.
const CHILD_TIME_MAX: Duration = Duration::from_secs(60);

/// A child that is killed and waited for at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child's part: writes rows and totals and prints each number after it was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER_VARIABLE) else { return };
    let history = History::new(Arc::new(Embedded::open(folder, schema(), options()).unwrap()));
    let source = Source::of_log("s", "l", "i");
    let begun = Instant::now();
    for number in (0..).take_while(|_| begun.elapsed() < CHILD_TIME_MAX) {
        history.insert_many((0..3).map(|n| event(number, n, (number * 10 + n) as u128))).await.unwrap();
        history.fold(&source, [kills(number as u64 + 1, 7, 1)]).await.unwrap();
        println!("acknowledged {number}");
    }
}

fn start(folder: &Folder) -> Running {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "child", "--nocapture"]).env(FOLDER_VARIABLE, folder.path());
    Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_acknowledged_is_there() {
    for kill_after in [1, 7, 40, 160] {
        let folder = Folder::new();
        let mut running = start(&folder);
        let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        let mut last = -1;
        let mut note = |line: std::io::Result<String>| {
            // The harness of the child prints before the first line without a line break.
            let number =
                line.unwrap().rsplit_once("acknowledged ").and_then(|(_, number)| number.parse().ok());
            last = number.unwrap_or(last);
            last
        };
        for line in lines.by_ref() {
            if note(line) >= kill_after {
                break;
            }
        }
        running.0.kill().unwrap();
        running.0.wait().unwrap();
        // Lines that were in the pipe when it was killed.
        lines.for_each(|line| {
            note(line);
        });
        assert!(last >= kill_after, "the child ended early: {last}");
        let history = History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()));
        for number in 0..=last {
            let day = Timestamp(NOW).day();
            let rows = history.range(CombatEvent::by_attacker(number, day)).page(None).await.unwrap().rows;
            assert_eq!(rows.len(), 3, "event {number} of {last}");
        }
        let kills = history.totals::<PlayerStats>(7).await.unwrap().unwrap().sums.total_kills;
        assert!(kills == last + 1 || kills == last + 2, "{kills} kills, {last} was acknowledged last");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_refused() {
    let folder = Folder::new();
    let mut running = start(&folder);
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("acknowledged 0")));
    let error = Embedded::open(folder.path(), schema(), options()).err().unwrap();
    let expected = format!("in use by process {}", running.0.id());
    assert!(error.to_string().contains(&expected), "{error}");
}
