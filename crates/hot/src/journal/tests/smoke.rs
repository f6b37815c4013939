//! On the real disk.

use super::super::*;
use crate::command::Expiry;
use bytes::Bytes;

#[test]
fn what_was_appended_is_loaded() {
    let dir = std::env::temp_dir().join(format!("ember-journal-{}", std::process::id()));
    let mut options = JournalOptions::new(&dir);
    options.durability = Durability::Always;
    let writes: Vec<_> = (0..100)
        .map(|n| (Bytes::from(format!("k{n}")), Write::Set(Bytes::from(format!("v{n}")), Expiry::Never)))
        .collect();
    {
        let (journal, _) = Journal::open(options.clone(), &mut |_, _| Ok(())).unwrap();
        for write in writes.chunks(3) {
            let sequence = journal.append(write, vec![]).unwrap();
            futures_util::FutureExt::now_or_never(journal.settle(sequence));
        }
        journal.close().unwrap();
    }
    let mut loaded = Vec::new();
    let (_journal, recovery) = Journal::open(options, &mut |key, write| {
        loaded.push((key, write));
        Ok(())
    })
    .unwrap();
    assert_eq!(loaded, writes);
    assert_eq!((recovery.transactions, recovery.commands, recovery.cut_bytes), (34, 100, 0));
    std::fs::remove_dir_all(dir).unwrap();
}
