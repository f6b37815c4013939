//! The house rules that a machine can check: layers, headers, bans. Each message says what to do instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates a crate may depend on. The order is the architecture.
const LAYERS: &[(&str, &[&str])] = &[
    ("schema", &[]),
    ("hot", &["schema"]),
    ("hot-redis", &["hot", "schema"]),
    ("history", &["hot", "schema", "primitives"]),
    ("history-cql", &["history", "schema"]),
    ("primitives", &["hot", "schema"]),
    ("snapshot", &["hot", "schema"]),
    ("snapshot-postgres", &["snapshot", "hot"]),
    ("games", &["history", "hot", "schema", "primitives", "snapshot"]),
    ("server", &["games", "history", "hot", "schema"]),
    (
        "emberkeep",
        &[
            "games",
            "history",
            "history-cql",
            "hot",
            "hot-redis",
            "primitives",
            "schema",
            "snapshot",
            "snapshot-postgres",
            "testkit",
        ],
    ),
    ("sim", &[]),
    ("cli", &["server", "sim"]),
    ("conformance", &["hot", "schema", "testkit"]),
    ("bench", &["history", "history-cql", "schema", "server", "testkit"]),
    ("testkit", &[]),
];

/// Text that library code must not contain, and what to write instead. Tests and the binary are free.
const BANS: &[(&str, &str)] = &[
    (".unwrap()", "`expect` that says why it holds, or an error"),
    ("println!", "`tracing`, or a return value"),
    ("todo!", "the code"),
    ("unimplemented!", "the code"),
    ("dbg!", "nothing"),
    ("SystemTime::now", "the engine's clock (`embedded/clock.rs` is the one place that asks the system)"),
];

/// Names of types that once stood for terms of the field, and what to write instead.
const BANNED_TYPES: &[(&str, &str)] = &[
    ("Told", "the name of what it holds: an error, a reply, a report"),
    ("Seen", "`Snapshot`"),
    ("Look", "`Snapshot`"),
    ("Held", "`StoredValue`"),
    ("Kept", "`CachedKey`"),
    ("Known", "`ReadCache`"),
    ("Shown", "the result of the check, such as `TokenCheck`"),
    ("Which", "a query or a key, such as `RoomKey`"),
    ("Apart", "`Combine`"),
    ("Landed", "`CompletedCommit`"),
    ("Step", "`Transaction`"),
    ("Job", "`QueuedTransaction`"),
    ("Combiner", "`PartitionTask`"),
    ("Flight", "`InFlight`"),
    ("Lane", "`CommitSequence`"),
    ("Naming", "`KeyLayout`"),
    ("Ticket", "`Lsn`"),
    ("Ended", "`LocalOutcome`"),
    ("Brake", "`LoginBackoff`"),
    ("Pace", "`TokenBucket`"),
    ("Throttle", "`PerIpLimiter`"),
    ("Manners", "the limit that it checks, such as `FloodControl`"),
    ("Crowd", "`ConnectionLimit`"),
    ("Waits", "`Timeouts`"),
    ("Seat", "`Subscriber`"),
    ("Entrance", "`JoinRequest`"),
    ("Rhythm", "`Timing`"),
    ("Census", "`KeyCounts`"),
    ("Dice", "a random number generator"),
    ("Spoiled", "`Corrupt`"),
    ("Foreign", "`External`"),
    ("Below", "what is below, such as `CommittedView`"),
    ("Touched", "`SharedGroups`"),
    ("Found", "the result, such as `ScanResult`"),
    ("Ran", "`LocalRun`"),
    ("Walked", "`ElementPage`"),
    ("Watched", "`PanicRecorder`"),
    ("Followed", "`LogItem`"),
    ("Identified", "`KeyIdentity`"),
    ("Listening", "`RunningServer`"),
    ("Together", "`ReadResults`"),
];

/// The same of functions.
const BANNED_FUNCTIONS: &[(&str, &str)] = &[
    ("answer", "a verb: `report`, `reply`, `send`"),
    ("tell", "a verb: `report`, `send`, `notify`"),
    ("told", "a verb: `report`, `send`, `notify`"),
    ("look", "a verb: `get`, `find`, `snapshot`"),
    ("look_ahead", "`prefetch`"),
    ("glance", "`snapshot`"),
    ("announce", "`prefetch`"),
    ("foresee", "`prefetch`"),
    ("is_apart", "`combine`"),
    ("is_alone", "`combine`"),
    ("spoil", "`corrupt`"),
];

/// Words that no text of the library has; comments, errors and documents say it plainly.
const BANNED_WORDS: [&str; 8] =
    ["whoever", "somebody", "nobody", "everybody", "anybody", "bears witness", "in vain", "is no json"];

/// What crates must not name, beside the crates that they must not depend on.
const BANNED_PATHS: &[(&str, &[&str], &str)] = &[
    (
        "schema",
        &["std::fs", "std::net::Tcp", "std::net::Udp", "std::thread", "tokio::"],
        "schema does no I/O",
    ),
    ("games", &["Embedded", "RedisEngine", "CqlStore", "axum", "hyper"], "games know no engine and no HTTP"),
];

