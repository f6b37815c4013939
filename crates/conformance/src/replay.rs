//! Replays a list of writes of one key and compares the reads after it, once for every split of the list:
//! the first writes are committed before, the others belong to the reading body. Then plain reads and an
//! external client read the same. So one table checks the engine, read-your-writes and the protocol.

use crate::context::Context;
use crate::external::StoredValue;
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::command::{Read, Reply, Write};

/// Replays writes on new keys. Every read must answer as given, for every split of the writes.
pub async fn replay(context: &Context, writes: &[Write], answers: &[(Read, Reply)]) {
    for split in 0..=writes.len() {
        let key = context.fresh();
        for write in &writes[..split] {
            context.put(&key, write.clone()).await;
        }
        let result = inside(context, &key, &writes[split..], answers).await;
        for ((read, expected), found) in answers.iter().zip(result) {
            let place = format!("{read:?} after {writes:?}, the first {split} committed before");
            assert_eq!(found.as_ref(), Ok(expected), "{place}");
            let plain = context.read(&key, read.clone()).await;
            assert_eq!(plain.checked(&key, read).as_ref(), Ok(expected), "plain {place}");
        }
    }
}

/// Makes the last writes and all reads in one body.
async fn inside(
    context: &Context,
    key: &Bytes,
    writes: &[Write],
    answers: &[(Read, Reply)],
) -> Vec<Result<Reply, Error>> {
    let (key, writes) = (key.clone(), writes.to_vec());
    let reads: Vec<Read> = answers.iter().map(|(read, _)| read.clone()).collect();
    let shown = format!("{writes:?}");
    let result = context.transaction(move |tx| {
        writes.iter().try_for_each(|write| tx.raw_write(key.clone(), write.clone()))?;
        // A read that is not available yet must end the run; refusals are answers.
        reads
            .iter()
            .map(|read| match tx.raw_read(&key, read.clone()) {
                Err(Error::Suspended) => Err(Error::Suspended),
                answer => Ok(answer),
            })
            .collect::<Result<Vec<_>, Error>>()
    });
    result.await.unwrap_or_else(|e| panic!("{shown}: {e}"))
}

/// Replays writes after which the key must be absent for every reader.
pub async fn replay_to_absent(context: &Context, writes: &[Write]) {
    let gone = [(Read::Exists, Reply::Int(0)), (Read::ExpireTime, Reply::Int(-2))];
    replay(context, writes, &gone).await;
    let key = context.fresh();
    context
        .write(writes.iter().map(|write| (key.clone(), write.clone())).collect())
        .await
        .expect("the writes are valid");
    assert_eq!(context.external().inspect(&key).await, None, "{writes:?}");
}

/// Replays writes and compares what an external client reads after them.
pub async fn replay_to_value(
    context: &Context,
    writes: &[Write],
    observed: StoredValue,
    deadline: Option<i64>,
) {
    let key = context.fresh();
    context
        .write(writes.iter().map(|write| (key.clone(), write.clone())).collect())
        .await
        .expect("the writes are valid");
    assert_eq!(context.external().inspect(&key).await, Some((observed, deadline)), "{writes:?}");
}
