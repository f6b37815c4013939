//! The external client of an engine that lives in this process: only transactions can reach its data,
//! so plain commands are one-line transactions on the engine, and looks are plain reads.

use super::{Change, External, StoredValue};
use crate::families::World;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Read, Reply, Score, ScoreBound, Write, ZSlice};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_schema::Name;

/// A client by raw transactions.
pub struct TransactionsExternal {
    store: Store,
    scope: Scope<World>,
}

impl TransactionsExternal {
    /// A client on the engine of a store.
    pub fn new(store: &Store) -> TransactionsExternal {
        let partition = Name::new("external").expect("a plain name");
        TransactionsExternal { store: store.clone(), scope: store.scope(World(partition)) }
    }

    async fn read(&self, key: &Bytes, read: Read) -> Reply {
        let replies = self.store.engine().read_many(vec![(key.clone(), read)]).await;
        replies.expect("plain reads are answered").into_iter().next().expect("one reply for one read")
    }
}

/// The number in a reply to GET, HGET or ZSCORE; absent counts as 0.
fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Blob(text) => String::from_utf8_lossy(text).parse().expect("the case keeps numbers there"),
        Reply::Score(score) => score.get() as i64,
        _ => 0,
    }
}

fn change_in(tx: &mut Tx<'_, World>, key: &Bytes, change: &Change) -> Result<(), Error> {
    let write = match change {
        // As Redis does it: a deadline in the past deletes.
        Change::Write(write) if write.deadline().is_some_and(|at| at <= tx.now()) => Write::Del,
        Change::Write(write) => write.clone(),
        Change::HIncrBy(field, by) => {
            let sum = number(&tx.raw_read(key, Read::HGet(field.clone()))?) + by;
            Write::HSet(vec![(field.clone(), sum.to_string().into())])
        }
        Change::ZIncrBy(member, by) => {
            let sum = number(&tx.raw_read(key, Read::ZScore(member.clone()))?) + by;
            Write::ZAdd(vec![(member.clone(), Score::from_i64(sum))])
        }
        Change::ZAddMinusZero(member) => Write::ZAdd(vec![(member.clone(), Score::from_i64(0))]),
    };
    tx.raw_write(key.clone(), write)
}

impl External for TransactionsExternal {
    fn change<'a>(&'a mut self, key: &'a Bytes, change: Change) -> Pending<'a, bool> {
        let key = key.clone();
        Box::pin(async move { self.scope.transact(move |tx| change_in(tx, &key, &change)).await.is_ok() })
    }

    fn change_and_log<'a>(
        &'a mut self,
        key: &'a Bytes,
        write: Write,
        list: &'a Bytes,
        note: Bytes,
    ) -> Pending<'a, bool> {
        let (key, list) = (key.clone(), list.clone());
        let change = Change::Write(write);
        let body = move |tx: &mut Tx<'_, World>| {
            change_in(tx, &key, &change)?;
            tx.raw_write(list.clone(), Write::RPush(vec![note.clone()]))
        };
        Box::pin(async move { self.scope.transact(body).await.is_ok() })
    }

    fn put_if_absent<'a>(&'a mut self, key: &'a Bytes, value: Bytes) -> Pending<'a, bool> {
        let key = key.clone();
        Box::pin(async move {
            let body = move |tx: &mut Tx<'_, World>| {
                let absent = tx.raw_read(&key, Read::Exists)? == Reply::Int(0);
                if absent {
                    tx.raw_write(key.clone(), Write::Set(value.clone(), Expiry::Never))?;
                }
                Ok::<_, Error>(absent)
            };
            self.scope.transact(body).await.expect("a plain transaction")
        })
    }

    fn transfer<'a>(&'a mut self, from: &'a Bytes, to: &'a Bytes, amount: i64) -> Pending<'a, ()> {
        let (from, to) = (from.clone(), to.clone());
        Box::pin(async move {
            let body = move |tx: &mut Tx<'_, World>| {
                tx.raw_write(from.clone(), Write::IncrBy(-amount))?;
                tx.raw_write(to.clone(), Write::IncrBy(amount))
            };
            self.scope.transact(body).await.expect("a plain transaction")
        })
    }

    fn inspect<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, Option<(StoredValue, Option<i64>)>> {
        Box::pin(async move {
            let deadline = match self.read(key, Read::ExpireTime).await {
                Reply::Int(-2) => return None,
                Reply::Int(at) => (at >= 0).then_some(at),
                other => panic!("PEXPIRETIME answered {other:?}"),
            };
            let reads = [
                Read::Get,
                Read::HGetAll,
                Read::SMembers,
                Read::ZRange(ZSlice::Score(ScoreBound::MIN, ScoreBound::MAX, 1_000), false),
                Read::LRange(0, -1),
            ];
            for read in reads {
                let set = read == Read::SMembers;
                match self.read(key, read).await {
                    Reply::WrongType(_) => {}
                    Reply::Blob(text) => return Some((StoredValue::Text(text), deadline)),
                    Reply::Pairs(pairs) => {
                        return Some((StoredValue::Hash(pairs.into_iter().collect()), deadline));
                    }
                    Reply::List(list) if set => {
                        return Some((StoredValue::Set(list.into_iter().collect()), deadline));
                    }
                    Reply::List(list) => return Some((StoredValue::List(list), deadline)),
                    Reply::Scored(list) => {
                        return Some((StoredValue::SortedSet(list.into_iter().collect()), deadline));
                    }
                    other => panic!("a look was answered by {other:?}"),
                }
            }
            panic!("a key of no known type")
        })
    }

    fn exists_between<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, (i64, bool, i64)> {
        let key = key.clone();
        Box::pin(async move {
            let body = move |tx: &mut Tx<'_, World>| {
                let now = tx.now();
                Ok::<_, Error>((now, tx.raw_read(&key, Read::Exists)? == Reply::Int(1), now))
            };
            self.scope.transact(body).await.expect("a plain transaction")
        })
    }

    fn now(&mut self) -> Pending<'_, i64> {
        Box::pin(async move { self.store.now().await.expect("the engine knows its time") })
    }

    fn listeners<'a>(&'a mut self, _: &'a Bytes) -> Pending<'a, Option<usize>> {
        Box::pin(async { None })
    }

    fn disturb(&mut self, _: &Bytes, _: Write) -> bool {
        false
    }
}
