//! Values of settings, read from texts: the same for flags, variables and files. Each error says what was expected.

use crate::size::Size;
use emberkeep::games::darkages::Shards;
use emberkeep::games::monsters::PoisonRule;
use emberkeep::games::reactors::HitRules;
use std::net::SocketAddr;

/// An address to listen on. `localhost` is 127.0.0.1; other names may stand for several addresses and are refused.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port: 127.0.0.1:7777 for this machine, 0.0.0.0:7777 for every network (needs tokens)";
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| expected.to_owned())
}

pub(super) fn size(text: &str) -> Result<Size, String> {
    text.parse()
}

/// A number per time; 0 is without a limit.
pub(super) fn rate(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected a number of rooms, 0 for any number".to_owned())
}

pub(super) fn connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number of connections from 1 on".to_owned())
}

pub(super) fn poison_rule(text: &str) -> Result<PoisonRule, String> {
    match text {
        "value" => Ok(PoisonRule::Value),
        "share-of-max-hp" => Ok(PoisonRule::ShareOfMaxHp),
        _ => Err("expected value or share-of-max-hp".to_owned()),
    }
}

pub(super) fn hit_rules(text: &str) -> Result<HitRules, String> {
    let mut rules = HitRules::default();
    for name in list(text).iter().filter(|_| text.trim() != "none") {
        match name.as_str() {
            "item-reactors-stay" => rules.item_reactors_stay = true,
            "last-state-ends" => rules.last_state_ends = true,
            _ => {
                let expected = "expected none, item-reactors-stay, last-state-ends, or both with a comma";
                return Err(expected.to_owned());
            }
        }
    }
    Ok(rules)
}

pub(super) fn shards(text: &str) -> Result<Shards, String> {
    text.parse().map_err(|error: emberkeep::games::darkages::Error| error.to_string())
}

/// The items between commas, without spaces and empty ones.
pub(super) fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
