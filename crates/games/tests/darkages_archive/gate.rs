//! A gate before each call of a real store: a test decides which of several tasks goes on, and what becomes of its call.

use crate::stores::World;
use emberkeep_games::darkages::archive::Archive;
use emberkeep_history::{
    Applied, ConditionalWrite, Error, Fold, Folded, History, HistoryStore, Pending, RangeRequest, RawPage,
    RawRow, RawTotals, Result, Source, Stats, Write, Written,
};
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    /// It has its effect, and its answer is lost.
    LoseAnswer,
    /// It has no effect.
    Fail,
}

/// A task waits before a call with this name, or has ended (`None`).
type Event = (usize, Option<String>);

struct Gate {
    store: Arc<dyn HistoryStore>,
    task: usize,
    events: mpsc::UnboundedSender<Event>,
    verdicts: Mutex<mpsc::UnboundedReceiver<Verdict>>,
}

impl Gate {
    fn around<'a, T: Send + 'a>(
        &'a self,
        call: String,
        run: Pending<'a, Result<T>>,
    ) -> Pending<'a, Result<T>> {
        Box::pin(async move {
            self.events.send((self.task, Some(call))).expect("the test listens");
            let verdict = self.verdicts.lock().await.recv().await.expect("the test decides");
            let lost = || Error::OutcomeUnknown { reason: "a fault of the test".into() };
            match verdict {
                Verdict::Go => run.await,
                Verdict::LoseAnswer => run.await.and_then(|_| Err(lost())),
                Verdict::Fail => Err(lost()),
            }
        })
    }
}

impl HistoryStore for Gate {
    fn name(&self) -> String {
        self.store.name()
    }

    fn now(&self) -> i64 {
        self.store.now()
    }

    fn write(&self, table: &'static TableDeclaration, write: Write) -> Pending<'_, Result<Written>> {
        self.around(format!("write {}", table.name), self.store.write(table, write))
    }

    fn write_if(
        &self,
        table: &'static TableDeclaration,
        write: ConditionalWrite,
    ) -> Pending<'_, Result<Applied<RawRow>>> {
        self.around(format!("write_if {}", table.name), self.store.write_if(table, write))
    }

    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>> {
        self.around(format!("get {}", table.name), self.store.get(table, key))
    }

    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>> {
        self.around(format!("range {}", request.table.name), self.store.range(request))
    }

    fn fold(&self, folds: Vec<Fold>) -> Pending<'_, Result<Folded>> {
        self.store.fold(folds)
    }

    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>> {
        self.store.totals(totals, key)
    }

    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>> {
        self.store.close_source(totals, source)
    }

    fn stats(&self) -> Stats {
        self.store.stats()
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        self.store.close()
    }
}

struct Task {
    handle: JoinHandle<()>,
    verdicts: mpsc::UnboundedSender<Verdict>,
    /// The call before which it waits; `None` = it has ended.
    waits_for: Option<String>,
}

/// Tasks on one store, of which the test lets one go on at a time.
pub(crate) struct Stage {
    archive: Archive,
    tasks: Vec<Task>,
    events: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
}

impl Stage {
    pub(crate) fn of(world: &World) -> Stage {
        Stage { archive: world.archive.clone(), tasks: Vec::new(), events: mpsc::unbounded_channel() }
    }

    /// Starts a task, which runs up to its first call. Returns its number.
    pub(crate) async fn start<F>(&mut self, run: impl FnOnce(Archive) -> F) -> usize
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (task, events) = (self.tasks.len(), self.events.0.clone());
        let (verdicts, decided) = mpsc::unbounded_channel();
        let store = self.archive.history().store().clone();
        let gate = Gate { store, task, events: events.clone(), verdicts: Mutex::new(decided) };
        let run = run(Archive::new(History::new(Arc::new(gate))));
        let handle = tokio::spawn(async move {
            run.await;
            events.send((task, None)).expect("the test listens");
        });
        self.tasks.push(Task { handle, verdicts, waits_for: None });
        self.follow(task).await;
        task
    }

    /// Waits until the task that runs is at its next call, or at its end.
    async fn follow(&mut self, task: usize) {
        let (of, waits_for) = self.events.1.recv().await.expect("this has a sender");
        assert_eq!(of, task, "the others wait");
        self.tasks[task].waits_for = waits_for;
    }

    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// The call before which a task waits; `None` if it has ended.
    pub(crate) fn waits_for(&self, task: usize) -> Option<&str> {
        self.tasks[task].waits_for.as_deref()
    }

    /// Lets a task make one call. One that has ended stays as it is.
    pub(crate) async fn step(&mut self, task: usize, verdict: Verdict) {
        if self.tasks[task].waits_for.is_some() {
            self.tasks[task].verdicts.send(verdict).expect("the task waits");
            self.follow(task).await;
        }
    }

    /// Lets a task go on until it waits before its n-th call of a name.
    pub(crate) async fn run_to(&mut self, task: usize, call: &str, nth: usize) {
        let mut found = 0;
        loop {
            let at = self.waits_for(task).unwrap_or_else(|| panic!("it ended before {nth} x {call}"));
            found += usize::from(at == call);
            if found == nth {
                return;
            }
            self.step(task, Verdict::Go).await;
        }
    }

    pub(crate) async fn finish(&mut self, task: usize) {
        while self.waits_for(task).is_some() {
            self.step(task, Verdict::Go).await;
        }
    }

    /// The end of a task, with its panic if it had one.
    pub(crate) async fn join(self, task: usize) {
        let task = self.tasks.into_iter().nth(task).expect("a task of this stage");
        task.handle.await.expect("the task ended in order");
    }

    /// The process of a task dies before its next call.
    pub(crate) fn crash(&mut self, task: usize) {
        self.tasks[task].handle.abort();
        self.tasks[task].waits_for = None;
    }
}
