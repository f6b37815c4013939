//! Finds test cases that no runner lists.

use std::fs;
use std::path::Path;

/// Names of the cases (`pub async fn` at the start of a line) in the files of a folder that `runner`, the
/// source of the test beside it, neither lists for [`on_every_engine!`](crate::on_every_engine!) nor calls.
///
/// # Panics
/// When the folder cannot be read, or holds no case at all: then it is the wrong one.
pub fn unlisted_cases(runner: &str, folder: impl AsRef<Path>) -> Vec<String> {
    let mut cases = Vec::new();
    collect(folder.as_ref(), &mut cases);
    assert!(!cases.is_empty(), "no cases in {}", folder.as_ref().display());
    let runs =
        |case: &String| runner.contains(&format!("    {case},\n")) || runner.contains(&format!("::{case}("));
    cases.into_iter().filter(|case| !runs(case)).collect()
}

fn collect(folder: &Path, cases: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry of a readable folder").path()) {
        if path.is_dir() {
            collect(&path, cases);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let starts = text.split("\npub async fn ").skip(1);
            cases.extend(starts.map(|rest| rest.split(['(', '<']).next().unwrap_or(rest).to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_is_never_run_is_found() {
        let folder = crate::scratch();
        let text = "//! Cases.\n\npub async fn listed(store: Store) {}\n\npub async fn called() {}\n\n\
                    pub async fn forgotten(store: Store) {}\n\npub(super) async fn help() {}\n";
        fs::create_dir(folder.join("deeper")).unwrap();
        fs::write(folder.join("deeper/some.rs"), text).unwrap();
        let runner = "on_every_engine!(mod some = cases {\n    listed,\n});\ncases::called().await;\n";
        assert_eq!(unlisted_cases(runner, folder.path()), ["forgotten"]);
    }
}
