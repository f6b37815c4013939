//! The schema in the forms that people and tools read: rows, Markdown, JSON, glob patterns.

use crate::{
    declaration::Declaration,
    kind::KindName,
    layout::{KeyLayout, Topology},
    pattern::Piece,
    schema::Schema,
    service::Coverage,
};
use serde::Serialize;
use std::fmt::Write as _;

/// One family in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of the family.
    pub family: String,
    /// The key as laid out; `<name>` stands for a value, all else is literal.
    pub key: String,
    /// What `TYPE` answers; `channel` for a channel, `log` for a log, which is a list.
    #[serde(rename = "type")]
    pub redis_type: String,
    /// The type of the value in words, as the declaration has it; of a hash, `field → value`.
    pub value: String,
    /// What a write does to the deadline.
    pub ttl: String,
    /// The service that writes it.
    pub owner: String,
    /// The services that write it in some operations: `gateway (rename: name), players (delete player)`.
    pub also_written_by: String,
    /// The services that read it.
    pub readers: String,
    /// What all keys of a transaction share. "all share it" = on one server the key is the same in all partitions.
    pub partition: String,
    /// The family of the records that it points at, or nothing.
    pub index_of: String,
    /// What it is for.
    pub description: String,
}

impl Row {
    /// The headings of a table of rows, in the order of [`cells`](Row::cells).
    pub const HEADINGS: [&'static str; 11] = [
        "Family",
        "Key",
        "Type",
        "Value",
        "TTL",
        "Owner",
        "May also write",
        "Readers",
        "Partition",
        "Index of",
        "Description",
    ];

    /// The texts, in the order of [`HEADINGS`](Row::HEADINGS).
    pub fn cells(&self) -> [&str; 11] {
        [
            &self.family,
            &self.key,
            &self.redis_type,
            &self.value,
            &self.ttl,
            &self.owner,
            &self.also_written_by,
            &self.readers,
            &self.partition,
            &self.index_of,
            &self.description,
        ]
    }

    fn of(family: &Declaration, also_written_by: String, layout: &KeyLayout) -> Row {
        Row {
            family: family.name.to_owned(),
            key: family.laid_out(layout),
            redis_type: family.kind.to_string(),
            value: value_in_words(family),
            ttl: match family.kind {
                KindName::Channel => "not stored".to_owned(),
                _ => family.ttl.in_words(),
            },
            owner: family.owner.to_owned(),
            also_written_by,
            readers: family.readers.join(", "),
            partition: match family.partition_fixed {
                Some(text) => format!("{}: always {text}", family.partition),
                None if family.carries_partition() || layout.topology() == Topology::Cluster => {
                    format!("{}: {}", family.partition, tag(family))
                }
                None => format!("{}: {}, all share it", family.partition, tag(family)),
            },
            index_of: family.index_of.unwrap_or_default().to_owned(),
            description: family.doc.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}

impl Declaration {
    /// The key as `layout` lays it out, `<name>` for each value; every other character is literal.
    /// On a Cluster: `{<tenantId>}atlas:monster:<tenantId>:<uniqueId>`.
    pub fn laid_out(&self, layout: &KeyLayout) -> String {
        let value = |name: &str| format!("<{name}>");
        self.written(layout.prefix().to_owned(), layout.topology(), &tag(self), value)
    }

    /// The glob pattern that matches all keys of the family, for `SCAN` and Redis ACLs. It may match
    /// more than the family's keys, because `*` also matches colons.
    pub fn glob(&self, layout: &KeyLayout) -> String {
        let tag = self.partition_fixed.unwrap_or("*");
        self.written(layout.prefix_glob(), layout.topology(), tag, |_| "*".to_owned())
    }

    /// `start`, tag and pattern, with `value` for each `{name}`.
    fn written(
        &self,
        start: String,
        topology: Topology,
        tag: &str,
        value: impl Fn(&str) -> String,
    ) -> String {
        let mut out = start;
        if topology == Topology::Cluster {
            out.push('{');
            out.push_str(tag);
            out.push('}');
        }
        for piece in self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Partition => out.push_str(&value(self.partition_part.unwrap_or_default())),
                Piece::Part(index) => out.push_str(&value(self.parts[usize::from(*index)].name)),
            }
        }
        out
    }
}

/// The partition's text between the braces of the tag.
fn tag(family: &Declaration) -> String {
    match family.partition_fixed {
        Some(text) => text.to_owned(),
        None => format!("<{}>", family.partition_part.unwrap_or(family.partition)),
    }
}

