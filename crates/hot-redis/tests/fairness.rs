//! Processes that contend for one key: none waits for long, each makes progress, and the sums are exact.
//!
//! Each contender is an operating-system process of its own: the test binary calls itself. A far one goes
//! through a proxy that delays; the time until the first answers is left out, because it is spent on
//! connecting.

mod fault_harness;

use emberkeep_hot::Error;
use emberkeep_testkit::{FaultProxy, RedisServer, report};
use fault_harness::*;
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const ROLE: &str = "EMBERKEEP_FAIRNESS_ROLE";
const RUN: Duration = Duration::from_millis(3_000);
const WARM_UP: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_millis(500);

/// What the damage of a document's game is: one script that does it all on the server.
const PEER_SCRIPT: &str = "
local sum = tonumber(redis.call('GET', KEYS[1]) or '0') + tonumber(ARGV[1])
redis.call('SET', KEYS[1], sum)
redis.call('RPUSH', KEYS[2], ARGV[2])
return sum";

/// What one process reports, as it prints it.
#[derive(Debug, Default)]
struct Report {
    words: BTreeMap<String, u64>,
}

impl Report {
    fn parse(line: &str) -> Report {
        let pair =
            |word: &str| Some((word.split_once('=')?.0.to_owned(), word.split_once('=')?.1.parse().ok()?));
        Report { words: line.split_whitespace().filter_map(pair).collect() }
    }

    fn get(&self, name: &str) -> u64 {
        self.words.get(name).copied().unwrap_or(0)
    }

    fn per_second(&self) -> f64 {
        self.get("done") as f64 / RUN.as_secs_f64()
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name}: {:.0} commits/s, p50 {} us, p99 {} us, max {} us, conflicts {}, lease waits {}, transactions per commit {:.1}",
            self.per_second(),
            self.get("p50"),
            self.get("p99"),
            self.get("max"),
            self.get("conflicts"),
            self.get("lease_waits"),
            self.get("done") as f64 / self.get("calls").max(1) as f64,
        )
    }
}

/// The child's part: does nothing unless it gets a role.
#[test]
fn contender() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split_whitespace().collect();
    let [kind, url, name, tasks] = words[..] else { panic!("not a role: {role}") };
    let tasks: usize = tasks.parse().expect("a number of tasks");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match kind {
            "transaction" => contend_by_transactions(url, name, tasks).await,
            "read" => contend_by_reads(url, tasks).await,
            _ => contend_by_script(url, name, tasks).await,
        }
    });
}

async fn contend_by_transactions(url: &str, name: &str, tasks: usize) {
    let store = store_on(url).await;
    let scope = store.scope(arena("hot"));
    let stop = flag();
    let (raise, begun) = (stop.clone(), Instant::now());
    tokio::spawn(async move {
        tokio::time::sleep(WARM_UP + RUN).await;
        raise.store(true, std::sync::atomic::Ordering::Release);
    });
    let ledger = assault(scope, name, tasks, Until::Flag(stop)).await;
    let warm = begun + WARM_UP;
    let entries = ledger.entries.values().filter(|entry| entry.ended > warm);
    let mut waits: Vec<Duration> = entries.map(|e| e.ended - e.started.max(warm)).collect();
    let stats = store.stats().unwrap();
    print_report(
        &mut waits,
        &[
            ("refused", ledger.refused() as u64),
            ("unknown", ledger.unknown() as u64),
            ("all", ledger.done() as u64),
            ("conflicts", stats.conflicts),
            ("lease_waits", stats.lease_waits),
            ("calls", stats.commit_calls),
        ],
    );
    if ledger.refused() + ledger.unknown() > 0 {
        println!("errors {:?}", ledger.errors());
    }
}

/// Read-only transactions that use the time, on the keys that others write.
async fn contend_by_reads(url: &str, tasks: usize) {
    let store = store_on(url).await;
    let warm = Instant::now() + WARM_UP;
    let end = warm + RUN;
    let mut running = Vec::new();
    for _ in 0..tasks {
        let scope = store.scope(arena("hot"));
        running.push(tokio::spawn(async move {
            let (mut waits, mut errors) = (Vec::new(), Vec::new());
            while Instant::now() < end {
                let started = Instant::now();
                let read = scope.transact(|tx| {
                    let (sum, hits) = (tx.get(&SUM.key())?, tx.llen(&HITS.key())?);
                    Ok::<_, Error>((sum, hits, tx.now()))
                });
                match read.await {
                    Ok(_) => waits.push(started.max(warm).elapsed()),
                    Err(error) => errors.push(error),
                }
            }
            (waits, errors)
        }));
    }
    let (mut waits, mut errors) = (Vec::new(), Vec::new());
    for task in running {
        let (of_task, refused) = task.await.expect("a task ends");
        waits.extend(of_task);
        errors.extend(refused);
    }
    print_report(
        &mut waits,
        &[("refused", errors.len() as u64), ("conflicts", store.stats().unwrap().conflicts)],
    );
    if !errors.is_empty() {
        println!("errors {errors:?}");
    }
}

