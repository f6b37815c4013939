//! Connecting: the session with its timeouts, policies, credentials and TLS.

use crate::back_pressure::BackPressure;
use crate::cluster::Cluster;
use crate::limits::{CONNECT_TIMEOUT, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, SCHEMA_AGREEMENT_TIMEOUT};
use crate::options::CqlOptions;
use crate::url::{CqlUrl, UrlError};
use emberkeep_history::Error;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::statement::Consistency;
use std::collections::BTreeSet;

/// Why a store could not be opened. No text of it shows a password.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A mistake in the URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The declared tables do not fit together.
    #[error(transparent)]
    Declaration(Error),
    /// The file of the certificate authority cannot be used, or the program was built without TLS.
    #[error("TLS: {problem}")]
    Tls {
        /// Which file or feature is missing.
        problem: String,
    },
    /// The consistency of the URL does not hold what totals promise.
    #[error("{problem}; {remedy}")]
    Consistency {
        /// Which consistency is given, and which is needed.
        problem: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// No node of the cluster answers in time.
    #[error(
        "{cluster} cannot be reached: {reason}; check the hosts, the port and the network, and try again"
    )]
    Unreachable {
        /// The cluster, without credentials.
        cluster: String,
        /// What the driver said.
        reason: String,
    },
    /// The cluster refuses the user or the password.
    #[error("{cluster} refuses the user or the password of the URL; write cql://user:password@…")]
    Credentials {
        /// The cluster, without credentials.
        cluster: String,
    },
    /// The keyspace does not exist.
    #[error(
        "the keyspace {keyspace} does not exist; create it, for instance with the output of `emberkeep schema cql --keyspace {keyspace}`"
    )]
    Keyspace {
        /// The keyspace that the URL names.
        keyspace: String,
    },
    /// The keyspace has other tables than those that are declared.
    #[error(
        "the keyspace {keyspace} differs from the declared tables: {differences}; `emberkeep schema apply --history URL` adds what is missing"
    )]
    Schema {
        /// The keyspace that the URL names.
        keyspace: String,
        /// The differences, in words.
        differences: String,
    },
    /// A statement failed while the keyspace was read or changed.
    #[error("cannot read or change the keyspace {keyspace}: {reason}")]
    Statement {
        /// The keyspace that the URL names.
        keyspace: String,
        /// What the server said.
        reason: String,
    },
}

impl ConnectError {
    /// Whether connecting may succeed later without a change of the URL or of the keyspace.
    pub fn is_transient(&self) -> bool {
        matches!(self, ConnectError::Unreachable { .. } | ConnectError::Statement { .. })
    }
}

/// A session with a cluster.
pub(crate) async fn connect(url: &CqlUrl, options: &CqlOptions) -> Result<Cluster, ConnectError> {
    let mut balancing = DefaultPolicy::builder().token_aware(true);
    if let Some(data_centre) = &url.data_centre {
        balancing = balancing.prefer_datacenter(data_centre.clone());
    }
    let profile = ExecutionProfile::builder()
        .consistency(url.consistency)
        .serial_consistency(Some(url.serial))
        .request_timeout(Some(url.timeout))
        .load_balancing_policy(balancing.build())
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&url.hosts)
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(CONNECT_TIMEOUT)
        .keepalive_interval(KEEPALIVE_INTERVAL)
        .keepalive_timeout(KEEPALIVE_TIMEOUT)
        .schema_agreement_timeout(SCHEMA_AGREEMENT_TIMEOUT)
        .keyspaces_to_fetch([url.keyspace.as_str()]);
    if let Some((user, password)) = &url.user {
        builder = builder.user(user, password);
    }
    if url.is_tls {
        builder = with_tls(builder, url)?;
    }
    let session =
        builder.build().await.map_err(|error| failed(url, &format!("{error}"), &format!("{error:?}")))?;
    check_data_centres(&session, url)?;
    let bounds = BackPressure::new(options);
    Ok(Cluster::new(session, url.to_string(), url.serial, bounds))
}

/// "Local" is the data centre of the node that answers: without a name, two calls could mean two of them, and a read
/// would not see the write before it.
fn check_data_centres(session: &Session, url: &CqlUrl) -> Result<(), ConnectError> {
    let state = session.get_cluster_state();
    let found: BTreeSet<_> =
        state.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect();
    let is_local = matches!(url.consistency, Consistency::LocalQuorum | Consistency::LocalOne);
    if url.data_centre.is_some() || !is_local || found.len() < 2 {
        return Ok(());
    }
    let found = found.into_iter().collect::<Vec<_>>().join(", ");
    Err(ConnectError::Consistency {
        problem: format!("the cluster has several data centres ({found}), and a local consistency needs one"),
        remedy: "add dc=NAME to the URL",
    })
}

/// Totals are read, added to and written: a read must see the write before it.
pub(crate) fn check_totals(url: &CqlUrl) -> Result<(), ConnectError> {
    let is_weak = matches!(
        url.consistency,
        Consistency::Any | Consistency::One | Consistency::Two | Consistency::LocalOne
    );
    if !is_weak {
        return Ok(());
    }
    Err(ConnectError::Consistency {
        problem: format!("with consistency {} totals would lose entries", url.consistency),
        remedy: "write consistency=local_quorum, or declare no totals",
    })
}

/// The driver wraps the server's refusal several times, so its name is looked for in all of the error.
fn failed(url: &CqlUrl, text: &str, everything: &str) -> ConnectError {
    let cluster = url.to_string();
    if everything.contains("AuthenticationError") || everything.contains("MissingAuthentication") {
        return ConnectError::Credentials { cluster };
    }
    let hidden = url.user.as_ref().map(|(_, password)| password).filter(|password| !password.is_empty());
    let reason = hidden.map_or_else(|| text.to_owned(), |password| text.replace(password.as_str(), "***"));
    ConnectError::Unreachable { cluster, reason }
}

#[cfg(feature = "tls")]
fn with_tls(builder: SessionBuilder, url: &CqlUrl) -> Result<SessionBuilder, ConnectError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore};
    use std::sync::Arc;

    let failed = |problem: String| ConnectError::Tls { problem };
    let roots = match &url.authority {
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        Some(path) => {
            let unusable = |error: &dyn std::fmt::Display| {
                failed(format!("{path}: {error}; expected certificates in PEM, as in ?ca=/path/ca.pem"))
            };
            let pem = std::fs::read(path).map_err(|error| unusable(&error))?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| unusable(&error))?;
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            if roots.is_empty() {
                return Err(unusable(&"it holds no certificate"));
            }
            roots
        }
    };
    // The provider of the rest of the program: rustls cannot choose between two that are compiled in.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed(error.to_string()))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(builder.tls_context(Some(Arc::new(config))))
}

#[cfg(not(feature = "tls"))]
fn with_tls(_: SessionBuilder, _: &CqlUrl) -> Result<SessionBuilder, ConnectError> {
    let problem =
        "this program was built without it; build it with the feature `cql-tls`, or write cql://".to_owned();
    Err(ConnectError::Tls { problem })
}
