//! The parent's side: lets all begin together, shows what they do as one game, and adds up their results.

use super::children::{ChildEvent, Children};
use super::{Assignment, ChildMessage, GO, STOP};
use crate::ChildCommand;
use crate::plan::Plan;
use crate::play::PlayResult;
use crate::stats::Totals;
use crate::view::View;
use anyhow::bail;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How long a child may take to connect, or to finish its last turn and send its results.
const GRACE: Duration = Duration::from_secs(60);

/// Plays in as many processes as the plan says, and gives what all of them left behind. What was counted `before` counts too.
pub(crate) async fn play_together(
    plan: &Plan,
    before: Totals,
    command: ChildCommand,
    view: &mut View,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<PlayResult> {
    let assignment = |process| Assignment { plan: plan.clone(), process };
    let assignments: Vec<Assignment> = (0..plan.processes).map(assignment).collect();
    let mut game = Game::new(Children::start(&assignments, command)?, before);
    tokio::pin!(stop);
    game.gather().await?;
    game.children.send_all(GO);
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
    /// Children that sent their results, or never will.
    over: Vec<bool>,
    /// When waiting for children ends.
    deadline: Instant,
    played: PlayResult,
}

impl Game {
    fn new(children: Children, before: Totals) -> Game {
        let count = children.count();
        let (progress, over) = (vec![Totals::none(); count], vec![false; count]);
        let played = PlayResult { totals: before.clone(), ..PlayResult::nothing() };
        Game { children, before, progress, over, deadline: Instant::now() + GRACE, played }
    }

    /// Waits until every child is ready.
    async fn gather(&mut self) -> anyhow::Result<()> {
        let mut ready = 0;
        while ready < self.children.count() {
            match tokio::time::timeout_at(self.deadline, self.children.next()).await {
                Ok(ChildEvent::Message(_, ChildMessage::Ready)) => ready += 1,
                Ok(ChildEvent::Message(number, message)) => {
                    bail!("process {number} sent {message:?}, expected Ready")
                }
                Ok(ChildEvent::Ended(number, _)) => bail!("{}", self.children.ended(number)),
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
                event = self.children.next() => self.take_in(event),
                () = &mut stop, if !stopped => {
                    stopped = true;
                    self.stop();
                }
                _ = redraw.tick() => view.draw(self.totals()),
                () = tokio::time::sleep_until(self.deadline) => self.give_up(),
            }
        }
    }

    fn take_in(&mut self, event: ChildEvent) {
        match event {
            ChildEvent::Message(number, ChildMessage::Progress(totals)) => self.progress[number] = *totals,
            ChildEvent::Message(number, ChildMessage::DutyResult(played)) => {
                self.progress[number] = played.totals.clone();
                self.over[number] = true;
                self.played.merge(*played);
            }
            ChildEvent::Message(_, ChildMessage::Ready) => {}
            ChildEvent::Ended(number, strange) if !self.over[number] => {
                self.over[number] = true;
                if strange.is_some() {
                    self.children.kill(number);
                }
                let how = self.children.ended(number);
                let said = strange.map(|strange| format!("; it sent {strange}")).unwrap_or_default();
                self.played.violations.push(format!("{how}{said}"));
                self.played.complete = false;
                // Without its results the sums prove nothing: the others need not go on.
                self.stop();
            }
            ChildEvent::Ended(..) => {}
        }
    }

    /// Asks all children to end, and waits only so long for them.
    fn stop(&mut self) {
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        self.children.send_all(STOP);
    }

    /// Kills the children that do not end.
    fn give_up(&mut self) {
        for number in 0..self.over.len() {
            if !self.over[number] {
                self.children.kill(number);
                self.take_in(ChildEvent::Ended(number, None));
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
