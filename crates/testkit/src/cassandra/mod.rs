//! A real Cassandra: one node with passwords, or three nodes on 127.0.0.1, .2 and .3.
//!
//! It stands for ScyllaDB too, which speaks the same protocol. A node takes 5 to 20 seconds to start and close to a
//! gigabyte of memory, so the tests of a binary share one and use keyspaces of their own.

mod files;

use crate::binaries::{cassandra_jars, java};
use crate::certificates::Certificates;
use crate::port::free_port_on;
use crate::process::ChildGuard;
use crate::scratch::{Scratch, scratch};
use crate::unavailable::Unavailable;
use files::NodeFiles;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Normally 5 to 30 s; the rest is for a machine that compiles at the same time.
const READY_MAX: Duration = Duration::from_secs(180);
/// In the log when clients may connect.
const READY_LINE: &str = "Starting listening for CQL clients";
/// In the log when the user of [`CassandraCluster::url`] exists.
const USER_LINE: &str = "Created default superuser role";
/// The server's own first user and its password.
const USER: &str = "cassandra";

/// Running nodes; all are killed and waited for on drop.
#[derive(Debug)]
pub struct CassandraCluster {
    nodes: Vec<Node>,
    port: u16,
    asks_password: bool,
    certificates: Option<Certificates>,
}

#[derive(Debug)]
struct Node {
    // Before the folder: fields drop in this order, and the server writes into the folder.
    process: Mutex<Option<ChildGuard>>,
    folder: Scratch,
    files: NodeFiles,
}

impl CassandraCluster {
    /// One node, which asks for a password, and takes TLS as well if openssl is there to make a certificate.
    pub fn start_one() -> Result<Self, Unavailable> {
        Self::start(1, true, Certificates::make().ok())
    }

    /// Three nodes without passwords, each with a third of the tokens.
    pub fn start_three() -> Result<Self, Unavailable> {
        Self::start(3, false, None)
    }

    fn start(
        count: usize,
        asks_password: bool,
        certificates: Option<Certificates>,
    ) -> Result<Self, Unavailable> {
        let export = |certificates: &Certificates| certificates.export_pkcs12(files::KEYSTORE_PASSWORD);
        let keystore = certificates.as_ref().map(export).transpose()?;
        let (java, jars) = (java()?, cassandra_jars()?);
        let addresses: Vec<String> = (1..=count).map(|number| format!("127.0.0.{number}")).collect();
        let (port, storage_port) = (free_port_on(&addresses), free_port_on(&addresses));
        let node = |number: usize| {
            let folder = scratch();
            let files = NodeFiles {
                java: java.clone(),
                jars: jars.clone(),
                addresses: addresses.clone(),
                number,
                port,
                storage_port,
                asks_password,
                keystore: keystore.clone(),
            };
            files.write(folder.path()).map_err(failed)?;
            Ok(Node { process: Mutex::new(None), folder, files })
        };
        let nodes = (0..count).map(node).collect::<Result<Vec<_>, Unavailable>>()?;
        let cluster = Self { nodes, port, asks_password, certificates };
        let logs = cluster.nodes.iter().map(Node::launch).collect::<Result<Vec<_>, _>>()?;
        cluster.nodes.iter().zip(logs).try_for_each(|(node, log)| node.wait_ready(log))?;
        Ok(cluster)
    }

    /// The addresses of all nodes: `127.0.0.1:port`, …
    pub fn addresses(&self) -> Vec<String> {
        let port = self.port;
        self.nodes.iter().map(|node| format!("{}:{port}", node.files.address())).collect()
    }

    /// `cql://user:password@127.0.0.1:port,…/keyspace`; the keyspace need not exist.
    pub fn url(&self, keyspace: &str) -> String {
        let user = if self.asks_password { format!("{USER}:{USER}@") } else { String::new() };
        format!("cql://{user}{}/{keyspace}", self.addresses().join(","))
    }

    /// The same with TLS, trusting the authority of these tests; `None` without a certificate.
    pub fn tls_url(&self, keyspace: &str) -> Option<String> {
        let authority = self.certificates.as_ref()?.path("ca.pem");
        let url = self.url(keyspace).replacen("cql://", "cqls://", 1);
        Some(format!("{url}?ca={}", authority.display()))
    }

    /// What a node has printed since it was first started.
    pub fn log(&self, node: usize) -> String {
        self.nodes[node].log()
    }

    /// SIGKILL to a node; returns when it is gone.
    pub fn kill9(&self, node: usize) {
        if let Some(mut process) = self.nodes[node].process().take() {
            process.kill9();
        }
    }

    /// SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self, node: usize) {
        if let Some(process) = self.nodes[node].process().as_mut() {
            process.signal("STOP");
        }
    }

    /// Lets a node go on (SIGCONT) after [`CassandraCluster::pause`].
    pub fn resume(&self, node: usize) {
        if let Some(process) = self.nodes[node].process().as_mut() {
            process.signal("CONT");
        }
    }

    /// Kills a node if it runs, and starts it again with its data.
    pub fn restart(&self, node: usize) -> Result<(), Unavailable> {
        self.kill9(node);
        let log = self.nodes[node].launch()?;
        self.nodes[node].wait_ready(log)
    }
}

impl Node {
    /// Starts the process; returns where its part of the log begins.
    fn launch(&self) -> Result<usize, Unavailable> {
        let begin = self.log().len();
        let (program, args) = self.files.command_line(self.folder.path());
        let process = ChildGuard::spawn(&program, &args, &[], self.folder.path()).map_err(failed)?;
        *self.process() = Some(process);
        Ok(begin)
    }

    /// Waits until clients may connect, the user exists and the other nodes are known to be up.
    fn wait_ready(&self, begin: usize) -> Result<(), Unavailable> {
        let deadline = Instant::now() + READY_MAX;
        let is_first = begin == 0;
        loop {
            let log = self.log();
            let log = log.get(begin..).unwrap_or_default();
            let has_user = !(self.files.asks_password && is_first) || log.contains(USER_LINE);
            if log.contains(READY_LINE) && has_user && self.sees_others(log) && self.accepts() {
                return Ok(());
            }
            let has_ended = self.process().as_mut().is_none_or(|process| process.ended().is_some());
            if has_ended || Instant::now() > deadline {
                return Err(Unavailable::Failed(last_lines(log)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn sees_others(&self, log: &str) -> bool {
        let port = self.files.storage_port;
        let others = self.files.addresses.iter().filter(|address| **address != self.files.address());
        others.into_iter().all(|address| log.contains(&format!("{address}:{port} is now UP")))
    }

    fn accepts(&self) -> bool {
        TcpStream::connect((self.files.address().as_str(), self.files.port)).is_ok()
    }

    fn log(&self) -> String {
        let out: PathBuf = self.folder.join("out");
        fs::read(out).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn process(&self) -> MutexGuard<'_, Option<ChildGuard>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn failed(error: std::io::Error) -> Unavailable {
    Unavailable::Failed(error.to_string())
}
