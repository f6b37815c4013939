//! Sets: SISMEMBER, SMEMBERS, SCARD, SADD, SREM.

use crate::builders::*;
use crate::context::Context;
use crate::external::StoredValue;
use crate::families::{CREW, World};
use crate::replay::{replay, replay_to_absent, replay_to_value};
use emberkeep_hot::command::{Read, Write};
use emberkeep_hot::{Result, Tx};

/// Members are added once, removed, added again.
pub async fn members(context: &Context) {
    let writes =
        [sadd(&["b", "a", "b"]), srem(&["a", "never"]), sadd(&["c", "b"]), sadd(&["a"]), srem(&["c"])];
    let answers = [
        (Read::SMembers, list(&["a", "b"])),
        (Read::SCard, int(2)),
        (Read::SIsMember(b("a")), int(1)),
        (Read::SIsMember(b("c")), int(0)),
        (Read::SIsMember(b("never")), int(0)),
        (Read::Exists, int(1)),
    ];
    replay(context, &writes, &answers).await;
    replay_to_value(context, &writes, StoredValue::Set([b("a"), b("b")].into()), None).await;
}

/// Members that look like numbers stay the texts they are, whatever encoding the server picks.
pub async fn members_that_look_like_numbers(context: &Context) {
    let writes = [sadd(&["1", "01", "-1", "10"]), srem(&["+1"]), sadd(&["1.0", ""])];
    let answers = [(Read::SMembers, list(&["", "-1", "01", "1", "1.0", "10"])), (Read::SCard, int(6))];
    replay(context, &writes, &answers).await;
    let ints = [sadd(&["3", "1", "2"]), srem(&["2"])];
    replay(context, &ints, &[(Read::SMembers, list(&["1", "3"])), (Read::SIsMember(b("01")), int(0))]).await;
}

/// Every read of a set that does not exist is empty.
pub async fn absent_set(context: &Context) {
    let answers = [
        (Read::SMembers, list(&[])),
        (Read::SCard, int(0)),
        (Read::SIsMember(b("a")), int(0)),
        (Read::Exists, int(0)),
    ];
    replay(context, &[], &answers).await;
    replay(context, &[srem(&["a"])], &answers).await;
    replay(context, &[sadd(&["a"]), Write::Del], &answers).await;
}

/// The last member takes the set with it, and its deadline.
pub async fn an_empty_set_vanishes(context: &Context) {
    let at = context.far(0).await;
    replay_to_absent(context, &[sadd(&["a", "b"]), Write::ExpireAt(at), srem(&["a"]), srem(&["b"])]).await;
    let writes = [sadd(&["a"]), Write::ExpireAt(at), srem(&["a"]), sadd(&["a"])];
    replay(context, &writes, &[(Read::ExpireTime, int(-1)), (Read::SCard, int(1))]).await;
}

/// The typed face of sets.
pub async fn typed_set(context: &Context) {
    let key = CREW.key(1);
    let body = move |tx: &mut Tx<'_, World>| -> Result<_> {
        for member in [10, 9, 100, 9] {
            tx.sadd(&key, &member)?;
        }
        tx.srem(&key, &100)?;
        Ok((tx.smembers(&key)?, tx.scard(&key)?, tx.sismember(&key, &9)?, tx.sismember(&key, &100)?))
    };
    let found = context.transaction(body).await.expect("a plain transaction");
    assert_eq!(found, (vec![10, 9], 2, true, false), "the order is that of the members' bytes");
}
