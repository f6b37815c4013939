//! Records in a form that other services cannot read: a list that a Lua script stored as `{}` (cjson encodes
//! an empty table so), or the tenant as an earlier version stored it.
//!
//! Our own reads accept both forms, so without this repair the record of an idle monster would never be
//! rewritten.

use super::*;
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_schema::{Codec, Json};
use serde_json::Value;

/// Reads some monsters' records, with plain reads in one round trip. Returns the readable monsters, and the
/// ids of those whose record must be rewritten.
pub(super) async fn read_records(
    scope: &Scope<Tenant>,
    ids: &[MonsterId],
) -> Result<(Vec<(MonsterId, Monster)>, Vec<MonsterId>)> {
    let layout = scope.store().key_layout();
    let name = |id: &MonsterId| RawKey::from(MONSTER.key(id).to_text(layout, scope.partition()));
    let reads = ids.iter().map(|id| (name(id), Read::Get)).collect();
    let (mut found, mut outdated) = (Vec::new(), Vec::new());
    for (id, reply) in ids.iter().zip(scope.store().engine().read_many(reads).await?) {
        let Reply::Blob(text) = reply else { continue };
        let Ok(monster) = Json::<Monster>::decode(&text) else { continue };
        if is_outdated(&text, &monster) {
            outdated.push(*id);
        }
        found.push((*id, monster));
    }
    Ok((found, outdated))
}

/// Rewrites monsters in the present form.
pub(super) fn rewrite_transaction(tx: &mut Tx<'_, Tenant>, ids: &[MonsterId]) -> hot::Result<SweepReport> {
    let keys: Vec<_> = ids.iter().map(|id| MONSTER.key(id)).collect();
    let mut report = SweepReport::default();
    for (id, monster) in ids.iter().zip(tx.get_each(&keys)?) {
        if let Ok(Some(mut monster)) = monster {
            put(tx, *id, &mut monster)?;
            report.rewritten += 1;
        }
    }
    Ok(report)
}

/// Whether other services fail on a record. A scan of its bytes decides most cases; only the others are
/// parsed again.
fn is_outdated(text: &[u8], monster: &Monster) -> bool {
    const TENANT: &[u8] = br#""tenantId""#;
    if !text.windows(TENANT.len()).any(|word| word == TENANT) {
        return true;
    }
    let mut after_brace = text.split(|byte| *byte == b'{').skip(1);
    let has_empty_object = after_brace.any(|rest| rest.trim_ascii_start().first() == Some(&b'}'));
    has_empty_object && has_broken_list(text, monster)
}

fn has_broken_list(text: &[u8], monster: &Monster) -> bool {
    let mut written = Vec::new();
    let _ = Json::<Monster>::encode(monster, &mut written);
    match (serde_json::from_slice(text), serde_json::from_slice(&written)) {
        (Ok(stored), Ok(present)) => is_broken(&stored, &present),
        _ => false,
    }
}

/// Whether a value is an object where we write a list.
fn is_broken(stored: &Value, present: &Value) -> bool {
    match (stored, present) {
        (Value::Object(_), Value::Array(_)) => true,
        (Value::Object(stored), Value::Object(present)) => present
            .iter()
            .any(|(name, present)| stored.get(name).is_some_and(|stored| is_broken(stored, present))),
        (Value::Array(stored), Value::Array(present)) => {
            stored.iter().zip(present).any(|(stored, present)| is_broken(stored, present))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = concat!(
        r#"{"uniqueId":1,"tenantId":"550e8400-e29b-41d4-a716-446655440000","worldId":0,"channelId":1,"mapId":2,"#,
        r#""instance":"00000000-0000-0000-0000-000000000000","maxHp":9,"hp":9,"monsterId":3,"#,
    );

    fn outdated(record: &str) -> bool {
        is_outdated(record.as_bytes(), &Json::<Monster>::decode(record.as_bytes()).unwrap())
    }

    #[test]
    fn only_what_others_cannot_read_is_written_anew() {
        for (lists, expected) in [
            (r#""damageEntries":[],"statusEffects":[]}"#, false),
            (r#""damageEntries":{},"statusEffects":[]}"#, true),
            (r#""damageEntries":[],"statusEffects":{ }}"#, true),
            (r#""damageEntries":[],"statusEffects":[],"their":{"own":{}}}"#, false),
            (
                concat!(
                    r#""damageEntries":[],"statusEffects":[{"effectId":"00000000-0000-0000-0000-000000000000","#,
                    r#""statuses":{}}]}"#
                ),
                false,
            ),
        ] {
            assert_eq!(outdated(&format!("{HEAD}{lists}")), expected, "{lists}");
        }
        let nameless = HEAD.replace("tenantId", "renterId");
        assert!(outdated(&format!("{nameless}\"damageEntries\":[]}}")), "it does not say its tenant");
    }
}