/// What a family holds; a hash as field → value, a log with its bound.
fn value_in_words(family: &Declaration) -> String {
    match (family.kind, family.keep) {
        (KindName::Hash, _) => family.value.replacen(", ", " → ", 1),
        (_, Some(keep)) => {
            // The bound may be written by the name of a constant; readers want the number.
            let codec = family.value.rsplit_once(", ").map_or(family.value, |(codec, _)| codec);
            format!("{codec}, {}", keep.in_words())
        }
        _ => family.value.to_owned(),
    }
}

impl KeyLayout {
    /// The glob pattern of the prefix: the characters that have a meaning in a glob stand for themselves.
    pub fn prefix_glob(&self) -> String {
        self.prefix().chars().fold(String::new(), |mut out, c| {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\') {
                out.push('\\');
            }
            out.push(c);
            out
        })
    }
}

/// Says which characters of a key are literal.
fn legend(topology: Topology) -> &'static str {
    match topology {
        Topology::Single => {
            "`<name>` stands for a value, without the angle brackets; every other character is written as shown."
        }
        Topology::Cluster => {
            "`<name>` stands for a value, without the angle brackets; every other character is written as shown, \
             the braces `{` and `}` included: they are the Cluster hash tag, and every key of one partition has the same one."
        }
    }
}

impl Schema {
    /// One row for each family, keys laid out by `layout`.
    pub fn to_table(&self, layout: &KeyLayout) -> Vec<Row> {
        let row = |(index, family): (usize, &&'static Declaration)| {
            Row::of(family, self.other_writers_in_words(index), layout)
        };
        self.families().iter().enumerate().map(row).collect()
    }

    /// The services that may write a family in some operations.
    fn other_writers_in_words(&self, index: usize) -> String {
        let writers = self.other_writers(index).map(|(service, operations)| {
            let operations = operations.iter().map(|(name, coverage)| match coverage {
                Coverage::Keys => (*name).to_owned(),
                Coverage::Fields(fields) => format!("{name}: {}", fields.join(", ")),
            });
            format!("{service} ({})", operations.collect::<Vec<_>>().join("; "))
        });
        writers.collect::<Vec<_>>().join(", ")
    }

    /// The rows as a Markdown table below a line that says what is literal.
    pub fn to_markdown(&self, layout: &KeyLayout) -> String {
        let mut out = format!("{}\n\n", legend(layout.topology()));
        push_line(&mut out, Row::HEADINGS.iter().copied());
        push_line(&mut out, Row::HEADINGS.iter().map(|_| "---"));
        for row in self.to_table(layout) {
            let cells = row.cells();
            let shown = cells.iter().enumerate().map(|(index, cell)| match index {
                _ if cell.is_empty() => String::new(),
                // Family, key, value and the index's record are code: Markdown must not read them.
                0 | 1 | 3 | 9 => format!("`{}`", cell.replace('|', "\\|")),
                _ => cell.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*"),
            });
            push_line(&mut out, shown);
        }
        out
    }

    /// The rows as JSON: `{"layout", "prefix", "legend", "families": [row, …]}`.
    pub fn to_json(&self, layout: &KeyLayout) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            layout: &'a str,
            prefix: &'a str,
            legend: &'a str,
            families: Vec<Row>,
        }
        let topology = match layout.topology() {
            Topology::Single => "single",
            Topology::Cluster => "cluster",
        };
        let document = Document {
            layout: topology,
            prefix: layout.prefix(),
            legend: legend(layout.topology()),
            families: self.to_table(layout),
        };
        serde_json::to_string_pretty(&document).expect("texts and lists of texts have a JSON form")
    }
}

