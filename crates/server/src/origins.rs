//! Whose pages may call the server from a browser.

use crate::headers::{MASTER_KEY, RECONNECT_TOKEN, REQUEST_ID};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Method};
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what it was told.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Origins whose pages may call. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Origins(Arc<Allowed>);

#[derive(Debug)]
enum Allowed {
    All,
    /// As browsers spell them: in small letters, without the port that is the scheme's own.
    These(Vec<String>),
}

/// An origin that is none.
#[derive(Debug, thiserror::Error)]
#[error("{origin:?} is no origin; expected `*`, or a scheme and a host such as https://play.example:8443")]
pub struct OriginError {
    origin: String,
}

impl Origins {
    /// No external page may call.
    pub(crate) fn none() -> Origins {
        Origins(Arc::new(Allowed::These(Vec::new())))
    }

    /// The origins of the settings.
    pub(crate) fn read(origins: &[String]) -> Result<Origins, OriginError> {
        if origins.iter().any(|origin| origin == "*") {
            return Ok(Origins(Arc::new(Allowed::All)));
        }
        let these = origins.iter().map(|origin| read(origin)).collect::<Result<_, _>>()?;
        Ok(Origins(Arc::new(Allowed::These(these))))
    }

    /// What browsers are told.
    pub(crate) fn layer(&self) -> CorsLayer {
        let origins = match &*self.0 {
            Allowed::All => AllowOrigin::any(),
            Allowed::These(_) => {
                let these = self.clone();
                AllowOrigin::predicate(move |origin, _| these.allow(Some(origin)))
            }
        };
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([AUTHORIZATION, CONTENT_TYPE, MASTER_KEY, RECONNECT_TOKEN, REQUEST_ID])
            .expose_headers([LOCATION, RETRY_AFTER, REQUEST_ID])
            .max_age(REMEMBERED)
    }

    /// Whether a request may pass. One that no page made names no origin.
    pub(crate) fn allow(&self, origin: Option<&HeaderValue>) -> bool {
        match (&*self.0, origin) {
            (Allowed::All, _) | (_, None) => true,
            (Allowed::These(these), Some(origin)) => {
                these.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
            }
        }
    }

    /// Whether every page may call.
    pub(crate) fn is_all(&self) -> bool {
        matches!(&*self.0, Allowed::All)
    }

    /// Whether no page of another origin may call.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&*self.0, Allowed::These(these) if these.is_empty())
    }
}

/// An origin as browsers spell it.
fn read(origin: &str) -> Result<String, OriginError> {
    let wrong = || OriginError { origin: origin.to_owned() };
    let (scheme, host) = origin.split_once("://").ok_or_else(wrong)?;
    let named = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !named(scheme) || !named(host) || host.contains(['/', '*', '?', '#']) {
        return Err(wrong());
    }
    let spelled = origin.to_ascii_lowercase();
    let own_port = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    Ok(spelled.strip_suffix(own_port).unwrap_or(&spelled).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_pass_by_their_origin_and_programs_without_one() {
        let known = Origins::read(&["HTTPS://Play.Example".into(), "http://a.example:80".into()]).unwrap();
        let page = |text: &'static str| HeaderValue::from_static(text);
        assert!(known.allow(Some(&page("https://play.example"))) && known.allow(None));
        assert!(known.allow(Some(&page("http://a.example"))), "browsers leave out the scheme's own port");
        assert!(!known.allow(Some(&page("https://evil.example"))));
        assert!(Origins::read(&["*".into()]).unwrap().allow(Some(&page("https://evil.example"))));
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for wrong in ["play.example", "https://", "https://play.example/", "https://*.example", "https://a b"]
        {
            let told = Origins::read(&[wrong.to_owned()]).unwrap_err().to_string();
            assert!(told.contains("expected"), "{told}");
        }
        assert!(Origins::read(&[]).unwrap().is_empty());
        assert!(!Origins::read(&["https://play.example:8443".into(), "*".into()]).unwrap().is_empty());
    }
}
