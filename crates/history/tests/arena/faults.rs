//! A real history store between which and its callers a test can stand: calls fail before or after they had their
//! effect, or wait.

use emberkeep_history::{
    Applied, ConditionalWrite, Error, Fold, Folded, HistoryStore, Pending, RangeRequest, RawPage, RawRow,
    RawTotals, Result, Source, Stats, Write, Written,
};
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What becomes of a call.
pub enum Fault {
    /// It fails without an effect.
    Before,
    /// It has its effect and fails.
    After,
    /// It has its effect after a permit was given.
    Wait(Arc<Semaphore>),
}

type Decide = Box<dyn Fn(&str) -> Option<Fault> + Send + Sync>;

/// The store, and who decides. A call is named `write kills`, `write_if ember_log_positions`, `fold scores`.
pub struct Faults {
    store: Arc<dyn HistoryStore>,
    decide: Decide,
}

impl Faults {
    pub fn new(
        store: Arc<dyn HistoryStore>,
        decide: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static,
    ) -> Arc<Faults> {
        Arc::new(Faults { store, decide: Box::new(decide) })
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        call: String,
        run: Pending<'a, Result<T>>,
    ) -> Pending<'a, Result<T>> {
        let lost = || Error::OutcomeUnknown { reason: "a fault of the test".into() };
        match (self.decide)(&call) {
            None => run,
            Some(Fault::Before) => Box::pin(async move { Err(lost()) }),
            Some(Fault::After) => Box::pin(async move { run.await.and_then(|_| Err(lost())) }),
            Some(Fault::Wait(gate)) => Box::pin(async move {
                gate.acquire().await.expect("the gate stays open").forget();
                run.await
            }),
        }
    }
}

impl HistoryStore for Faults {
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
        let names: Vec<_> = folds.iter().map(|fold| fold.totals.name).collect();
        self.around(format!("fold {}", names.join(" ")), self.store.fold(folds))
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
