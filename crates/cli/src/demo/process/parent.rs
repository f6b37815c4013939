//! The parent's side: lets all begin together, shows what they do as one game, and adds up their books.

use super::super::plan::Plan;
use super::super::play::Played;
use super::super::tally::Totals;
use super::super::view::View;
use super::children::{Children, Heard};
use super::{Brief, GO, STOP, Word};
use anyhow::bail;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How long a child may take to connect, or to finish its last turn and tell its books.
const GRACE: Duration = Duration::from_secs(60);

/// Plays in as many processes as the plan says, and gives what all of them left behind. What was counted `before` counts too.
pub(in super::super) async fn play_together(
    plan: &Plan,
    before: Totals,
    view: &mut View,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Played> {
    let brief = |process| Brief { plan: plan.clone(), process };
    let briefs: Vec<Brief> = (0..plan.processes).map(brief).collect();
    let mut game = Game::new(Children::start(&briefs)?, before);
    tokio::pin!(stop);
    game.gather().await?;
    game.children.tell_all(GO);
    view.open();
    game.follow(plan.length, view, stop).await;
    Ok(game.played)
}

/// All children, and what is known of them.
struct Game {
    children: Children,
    before: Totals,
    /// The last counters of each.
    progress: Vec<Totals>,
    /// Those who have told their books, or never will.
    over: Vec<bool>,
    /// When nobody is waited for any longer.
    deadline: Instant,
    played: Played,
}

impl Game {
    fn new(children: Children, before: Totals) -> Game {
        let count = children.count();
        let (progress, over) = (vec![Totals::none(); count], vec![false; count]);
        let played = Played { totals: before.clone(), ..Played::nothing() };
        Game { children, before, progress, over, deadline: Instant::now() + GRACE, played }
    }

    /// Waits until every child is ready.
    async fn gather(&mut self) -> anyhow::Result<()> {
        let mut ready = 0;
        while ready < self.children.count() {
            match tokio::time::timeout_at(self.deadline, self.children.hear()).await {
                Ok(Heard::Said(_, Word::Ready)) => ready += 1,
                Ok(Heard::Said(number, word)) => {
                    bail!("process {number} said {word:?}, expected that it is ready")
                }
                Ok(Heard::Silent(number, _)) => bail!("{}", self.children.ended(number)),
                Err(_) => {
                    bail!("only {ready} of {} processes are ready after {GRACE:?}", self.children.count())
                }
            }
        }
        Ok(())
    }

    /// Shows the game until every child is over. When it is time to stop, they have some time to finish.
    async fn follow(&mut self, length: Duration, view: &mut View, stop: impl Future<Output = ()>) {
        let mut redraw = tokio::time::interval(view.interval());
        redraw.tick().await;
        self.deadline = Instant::now() + length + GRACE;
        let mut stopped = false;
        tokio::pin!(stop);
        while !self.over.iter().all(|over| *over) {
            tokio::select! {
                heard = self.children.hear() => self.take_in(heard),
                () = &mut stop, if !stopped => {
                    stopped = true;
                    self.stop();
                }
                _ = redraw.tick() => view.draw(self.totals()),
                () = tokio::time::sleep_until(self.deadline) => self.give_up(),
            }
        }
    }

    fn take_in(&mut self, heard: Heard) {
        match heard {
            Heard::Said(number, Word::Progress(totals)) => self.progress[number] = totals,
            Heard::Said(number, Word::Done(played)) => {
                self.progress[number] = played.totals.clone();
                self.over[number] = true;
                self.played.merge(*played);
            }
            Heard::Said(_, Word::Ready) => {}
            Heard::Silent(number, strange) if !self.over[number] => {
                self.over[number] = true;
                if strange.is_some() {
                    self.children.kill(number);
                }
                let how = self.children.ended(number);
                let said = strange.map(|strange| format!("; it said {strange}")).unwrap_or_default();
                self.played.violations.push(format!("{how}{said}"));
                self.played.complete = false;
                // Without its books sums prove nothing: the others need not go on.
                self.stop();
            }
            Heard::Silent(..) => {}
        }
    }

    /// Tells all to come to an end, and from now on waits only so long for them.
    fn stop(&mut self) {
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        self.children.tell_all(STOP);
    }

    /// Kills who does not come to an end.
    fn give_up(&mut self) {
        for number in 0..self.over.len() {
            if !self.over[number] {
                self.children.kill(number);
                self.take_in(Heard::Silent(number, None));
            }
        }
    }

    fn totals(&self) -> Totals {
        self.progress.iter().fold(self.before.clone(), |mut sum, totals| {
            sum.add(totals);
            sum
        })
    }
}