async fn contend_by_script(url: &str, name: &str, tasks: usize) {
    let client = redis::Client::open(url).expect("a good URL");
    let connection = client.get_multiplexed_async_connection().await.expect("connects");
    let begun = Instant::now();
    let end = begun + WARM_UP + RUN;
    let mut running = Vec::new();
    for task in 0..tasks {
        let (mut connection, name) = (connection.clone(), format!("{name}-{task}"));
        running.push(tokio::spawn(async move {
            let script = redis::Script::new(PEER_SCRIPT);
            let mut waits = Vec::new();
            while Instant::now() < end {
                let started = Instant::now();
                let mut call = script.key("sum:script");
                call.key("hits:script").arg(3).arg(format!("{name}-{}", waits.len()));
                let _: i64 = call.invoke_async(&mut connection).await.expect("the document's script runs");
                if started > begun + WARM_UP {
                    waits.push(started.elapsed());
                }
            }
            waits
        }));
    }
    let mut waits = Vec::new();
    for task in running {
        waits.extend(task.await.expect("a task ends"));
    }
    print_report(&mut waits, &[]);
}

fn print_report(waits: &mut [Duration], more: &[(&str, u64)]) {
    waits.sort();
    let at = |part: f64| waits.get((waits.len() as f64 * part) as usize).map_or(0, |d| d.as_micros() as u64);
    let max = waits.last().map_or(0, |d| d.as_micros() as u64);
    print!("REPORT done={} p50={} p99={} max={max}", waits.len(), at(0.5), at(0.99));
    more.iter().for_each(|(name, value)| print!(" {name}={value}"));
    println!();
}

fn start(kind: &str, url: &str, name: &str, tasks: usize) -> Child {
    let program = std::env::current_exe().expect("this binary");
    let mut command = Command::new(program);
    command.args(["--exact", "contender", "--nocapture"]).env(ROLE, format!("{kind} {url} {name} {tasks}"));
    command.stdout(Stdio::piped()).spawn().expect("this binary can be started again")
}

fn report_of(child: Child) -> Report {
    let output = child.wait_with_output().expect("a contender ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains("REPORT"));
    text.lines().filter(|line| line.contains("errors")).for_each(|line| report!("{line}"));
    Report::parse(line.unwrap_or_else(|| panic!("no report: {text}")))
}

/// Every hit that a process counted is there, and no other.
fn assert_sums(server: &RedisServer, reports: &[Report]) {
    let made: u64 = reports.iter().map(|report| report.get("all")).sum();
    let unknown: u64 = reports.iter().map(|report| report.get("unknown")).sum();
    let mut client = server.client();
    let count: u64 = client.call(&["GET", "count:hot"]).text().parse().expect("a number");
    let listed = client.call(&["LRANGE", "hits:hot", "0", "-1"]);
    let mut ids: Vec<String> = listed.items().iter().map(|id| id.text()).collect();
    let sum: i64 = ids.iter().map(|id| damage_of(number_of(id))).sum();
    assert_eq!(client.call(&["GET", "sum:hot"]).text(), sum.to_string());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len() as u64, count, "an id is there twice");
    assert!((made..=made + unknown).contains(&count), "{made} made, {unknown} unknown, {count} counted");
}

fn number_of(id: &str) -> usize {
    id.rsplit('-').next().and_then(|n| n.parse().ok()).expect("an id ends with its number")
}

/// Most runs of a scenario: other programs on the machine can hold up any process, but not every time.
const RUNS_MAX: usize = 3;

/// What a process has to complain of: no progress, a refusal (which is a wait for the whole deadline), a long
/// wait.
fn complaint(report: &Report) -> Option<String> {
    let (turned_away, wait) = (report.get("refused") + report.get("unknown"), report.get("max"));
    match (report.get("done"), turned_away) {
        (0, _) => Some("no progress".into()),
        (_, 1..) => Some(format!("{turned_away} refused or unknown")),
        _ => (wait > WAIT_MAX.as_micros() as u64).then(|| format!("a wait of {wait} us")),
    }
}

