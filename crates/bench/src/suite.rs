//! The list of workloads, and the rounds in which ours and the peer take turns.

use crate::SuiteArgs;
use crate::measure::Samples;
use crate::peer::Peer;
use crate::report;
use crate::row::{Row, short};
use crate::runtime::runtime;
use anyhow::{Context, Result, bail};
use emberkeep_testkit::{Scratch, scratch};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// A workload: what it is called, and what it does.
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) run: fn(&mut Bench, &'static str) -> Result<Vec<Row>>,
}

/// What all workloads share.
pub(super) struct Bench {
    /// How often each workload is measured; the median counts.
    pub(super) rounds: usize,
    /// How long a sample takes.
    pub(super) sample: Duration,
    /// With less data, to see that everything works.
    pub(super) quick: bool,
    against: Option<String>,
    peer: Option<Rc<Peer>>,
    folder: Scratch,
}

impl Bench {
    fn new(args: &SuiteArgs) -> Result<Bench> {
        let (rounds, seconds) = if args.quick { (3, 0.2) } else { (5, 0.5) };
        let seconds = args.seconds.unwrap_or(seconds);
        if !(0.01..=60.0).contains(&seconds) {
            bail!("--seconds is {seconds}, expected 0.01 to 60");
        }
        Ok(Bench {
            rounds: args.rounds.map_or(rounds, |rounds| rounds as usize),
            sample: Duration::from_secs_f64(seconds),
            quick: args.quick,
            against: args.against.clone(),
            peer: None,
            folder: scratch(),
        })
    }

    /// The Redis that workloads share; started when the first one asks.
    pub(super) fn redis(&mut self) -> Result<Rc<Peer>> {
        let peer = match self.peer.take() {
            Some(peer) => peer,
            None => Rc::new(Peer::start(self.against.as_deref())?),
        };
        Ok(self.peer.insert(peer).clone())
    }

    /// A folder of the benchmark's own; it goes when the benchmark ends.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// One sample of ours, one of the peer, and so on for all rounds.
    pub(super) fn take_turns(
        &self,
        name: &str,
        unit: &str,
        mut ours: impl FnMut() -> Result<f64>,
        mut peer: impl FnMut() -> Result<f64>,
    ) -> Result<(Samples, Samples)> {
        let (mut our_samples, mut peer_samples) = (Samples::default(), Samples::default());
        for round in 1..=self.rounds {
            let (our_sample, peer_sample) = (ours()?, peer()?);
            our_samples.push(our_sample);
            peer_samples.push(peer_sample);
            let (our_text, peer_text) = (short(our_sample), short(peer_sample));
            say(&format!("{name}  round {round}/{}  ours {our_text}  peer {peer_text}  {unit}", self.rounds));
        }
        Ok((our_samples, peer_samples))
    }
}

/// A line of progress.
pub(super) fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs those workloads of a suite that were asked for.
pub(super) fn run(suite: &'static [Workload], args: &SuiteArgs) -> Result<()> {
    let chosen: Vec<&Workload> = suite
        .iter()
        .filter(|workload| args.only.as_ref().is_none_or(|only| workload.name.contains(only.as_str())))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = suite.iter().map(|workload| workload.name).collect();
        bail!("no workload is called {}; there are {}", args.only.as_deref().unwrap_or(""), names.join(", "));
    }
    if cfg!(debug_assertions) {
        say("this is a debug build: the figures mean nothing, build with --release");
    }
    let mut bench = Bench::new(args)?;
    tidy_up_on_interrupt(bench.folder.path())?;
    let mut rows = Vec::new();
    for workload in chosen {
        rows.extend((workload.run)(&mut bench, workload.name).with_context(|| workload.name)?);
    }
    if args.json {
        return report::json(&rows);
    }
    report::table(&rows)
}

/// On Ctrl-C nothing is dropped: servers end by their watchdogs, the folder is removed here.
fn tidy_up_on_interrupt(folder: &Path) -> Result<()> {
    let folder = folder.to_owned();
    let runtime = runtime()?;
    std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            let _ = std::fs::remove_dir_all(&folder);
            std::process::exit(130);
        }
    })?;
    Ok(())
}
