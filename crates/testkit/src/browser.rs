//! A headless browser: the page after its scripts have run, and the requests it made.

use crate::binaries::chromium;
use crate::scratch::scratch;
use crate::unavailable::Unavailable;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that a page may take.
const PAGE_MAX: Duration = Duration::from_secs(60);
/// Time that passes for the page's own timers and requests before it is read.
const VIRTUAL_TIME_MS: u32 = 10_000;

/// A page after its script has run.
#[derive(Debug)]
pub struct Page {
    /// The document as it stands then.
    pub dom: String,
    /// Every address that the page asked for. The browser's own errands are not among them.
    pub requests: Vec<String>,
}

/// Opens an address in Chromium and reads the page once its script has come to rest.
pub fn open_page(url: &str) -> Result<Page, Unavailable> {
    let folder = scratch();
    let (dom, log) = (folder.join("dom.html"), folder.join("net.json"));
    let failed = |error: std::io::Error| Unavailable::Failed(format!("chromium: {error}"));
    let child = Command::new(chromium()?)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--window-size=1280,900"])
        // The browser makes requests of its own; they reach no server.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("--virtual-time-budget={VIRTUAL_TIME_MS}"))
        .args(["--dump-dom", url])
        .stdin(Stdio::null())
        .stdout(File::create(&dom).map_err(failed)?)
        .stderr(File::create(folder.join("err")).map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    wait(child)?;
    let dom = std::fs::read_to_string(dom).map_err(failed)?;
    let requests = addresses(&std::fs::read_to_string(log).map_err(failed)?);
    Ok(Page { dom, requests })
}

fn wait(mut child: Child) -> Result<(), Unavailable> {
    let deadline = Instant::now() + PAGE_MAX;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            ended => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Unavailable::Failed(format!("chromium read no page: {ended:?}")));
            }
        }
    }
}

/// The addresses in the browser's own log of its network, one event a line, whose request a page began.
fn addresses(log: &str) -> Vec<String> {
    let value = |line: &str, name: &str| {
        let rest = line.split(&format!("\"{name}\":\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    let of_page = |line: &str| value(line, "initiator").is_some_and(|origin| origin.contains("://"));
    let mut found: Vec<String> =
        log.lines().filter(|line| of_page(line)).filter_map(|line| value(line, "url")).collect();
    found.sort_unstable();
    found.dedup();
    found
}
