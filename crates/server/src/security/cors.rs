//! Cross-origin resource sharing: which web pages may call the server.

use crate::headers::{MASTER_KEY, RECONNECT_TOKEN, REQUEST_ID};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Method};
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may cache a preflight answer.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);

/// Origins that may call. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins(Arc<OriginPolicy>);

#[derive(Debug)]
enum OriginPolicy {
    All,
    /// As browsers send them: in lower case, without the default port of the scheme.
    These(Vec<String>),
}

/// A setting that is not an origin.
#[derive(Debug, thiserror::Error)]
#[error(
    "{origin:?} is not an origin; expected `*`, or a scheme and a host such as https://play.example:8443"
)]
pub struct OriginError {
    origin: String,
}

/// Refuses what the settings `origins` and `ws_origins` must not hold, as [`listen`](crate::listen) does.
pub fn check_origins(origins: &[String]) -> Result<(), OriginError> {
    AllowedOrigins::parse(origins).map(drop)
}

impl AllowedOrigins {
    /// Only same-origin pages may call.
    pub(crate) fn none() -> AllowedOrigins {
        AllowedOrigins(Arc::new(OriginPolicy::These(Vec::new())))
    }

    /// `*` is every origin.
    pub(crate) fn parse(origins: &[String]) -> Result<AllowedOrigins, OriginError> {
        if origins.iter().any(|origin| origin == "*") {
            return Ok(AllowedOrigins(Arc::new(OriginPolicy::All)));
        }
        let these = origins.iter().map(|origin| normalize(origin)).collect::<Result<_, _>>()?;
        Ok(AllowedOrigins(Arc::new(OriginPolicy::These(these))))
    }

    pub(crate) fn layer(&self) -> CorsLayer {
        let origins = match &*self.0 {
            OriginPolicy::All => AllowOrigin::any(),
            OriginPolicy::These(_) => {
                let these = self.clone();
                AllowOrigin::predicate(move |origin, _| these.allow(Some(origin)))
            }
        };
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([AUTHORIZATION, CONTENT_TYPE, MASTER_KEY, RECONNECT_TOKEN, REQUEST_ID])
            .expose_headers([LOCATION, RETRY_AFTER, REQUEST_ID])
            .max_age(PREFLIGHT_MAX_AGE)
    }

    /// `None` is allowed: a request that does not come from a page has no origin.
    pub(crate) fn allow(&self, origin: Option<&HeaderValue>) -> bool {
        match (&*self.0, origin) {
            (OriginPolicy::All, _) | (_, None) => true,
            (OriginPolicy::These(these), Some(origin)) => {
                these.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
            }
        }
    }

    pub(crate) fn is_all(&self) -> bool {
        matches!(&*self.0, OriginPolicy::All)
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&*self.0, OriginPolicy::These(these) if these.is_empty())
    }
}

/// An origin as browsers send it.
fn normalize(origin: &str) -> Result<String, OriginError> {
    // What stands before an `@` may be a password.
    let shown = || origin.rsplit_once('@').map_or(origin.to_owned(), |(_, host)| format!("…@{host}"));
    let wrong = || OriginError { origin: shown() };
    let (scheme, host) = origin.split_once("://").ok_or_else(wrong)?;
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name(scheme) || !is_name(host) || host.contains(['/', '*', '?', '#', '@']) {
        return Err(wrong());
    }
    let lower = origin.to_ascii_lowercase();
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    Ok(lower.strip_suffix(default_port).unwrap_or(&lower).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_pass_by_their_origin_and_programs_without_one() {
        let known =
            AllowedOrigins::parse(&["HTTPS://Play.Example".into(), "http://a.example:80".into()]).unwrap();
        let page = |text: &'static str| HeaderValue::from_static(text);
        assert!(known.allow(Some(&page("https://play.example"))) && known.allow(None));
        assert!(known.allow(Some(&page("http://a.example"))), "browsers leave out the scheme's own port");
        assert!(!known.allow(Some(&page("https://evil.example"))));
        assert!(AllowedOrigins::parse(&["*".into()]).unwrap().allow(Some(&page("https://evil.example"))));
    }

    #[test]
    fn a_text_that_is_not_an_origin_is_refused() {
        for wrong in [
            "play.example",
            "https://",
            "https://play.example/",
            "https://*.example",
            "https://a b",
            "https://joe:s3cret@play.example",
        ] {
            let error = AllowedOrigins::parse(&[wrong.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("expected") && !error.contains("s3cret"), "{error}");
        }
        assert!(AllowedOrigins::parse(&[]).unwrap().is_empty());
        assert!(
            !AllowedOrigins::parse(&["https://play.example:8443".into(), "*".into()]).unwrap().is_empty()
        );
    }
}
