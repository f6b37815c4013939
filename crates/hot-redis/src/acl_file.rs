//! Lines of a Redis ACL file: what a user needs, for all families of a schema or for one service.
//!
//! A line begins with `user NAME on >PASSWORD`; without the word `user` it is the arguments of `ACL SETUSER`.

use emberkeep_schema::{Access, Coverage, Declaration, KeyLayout, KindName, Schema, Service, Topology};

/// Commands of connecting, reading, writing, transactions and subscriptions.
const COMMANDS: [&str; 5] = [
    "auth hello select ping info role config|get time",
    "get mget exists type pexpiretime hget hgetall hlen hscan scard smembers sismember sscan zcard zscore zrank \
     zrevrank zcount zlexcount zrange zrangebylex zrevrangebylex llen lrange scan",
    "set del incrby hset hincrby hdel sadd srem zadd zincrby zrem lpush rpush lpop rpop lset ltrim \
     pexpireat persist publish",
    "eval evalsha multi exec wait",
    "subscribe psubscribe unsubscribe punsubscribe",
];
/// Further commands on a Cluster.
const CLUSTER_COMMANDS: &str = "cluster|slots cluster|nodes asking";
/// The commands that run scripts.
const SCRIPT_COMMANDS: &str = "+eval +evalsha";
/// The engine's own keys, behind `ember:`: fairness leases, commit receipts, what replicas confirm.
const OWN_KEYS: [&str; 3] = ["turn:*", "r:*", "wait:*"];
/// A key of the engine that never exists. On a Cluster a user who may not write it is one who may declare keys to a
/// script that it may not write: each commit then checks every key.
const PROBE: &str = "probe";

/// The line of a user who may use every family of the schema.
pub fn user_of_all(user: &str, schema: &Schema, layout: &KeyLayout) -> String {
    let mut keys: Vec<String> =
        schema.families().iter().map(|family| format!("~{}", family.glob(layout))).collect();
    keys.push(format!("~{}*", own(layout)));
    keys.sort();
    keys.dedup();
    format!("user {user} on >PASSWORD &* {} {}\n", keys.join(" "), commands(layout))
}

/// The line of a user with the rights of a service, after lines that begin with `#` and say what Redis can not
/// refuse. An ACL file takes no such lines.
///
/// What the service owns or was granted it may write, what names it as a reader it may read. The user has the name of
/// the service.
pub fn user_of_service(service: &Service, schema: &Schema, layout: &KeyLayout) -> String {
    let access = schema.access(service);
    let mut lines = vec![format!("# {service}: what Redis lets it do although the service may not:")];
    lines.extend(access.iter().flat_map(|(family, access)| looser_than_declared(family, access)));
    lines.extend(keys_of_others(schema, &access));
    lines.push("it may write every key of the engine itself, and list the names of all keys (SCAN)".into());
    lines.push("it may publish on every channel and wake the followers of every log that it may read".into());
    let mut text = lines.join("\n# - ");
    text += &format!("\nuser {service} on >PASSWORD resetchannels {}\n", rights(&access, layout).join(" "));
    text
}