/// Production lines that a file may have.
const FILE_LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn library_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in [
        "schema",
        "hot",
        "hot-redis",
        "history",
        "history-cql",
        "primitives",
        "snapshot",
        "snapshot-postgres",
        "games",
        "emberkeep",
        "server",
    ] {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    // Folders and files of tests, and the suite that every history store runs, may do as they like.
    found.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
    found.retain(|path| !path.starts_with(root().join("crates/history/src/testing")));
    found.retain(|path| path.file_name().is_none_or(|name| name != "tests.rs"));
    assert!(found.len() > 50, "the sources were found");
    found
}

/// The text before the tests of a file, without comments. Single items that only tests use stand in between.
fn production(text: &str) -> String {
    let mut code: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let is_of_tests = code.last() == Some(&"#[cfg(test)]");
        if is_of_tests && line.starts_with("mod ") && line.ends_with('{') {
            break;
        }
        code.push(line);
    }
    code.join("\n")
}

#[test]
fn crates_depend_only_on_the_layers_below() {
    for (name, allowed) in LAYERS {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"));
        let manifest = manifest.expect("every crate has a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap_or("");
        for line in dependencies.lines().filter_map(|line| line.strip_prefix("emberkeep-")) {
            let used = line.split(['.', ' ', '=']).next().unwrap_or("");
            assert!(
                allowed.contains(&used),
                "crate {name} must not depend on {used}; it may use {allowed:?}"
            );
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut all = Vec::new();
    sources(&root().join("crates"), &mut all);
    for path in all {
        // Cases of the compiler's messages are as short as a user's mistake.
        if path.components().any(|part| part.as_os_str() == "ui") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable file");
        assert!(text.starts_with("//!"), "{} begins with `//!` and a sentence", path.display());
    }
}

#[test]
fn library_code_keeps_the_bans() {
    for path in library_sources() {
        let code = production(&fs::read_to_string(&path).expect("a readable file"));
        for (banned, instead) in BANS {
            let exempt = *banned == "SystemTime::now"
                && ["embedded/clock.rs", "history-cql/src/clock.rs"]
                    .iter()
                    .any(|clock| path.ends_with(clock));
            assert!(exempt || !code.contains(banned), "{} uses {banned}: write {instead}", path.display());
        }
    }
}

/// The name that begins a text.
fn identifier(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

#[test]
fn names_are_those_of_the_field() {
    for path in library_sources() {
        let code = production(&fs::read_to_string(&path).expect("a readable file"));
        for (keywords, banned) in
            [(&["struct ", "enum ", "trait ", "type "][..], BANNED_TYPES), (&["fn "], BANNED_FUNCTIONS)]
        {
            let named = keywords.iter().flat_map(|keyword| code.split(keyword).skip(1).map(identifier));
            let named: BTreeSet<&str> = named.collect();
            if let Some((name, instead)) = banned.iter().find(|(name, _)| named.contains(name)) {
                panic!("{} has `{name}`: name it {instead}", path.display());
            }
        }
    }
}

#[test]
fn crates_name_nothing_above_them() {
    for (name, banned, rule) in BANNED_PATHS {
        let folder = root().join("crates").join(name).join("src");
        for path in library_sources().iter().filter(|path| path.starts_with(&folder)) {
            let code = production(&fs::read_to_string(path).expect("a readable file"));
            let found = banned.iter().find(|banned| code.contains(**banned));
            assert_eq!(found, None, "{}: {rule}", path.display());
        }
    }
}

#[test]
fn games_do_not_name_each_other() {
    let folder = root().join("crates/games/src");
    let names = ["darkages", "monsters", "party", "reactors"];
    for path in library_sources() {
        let Some(game) = module_of(&folder, &path).filter(|module| names.contains(&module.as_str())) else {
            continue;
        };
        let code = production(&fs::read_to_string(&path).expect("a readable file"));
        let named = named_modules(&code);
        let other = names.iter().find(|name| **name != game && named.iter().any(|named| named == *name));
        assert_eq!(other, None, "{}: what two games share stands beside them", path.display());
    }
}

/// Sources of everything that ships or measures, and the documents.
fn texts() -> Vec<PathBuf> {
    let mut found = library_sources();
    for name in ["cli", "sim", "bench", "testkit", "conformance"] {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    for folder in ["", "docs", "docs/games"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of the project");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found
}

#[test]
fn texts_say_who_does_it() {
    for path in texts() {
        let text = fs::read_to_string(&path).expect("a readable file").to_lowercase();
        // Names of tests are one word.
        let words = text.replace(|c: char| !c.is_alphanumeric() && c != '_', " ");
        for banned in BANNED_WORDS {
            assert!(
                !words.contains(&format!(" {banned} ")),
                "{} says `{banned}`: name the client, the caller or the process",
                path.display()
            );
        }
    }
}

/// Who writes a transaction must know which calls are round trips.
#[test]
fn every_method_of_a_transaction_says_what_it_costs() {
    let (mut files, mut methods) = (Vec::new(), 0);
    sources(&root().join("crates/hot/src/tx"), &mut files);
    for path in files {
        let text = fs::read_to_string(&path).expect("a readable file");
        let (mut is_of_transaction, mut has_cost) = (false, false);
        for line in text.lines() {
            if line.starts_with("impl") {
                is_of_transaction = line.contains("> ReadTx<") || line.contains("> Tx<");
            }
            if is_of_transaction && line.starts_with("    pub fn ") {
                assert!(has_cost, "{}: {} has no line \"Cost: …\"", path.display(), line.trim());
                methods += 1;
            }
            let is_above = line.starts_with("    ///") || line.starts_with("    #[");
            has_cost = is_above && (has_cost || line.contains("/// Cost: "));
        }
    }
    assert!(methods > 50, "the methods were found: {methods}");
}

/// The crates whose top-level modules form layers.
const LAYERED: [&str; 15] = [
    "schema",
    "hot",
    "hot-redis",
    "history",
    "history-cql",
    "primitives",
    "snapshot",
    "snapshot-postgres",
    "games",
    "server",
    "sim",
    "cli",
    "bench",
    "conformance",
    "testkit",
];

/// The top-level module of a file, or `None` for the crate's root.
fn module_of(source: &Path, path: &Path) -> Option<String> {
    let first = path.strip_prefix(source).ok()?.components().next()?;
    let name = first.as_os_str().to_str()?.trim_end_matches(".rs").to_owned();
    (!["lib", "main", "tests"].contains(&name.as_str())).then_some(name)
}

/// The modules that code names after `crate::`, alone or in braces.
fn named_modules(code: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let outer = list.chars().take_while(|c| {
            depth += (*c == '{') as i32 - (*c == '}') as i32;
            depth >= 0
        });
        // Names behind a brace or a path belong to the module before it.
        let list: String = outer.collect();
        let mut depth = 0;
        let mut item = String::new();
        for c in list.chars().chain([',']) {
            depth += (c == '{') as i32 - (c == '}') as i32;
            if c == ',' && depth == 0 {
                found.push(word(item.trim()));
                item.clear();
            } else {
                item.push(c);
            }
        }
    }
    found
}

type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports(name: &str) -> Imports {
    let source = root().join("crates").join(name).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut imports = Imports::new();
    for path in files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
        let Some(module) = module_of(&source, path) else { continue };
        let code = production(&fs::read_to_string(path).expect("a readable file"));
        imports.entry(module).or_default().extend(named_modules(&code));
    }
    imports
}

/// A way along imports that ends where it began.
fn cycle(imports: &Imports, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
    let module = way.last()?.clone();
    for next in imports.get(&module)?.iter().filter(|next| **next != module && imports.contains_key(*next)) {
        if let Some(begin) = way.iter().position(|before| before == next) {
            return Some(way[begin..].to_vec());
        }
        if !done.contains(next) {
            way.push(next.clone());
            if let Some(found) = cycle(imports, way, done) {
                return Some(found);
            }
            way.pop();
        }
    }
    done.insert(module);
    None
}

#[test]
fn top_level_modules_import_each_other_without_cycles() {
    for name in LAYERED {
        let (imports, mut done) = (imports(name), BTreeSet::new());
        assert!(!imports.is_empty(), "the modules of {name} were found");
        for module in imports.keys() {
            let found = cycle(&imports, &mut vec![module.clone()], &mut done);
            assert_eq!(found, None, "crate {name}: move what they share into a module below them");
        }
    }
}

/// The types of a file that its neighbours can name.
fn visible_types(code: &str) -> Vec<String> {
    let name = |line: &str| {
        let item = line.strip_prefix("pub")?;
        let item =
            item.strip_prefix('(').map_or(item, |scope| scope.split_once(')').map_or("", |(_, item)| item));
        let (kind, name) = item.trim_start().split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "type"].contains(&kind);
        is_type.then(|| name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
    };
    code.lines().filter_map(name).collect()
}

#[test]
fn a_module_has_one_type_of_a_name() {
    for name in LAYERED {
        let source = root().join("crates").join(name).join("src");
        let mut files = Vec::new();
        sources(&source, &mut files);
        let mut found: BTreeMap<(Option<String>, String), PathBuf> = BTreeMap::new();
        for path in files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
            let code = production(&fs::read_to_string(path).expect("a readable file"));
            // The error of a module has the name that the whole field gives it.
            let is_of_errors = path.file_name().is_some_and(|name| name == "error.rs");
            let is_usual = |name: &String| is_of_errors && ["Error", "Result"].contains(&name.as_str());
            for type_name in visible_types(&code).into_iter().filter(|name| !is_usual(name)) {
                let before = found.insert((module_of(&source, path), type_name.clone()), path.clone());
                let before = before.map(|before| before.display().to_string()).unwrap_or_default();
                assert!(
                    before.is_empty(),
                    "{type_name} stands in {before} and {}: name one anew",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn files_stay_readable() {
    for path in library_sources() {
        let lines = production(&fs::read_to_string(&path).expect("a readable file")).lines().count();
        assert!(
            lines <= FILE_LINES_MAX,
            "{} has {lines} lines of code: give its parts their own files",
            path.display()
        );
    }
}
