//! The settings and the command line of a node.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The ring of three nodes: each begins a third after the one before it.
const TOKENS: [&str; 3] = ["-9223372036854775808", "-3074457345618258603", "3074457345618258602"];

const LOGBACK: &str = r#"<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="STDOUT" /></root>
</configuration>
"#;

/// What one node is started with.
#[derive(Debug, Clone)]
pub(super) struct NodeFiles {
    pub(super) java: PathBuf,
    pub(super) jars: PathBuf,
    /// The addresses of all nodes.
    pub(super) addresses: Vec<String>,
    /// Which of them is this one.
    pub(super) number: usize,
    pub(super) port: u16,
    pub(super) storage_port: u16,
    pub(super) asks_password: bool,
    /// Key and certificate in PKCS 12, if clients may also use TLS.
    pub(super) keystore: Option<PathBuf>,
}

/// The password of the key file.
pub(super) const KEYSTORE_PASSWORD: &str = "cassandra";

impl NodeFiles {
    pub(super) fn address(&self) -> String {
        self.addresses[self.number].clone()
    }

    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("tmp"))?;
        fs::write(folder.join("logback.xml"), LOGBACK)?;
        fs::write(folder.join("cassandra.yaml"), self.settings())
    }

    /// The commit log is synced before a write is acknowledged: otherwise kill -9 loses acknowledged writes.
    fn settings(&self) -> String {
        let (address, port, storage_port) = (self.address(), self.port, self.storage_port);
        let entrances: Vec<String> =
            self.addresses.iter().map(|address| format!("{address}:{storage_port}")).collect();
        let authenticator =
            if self.asks_password { "PasswordAuthenticator" } else { "AllowAllAuthenticator" };
        let authorizer = if self.asks_password { "CassandraAuthorizer" } else { "AllowAllAuthorizer" };
        let mut settings = format!(
            "cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [ {{ seeds: \"{}\" }} ]
listen_address: {address}
rpc_address: {address}
storage_port: {storage_port}
native_transport_port: {port}
commitlog_sync: batch
commitlog_segment_size: 8MiB
auto_snapshot: false
concurrent_compactors: 1
authenticator: {authenticator}
authorizer: {authorizer}
",
            entrances.join(",")
        );
        if let Some(keystore) = &self.keystore {
            settings += &format!(
                "client_encryption_options:\n  enabled: true\n  optional: true\n  keystore: {}\n  keystore_password: {KEYSTORE_PASSWORD}\n  store_type: PKCS12\n",
                keystore.display()
            );
        }
        if self.addresses.len() > 1 {
            settings += &format!("auto_bootstrap: false\ninitial_token: {}\n", TOKENS[self.number]);
        }
        settings
    }

    pub(super) fn command_line(&self, folder: &Path) -> (PathBuf, Vec<String>) {
        let folder = folder.display();
        let mut args: Vec<String> = [
            "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms512m -Xmx512m",
            "--add-opens java.base/sun.nio.ch=ALL-UNNAMED --add-opens java.base/jdk.internal.ref=ALL-UNNAMED",
            "--add-opens java.base/java.io=ALL-UNNAMED -Djava.net.preferIPv4Stack=true",
            "-Dcassandra-foreground=yes -Dcassandra.shutdown_announce_in_ms=0",
            "-Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.auth_bcrypt_gensalt_log2_rounds=4",
            "-Dcassandra.ring_delay_ms=1000 -Dcassandra.skip_wait_for_gossip_to_settle=0",
        ]
        .iter()
        .flat_map(|words| words.split(' '))
        .map(str::to_owned)
        .collect();
        args.extend([
            format!("-Djava.io.tmpdir={folder}/tmp"),
            format!("-Djna.tmpdir={folder}/tmp"),
            format!("-Dlogback.configurationFile={folder}/logback.xml"),
            format!("-Dcassandra.config=file://{folder}/cassandra.yaml"),
            format!("-Dcassandra.storagedir={folder}"),
            "-cp".to_owned(),
            format!("{}/*", self.jars.display()),
            "org.apache.cassandra.service.CassandraDaemon".to_owned(),
        ]);
        (self.java.clone(), args)
    }
}