/// Key patterns, channels and commands of a service.
fn rights(access: &[(&'static Declaration, Access)], layout: &KeyLayout) -> Vec<String> {
    let (mut keys, mut channels, mut declared) = (Vec::new(), Vec::new(), Vec::new());
    for (family, access) in access {
        let glob = family.glob(layout);
        if matches!(family.kind, KindName::Channel | KindName::Log) {
            // The followers of a log are woken on a channel of its name.
            channels.push(format!("&{glob}"));
        }
        if family.kind == KindName::Channel {
            continue;
        }
        let right = if matches!(access, Access::Reader) { "%R" } else { "%RW" };
        keys.push(format!("{right}~{glob}"));
        declared.push(format!("%RW~{glob}"));
    }
    let probe = (layout.topology() == Topology::Single).then_some(PROBE);
    let own = OWN_KEYS.into_iter().chain(probe).map(|name| format!("%RW~{}{name}", own(layout)));
    let own: Vec<String> = own.collect();
    keys.extend(own.iter().cloned());
    declared.extend(own);
    for list in [&mut keys, &mut channels, &mut declared] {
        list.sort();
        list.dedup();
    }
    let mut rights = [channels, keys, vec![commands(layout)]].concat();
    if layout.topology() == Topology::Cluster {
        // There every key that a transaction uses is declared to a script, and a script may declare only what it may
        // write. The commands inside the script still need the rights above.
        rights.push(format!("({SCRIPT_COMMANDS} {})", declared.join(" ")));
    }
    rights
}

/// What a user may do with a family although the grants of the service are narrower.
fn looser_than_declared(family: &Declaration, access: &Access) -> Option<String> {
    let Access::Granted(operations) = access else { return None };
    let operations = operations.iter().map(|(name, coverage)| match coverage {
        Coverage::Keys => format!("\"{name}\""),
        Coverage::Fields(fields) => format!("\"{name}\" (only the fields {})", fields.join(", ")),
    });
    let (family, owner) = (family.name, family.owner);
    let operations = operations.collect::<Vec<_>>().join(", ");
    Some(format!("{family} of {owner}, granted for {operations}: whole keys at any time"))
}

/// The families whose keys match a pattern that was given for another one.
fn keys_of_others(schema: &Schema, access: &[(&'static Declaration, Access)]) -> Vec<String> {
    let plain = KeyLayout::single();
    let writes = access.iter().filter(|(_, access)| !matches!(access, Access::Reader));
    let writes: Vec<_> = writes.map(|(family, _)| *family).collect();
    let is_stored = |family: &Declaration| family.kind != KindName::Channel;
    let others = schema
        .families()
        .iter()
        .filter(|family| is_stored(family) && !writes.iter().any(|written| std::ptr::eq(*written, **family)));
    let matched = others.filter_map(|other| {
        let key = other.glob(&plain).replace('*', "0");
        let by = writes.iter().find(|family| is_stored(family) && matches(&family.glob(&plain), &key))?;
        let (other, owner, by, glob) = (other.name, other.owner, by.name, by.glob(&plain));
        Some(format!("{other} of {owner}: write its keys, which match {glob} of {by}"))
    });
    matched.collect()
}

/// Whether a text matches a pattern whose only special character is `*`.
fn matches(glob: &str, text: &str) -> bool {
    let Some((start, rest)) = glob.split_once('*') else { return glob == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    true
}

/// The beginning of the engine's own keys, as a pattern.
fn own(layout: &KeyLayout) -> String {
    let tag = if layout.topology() == Topology::Cluster { "{*}" } else { "" };
    format!("{}{tag}ember:", layout.prefix_glob())
}

fn commands(layout: &KeyLayout) -> String {
    let on_cluster = (layout.topology() == Topology::Cluster).then_some(CLUSTER_COMMANDS);
    let names = COMMANDS.into_iter().chain(on_cluster).flat_map(str::split_whitespace);
    names.map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Channel, Hash, Id, Log, Name, Newest, Set, Text, Utf8};
    use emberkeep_schema::{family, partition, schema, service};

    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }
    macro_rules! families {
        ($($name:ident = $pattern:literal ($($part:ident: $type:ty),*) $kind:ty, of $owner:literal for $readers:tt;)*) => { $(
            family! {
                pub(crate) $name = $pattern {
                    kind: $kind, partition: Galaxy, parts: ($($part: $type),*), ttl: persistent, owner: $owner,
                    readers: $readers
                }
            }
        )* };
    }
    families! {
        SHIP = "ship:{id}" (id: u32) Hash<Utf8, Utf8>, of "physics" for ["players"];
        FLEET = "player:{id}:ships" (id: u32) Set<Id<u32>>, of "players" for [];
        RULE = "rule:{ship}:{id}" (ship: u32, id: u32) Text<Utf8>, of "players" for [];
        ALL_RULES = "rule:{ship}:all" (ship: u32) Set<Id<u32>>, of "physics" for [];
        NEWS = "news:{topic}" (topic: Name) Channel<Utf8>, of "physics" for ["players"];
        DEEDS = "log:deeds" () Log<Utf8, Newest<10>>, of "physics" for [];
    }
    service! { pub(crate) PHYSICS = "physics" { SPAWN = "spawn": [FLEET] } }
    service! { pub(crate) PLAYERS = "players" { RENAME = "rename": [SHIP["name", "label"]] } }
    service! { pub(crate) VIEWER = "viewer" {} }

    fn galaxy() -> Schema {
        let families = schema![SHIP, FLEET, RULE, ALL_RULES, NEWS, DEEDS];
        families.and_then(|schema| schema.with_services(&[&PHYSICS, &PLAYERS, &VIEWER])).expect("a schema")
    }

    fn line_of(service: &'static Service, layout: &KeyLayout) -> String {
        let lines = user_of_service(service, &galaxy(), layout);
        lines.lines().find(|line| !line.starts_with('#')).expect("a line").to_owned()
    }

    #[test]
    fn a_service_may_write_what_is_its_own_or_granted() {
        let own = "%RW~ember:probe %RW~ember:r:* %RW~ember:turn:* %RW~ember:wait:* +auth";
        let single = KeyLayout::single();
        let physics = line_of(&PHYSICS, &single);
        let expected = "user physics on >PASSWORD resetchannels &log:deeds &news:* %RW~ember:probe %RW~ember:r:* \
                        %RW~ember:turn:* %RW~ember:wait:* %RW~log:deeds %RW~player:*:ships %RW~rule:*:all %RW~ship:* +auth";
        assert!(physics.starts_with(expected), "{physics}");
        let viewer = line_of(&VIEWER, &single);
        assert!(viewer.starts_with(&format!("user viewer on >PASSWORD resetchannels {own}")), "{viewer}");
        let players = line_of(&PLAYERS, &single);
        assert!(players.contains(" %RW~ship:* ") && players.contains(" &news:* "), "{players}");
    }

    #[test]
    fn on_a_cluster_what_is_read_may_be_declared_to_scripts() {
        let line = line_of(&PLAYERS, &KeyLayout::cluster());
        assert!(line.contains(" %RW~{galaxy}ship:* ") && line.contains("+cluster|slots"), "{line}");
        assert!(
            line.contains(" (+eval +evalsha %RW~{*}ember:r:* ") && line.ends_with(" %RW~{galaxy}ship:*)"),
            "{line}"
        );
        assert!(!line.contains("probe"), "commits of this user must check every key: {line}");
        assert!(!line_of(&PLAYERS, &KeyLayout::single()).contains('('));
    }

    #[test]
    fn it_is_said_what_redis_cannot_refuse() {
        let lines = user_of_service(&PLAYERS, &galaxy(), &KeyLayout::single());
        let granted = "# - SHIP of physics, granted for \"rename\" (only the fields name, label): whole keys at any time";
        assert!(lines.contains(granted), "{lines}");
        assert!(
            lines.contains("# - ALL_RULES of physics: write its keys, which match rule:*:* of RULE"),
            "{lines}"
        );
        assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count(), 1, "{lines}");
    }

    #[test]
    fn stars_match_any_text() {
        for (glob, text) in
            [("a:*", "a:0"), ("a:*", "a:0:b"), ("*:b", "a:b"), ("a:*:c:*", "a:0:c:0"), ("a", "a")]
        {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("a:*", "b:0"), ("a:*:c", "a:0:d"), ("a:*:c:*", "a:0"), ("a", "ab")] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
    }
}