/// The promise of this file: each process makes progress, none is refused, none waits for long. Runs a
/// scenario until it holds; sums are exact in every run, whatever else holds.
fn no_process_waits_long(mut scenario: impl FnMut() -> Vec<Report>) {
    let mut complaints = Vec::new();
    for run in 1..=RUNS_MAX {
        let of_run: Vec<String> = scenario().iter().filter_map(complaint).collect();
        if of_run.is_empty() {
            return;
        }
        report!("fairness, run {run} proves nothing: {of_run:?}");
        complaints.push(of_run);
    }
    panic!("in every run a process had to complain: {complaints:?}");
}

/// One scenario at a time: they measure waits.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn near_and_far(delay: Duration) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    proxy.delay(delay, Duration::ZERO);
    let pair = |kind: &str| {
        let children = [start(kind, &server.url(), "near", 64), start(kind, &proxy.url(), "far", 16)];
        children.map(report_of)
    };
    let mut rates = (0.0, 0.0);
    no_process_waits_long(|| {
        server.client().call(&["FLUSHALL"]);
        let [near, far] = pair("transaction");
        report!("fairness +{} ms, {}", delay.as_millis(), near.line("near 64 tasks"));
        report!("fairness +{} ms, {}", delay.as_millis(), far.line("far 16 tasks"));
        rates = (near.per_second(), far.per_second());
        let reports = vec![near, far];
        assert_sums(&server, &reports);
        reports
    });
    let [script_near, script_far] = pair("script");
    report!(
        "fairness +{} ms, far against the document's script: {:.0}/s to {:.0}/s = {:.2}x (near {:.2}x)",
        delay.as_millis(),
        rates.1,
        script_far.per_second(),
        rates.1 / script_far.per_second(),
        rates.0 / script_near.per_second(),
    );
}

/// A process so far away, beside one at the server on the same keys: neither is refused. Waits are those of
/// the distance.
fn far_beside_near(kind: &str, round_trip: Duration) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = emberkeep_testkit::redis() else { return };
    let proxy = FaultProxy::start(server.address()).expect("a port is free");
    let mut complaints = Vec::new();
    for _ in 0..RUNS_MAX {
        server.client().call(&["FLUSHALL"]);
        proxy.delay(round_trip / 2, round_trip / 2);
        let children = [start("transaction", &server.url(), "near", 8), start(kind, &proxy.url(), "far", 4)];
        let reports = children.map(report_of);
        let title = format!("fairness, round trip {} ms", round_trip.as_millis());
        report!("{title}, {}", reports[0].line("near 8 writers"));
        report!("{title}, {}", reports[1].line(&format!("far 4 tasks ({kind})")));
        assert_sums(&server, &reports);
        let refused = |report: &Report| report.get("refused") + report.get("unknown");
        let of_run: Vec<_> = reports.iter().map(|report| (report.get("done"), refused(report))).collect();
        assert!(
            of_run.iter().all(|(_, refused)| *refused == 0),
            "done and refused, near and far: {of_run:?}"
        );
        if of_run.iter().all(|(done, _)| *done > 0) {
            return;
        }
        complaints.push(of_run);
    }
    panic!("no progress in any run: {complaints:?}");
}

#[test]
fn d_writers_far_away() {
    [2, 40, 80, 300]
        .into_iter()
        .map(Duration::from_millis)
        .for_each(|way| far_beside_near("transaction", way));
}

#[test]
fn e_readers_far_away() {
    [2, 40, 80, 300].into_iter().map(Duration::from_millis).for_each(|way| far_beside_near("read", way));
}

#[test]
fn a_process_one_millisecond_away() {
    near_and_far(Duration::from_millis(1));
}

#[test]
fn b_process_five_milliseconds_away() {
    near_and_far(Duration::from_millis(5));
}

#[test]
fn c_four_equal_processes() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = emberkeep_testkit::redis() else { return };
    no_process_waits_long(|| {
        server.client().call(&["FLUSHALL"]);
        let children: Vec<Child> =
            (0..4).map(|i| start("transaction", &server.url(), &format!("p{i}"), 16)).collect();
        let reports: Vec<Report> = children.into_iter().map(report_of).collect();
        for (i, report) in reports.iter().enumerate() {
            report!("fairness of four, {}", report.line(&format!("process {i}, 16 tasks")));
        }
        assert_sums(&server, &reports);
        reports
    });
}