/// Appends one line of a Markdown table.
fn push_line<T: AsRef<str>>(out: &mut String, cells: impl Iterator<Item = T>) {
    out.push('|');
    for cell in cells {
        write!(out, " {} |", cell.as_ref()).expect("a String takes any text");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, Hash, Id, Json, Raw, Set, Text, Utf8, family, partition, schema, service};
    use uuid::Uuid;

    partition! {
        /// One customer's worlds.
        pub(crate) struct Tenant(Uuid) as "tenantId";
    }
    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }
    family! {
        /// Monster instance
        /// data | all of it.
        pub(crate) MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
            kind: Text<Json<String>>, partition: Tenant, parts: (uniqueId: u32), ttl: persistent,
            owner: "monsters", readers: ["*"]
        }
    }
    family! {
        /// All monsters.
        pub(crate) ALL = "monsters:all" {
            kind: Set<Id<u32>>, partition: shared Tenant, parts: (), ttl: fixed(60_000), owner: "monsters", index_of: MONSTER
        }
    }
    family! {
        /// A ship.
        pub(crate) SHIP = "ship:{id}" {
            kind: Hash<Utf8, Raw>, partition: Galaxy, parts: (id: Uuid), ttl: given, owner: "tick"
        }
    }
    family! {
        /// News.
        pub(crate) NEWS = "news:{id}" {
            kind: Channel<Raw>, partition: Galaxy, parts: (id: u8), ttl: persistent, owner: "tick"
        }
    }

    fn all() -> Schema {
        schema![MONSTER, ALL, SHIP, NEWS].unwrap()
    }

    #[test]
    fn a_row_says_everything_that_was_declared() {
        let rows = all().to_table(&KeyLayout::cluster());
        let cells = [
            "MONSTER",
            "{<tenantId>}atlas:monster:<tenantId>:<uniqueId>",
            "string",
            "Json<String>",
            "persistent",
            "monsters",
            "",
            "*",
            "Tenant: <tenantId>",
            "",
            "Monster instance data | all of it.",
        ];
        assert_eq!(rows[0].cells(), cells);
        let keys: Vec<_> = rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys[1..], ["{<tenantId>}monsters:all", "{galaxy}ship:<id>", "{galaxy}news:<id>"]);
        assert_eq!(
            (rows[1].index_of.as_str(), rows[1].ttl.as_str()),
            ("MONSTER", "1 min from the first write")
        );
        assert_eq!(rows[2].value, "Utf8 → Raw");
        assert_eq!(rows[2].partition, "Galaxy: always galaxy");
        assert_eq!((rows[3].redis_type.as_str(), rows[3].ttl.as_str()), ("channel", "not stored"));
    }

    #[test]
    fn markdown_has_one_line_for_each_family_and_tells_what_is_literal() {
        let single = all().to_markdown(&KeyLayout::new("p:", Topology::Single).unwrap());
        assert_eq!(single.lines().count(), 2 + 2 + 4);
        assert!(single.contains("| `MONSTER` | `p:atlas:monster:<tenantId>:<uniqueId>` | string |"));
        assert!(single.contains("| Tenant: \\<tenantId> |  | Monster instance data \\| all of it. |"));
        assert!(single.contains("| Tenant: \\<tenantId>, all share it | `MONSTER` | All monsters. |"));
        assert!(!single.contains('{'));
        let cluster = all().to_markdown(&KeyLayout::cluster());
        assert!(cluster.starts_with("`<name>` stands for a value"));
        assert!(cluster.contains("braces `{` and `}` included"));
    }

    #[test]
    fn services_that_may_also_write_are_named_with_their_operations() {
        service! { pub(crate) MONSTERS = "monsters" { SWEEP = "sweep": [NEWS] } }
        service! {
            pub(crate) TICK = "tick" { RENAME = "rename": [SHIP], CALL = "call": [MONSTER], RESET = "reset": all }
        }
        service! { pub(crate) GATEWAY = "gateway" { NAME = "rename": [SHIP["name", "label"]] } }
        let schema = all().with_services(&[&MONSTERS, &TICK, &GATEWAY]).unwrap();
        let writers: Vec<_> =
            schema.to_table(&KeyLayout::single()).into_iter().map(|row| row.also_written_by).collect();
        assert_eq!(
            writers,
            ["tick (call; reset)", "tick (reset)", "gateway (rename: name, label)", "monsters (sweep)"]
        );
    }

    #[test]
    fn json_names_the_layout() {
        let json: serde_json::Value = serde_json::from_str(&all().to_json(&KeyLayout::cluster())).unwrap();
        assert_eq!(json["layout"], "cluster");
        assert_eq!(json["families"][2]["key"], "{galaxy}ship:<id>");
        assert_eq!(json["families"][2]["type"], "hash");
    }

    #[test]
    fn globs_match_literally_but_for_values() {
        let layout = KeyLayout::new("p*[", Topology::Cluster).unwrap();
        assert_eq!(all().families()[0].glob(&layout), "p\\*\\[{*}atlas:monster:*:*");
        assert_eq!(all().families()[2].glob(&KeyLayout::cluster()), "{galaxy}ship:*");
        assert_eq!(all().families()[1].glob(&KeyLayout::single()), "monsters:all");
    }
}
