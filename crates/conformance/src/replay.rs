//! A story: writes of one key, and what reads answer afterwards. Told in every split of the writes into those
//! that were committed before and those that the reading body made itself, and then read from outside: as plain
//! reads, and by an external client. So one table checks the engine, its own-writes overlay and the wire at once.

use crate::external::Held;
use crate::subject::Subject;
use bytes::Bytes;
use emberkeep_hot::Error;
use emberkeep_hot::command::{Read, Reply, Write};

/// Tells a story on fresh keys. Every read must answer as given, however the writes are split.
pub async fn tell(subject: &Subject, writes: &[Write], answers: &[(Read, Reply)]) {
    for split in 0..=writes.len() {
        let key = subject.fresh();
        for write in &writes[..split] {
            subject.put(&key, write.clone()).await;
        }
        let told = inside(subject, &key, &writes[split..], answers).await;
        for ((read, expected), found) in answers.iter().zip(told) {
            let place = format!("{read:?} after {writes:?}, the first {split} committed before");
            assert_eq!(found.as_ref(), Ok(expected), "{place}");
            let plain = subject.read(&key, read.clone()).await;
            assert_eq!(plain.checked(&key, read).as_ref(), Ok(expected), "plain {place}");
        }
    }
}

/// Makes the last writes and all reads in one body.
async fn inside(
    subject: &Subject,
    key: &Bytes,
    writes: &[Write],
    answers: &[(Read, Reply)],
) -> Vec<Result<Reply, Error>> {
    let (key, writes) = (key.clone(), writes.to_vec());
    let reads: Vec<Read> = answers.iter().map(|(read, _)| read.clone()).collect();
    let shown = format!("{writes:?}");
    let told = subject.transaction(move |tx| {
        writes.iter().try_for_each(|write| tx.raw_write(key.clone(), write.clone()))?;
        // A read that is not known yet must end the run; refusals are answers.
        reads
            .iter()
            .map(|read| match tx.raw_read(&key, read.clone()) {
                Err(Error::Suspended) => Err(Error::Suspended),
                answer => Ok(answer),
            })
            .collect::<Result<Vec<_>, Error>>()
    });
    told.await.unwrap_or_else(|e| panic!("{shown}: {e}"))
}

/// Tells a story after which the key is gone, whichever way it is looked at.
pub async fn tell_gone(subject: &Subject, writes: &[Write]) {
    let gone = [(Read::Exists, Reply::Int(0)), (Read::ExpireTime, Reply::Int(-2))];
    tell(subject, writes, &gone).await;
    let key = subject.fresh();
    subject.write(writes.iter().map(|write| (key.clone(), write.clone())).collect()).await.expect("a story");
    assert_eq!(subject.external().look(&key).await, None, "{writes:?}");
}

/// Tells a story and compares what an external client sees at its end.
pub async fn tell_seen(subject: &Subject, writes: &[Write], seen: Held, deadline: Option<i64>) {
    let key = subject.fresh();
    subject.write(writes.iter().map(|write| (key.clone(), write.clone())).collect()).await.expect("a story");
    assert_eq!(subject.external().look(&key).await, Some((seen, deadline)), "{writes:?}");
}
