//! Every key of the store that may be the game's, found by one walk over the keyspace: also what should not be there.

use crate::plan::Plan;
use emberkeep::games;
use emberkeep::games::world::Tenant;
use emberkeep::hot::command::RawKey;
use emberkeep::hot::{Result, Store, show};
use emberkeep::schema::{Declaration, Family, Key, KeyIdentity, KeyLayout, Schema};
use std::collections::{BTreeMap, BTreeSet};

/// Keys that one page looks at.
const PAGE: usize = 500;

/// The keys, by what they are.
#[derive(Default)]
pub(crate) struct KeyScan {
    /// Keys of declared families, with the family. Those that do not say whose they are are among them.
    pub(super) declared: BTreeMap<RawKey, &'static Declaration>,
    /// The engine's own keys that name the game's tenants.
    pub(super) engine: BTreeSet<RawKey>,
    /// Keys that name the game's tenants and belong to no declared family.
    pub(super) undeclared: BTreeSet<String>,
    /// Other tenants' keys of the same families.
    pub(super) strangers: usize,
}

/// What a key is to the game.
enum Standing {
    Declared(&'static Declaration),
    Engine,
    Undeclared,
    Stranger,
    /// Not related to the game.
    External,
}

impl KeyScan {
    pub(crate) async fn read(store: &Store, plan: &Plan) -> Result<KeyScan> {
        let (schema, tenants) = (schema(), plan.tenants.iter().map(ToString::to_string));
        let tenants: Vec<String> = tenants.collect();
        let pattern = pattern(store.key_layout());
        let (mut scan, mut from) = (KeyScan::default(), None);
        loop {
            let page = store.engine().scan(from, &pattern, PAGE).await?;
            for raw in page.keys {
                scan.sort_in(raw, &schema, store.key_layout(), &tenants);
            }
            from = page.next;
            if from.is_none() {
                return Ok(scan);
            }
        }
    }

    fn sort_in(&mut self, raw: RawKey, schema: &Schema, layout: &KeyLayout, tenants: &[String]) {
        match standing(&raw, schema, layout, tenants) {
            Standing::Declared(family) => drop(self.declared.insert(raw, family)),
            Standing::Engine => drop(self.engine.insert(raw)),
            Standing::Undeclared => drop(self.undeclared.insert(show(&raw))),
            Standing::Stranger => self.strangers += 1,
            Standing::External => {}
        }
    }

    /// The keys of a family, with the number of their tenant; `None` where the key does not say whose it is.
    pub(super) fn keys<F>(&self, layout: &KeyLayout, plan: &Plan) -> Vec<(Option<u16>, Key<F>)>
    where
        F: Family<Partition = Tenant>,
    {
        let of_family = self.declared.iter().filter(|(_, family)| family.name == F::DECLARATION.name);
        let parsed = of_family.filter_map(|(raw, _)| F::parse(layout, raw));
        parsed.map(|(tenant, key)| (tenant.and_then(|tenant| plan.number_of(tenant)), key)).collect()
    }
}

/// The families of games that have tenants. The city is checked by what history has of it.
fn schema() -> Schema {
    let games = [games::monsters::schema(), games::party::schema(), games::reactors::schema()];
    Schema::join(games).expect("no key belongs to two games, a test of theirs holds")
}

fn standing(raw: &RawKey, schema: &Schema, layout: &KeyLayout, tenants: &[String]) -> Standing {
    let text = show(raw);
    let mentioned = tenants.iter().any(|tenant| text.contains(tenant.as_str()));
    match schema.identify(layout, raw) {
        Some(KeyIdentity::Family { declaration, partition, .. }) => match partition {
            Some(partition) if !tenants.contains(&partition) => Standing::Stranger,
            _ => Standing::Declared(declaration),
        },
        Some(KeyIdentity::Own { .. }) if mentioned => Standing::Engine,
        None if mentioned => Standing::Undeclared,
        _ => Standing::External,
    }
}

/// All keys behind the prefix.
fn pattern(layout: &KeyLayout) -> Vec<u8> {
    let mut pattern = Vec::new();
    for byte in layout.prefix().bytes() {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern.push(b'*');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_by_whose_they_are() {
        let (ours, theirs) = (uuid::Uuid::from_u128(1).to_string(), uuid::Uuid::from_u128(2).to_string());
        let (schema, layout) = (schema(), KeyLayout::single());
        let mut scan = KeyScan::default();
        for key in [
            format!("atlas:monster:{ours}:7"),
            "reactor:7".to_owned(),
            format!("ember:r:{ours}:1:2"),
            format!("atlas:monster:{ours}:seven"),
            format!("atlas:monster:{theirs}:7"),
            "session:7".to_owned(),
        ] {
            scan.sort_in(RawKey::from(key), &schema, &layout, std::slice::from_ref(&ours));
        }
        let declared: Vec<&str> = scan.declared.values().map(|family| family.name).collect();
        assert_eq!(declared, ["MONSTER", "REACTOR"]);
        assert_eq!((scan.engine.len(), scan.strangers), (1, 1));
        assert_eq!(scan.undeclared.first(), Some(&format!("atlas:monster:{ours}:seven")));
    }
}
