//! A page on loopback for one person: only a browser that opened the printed address is answered, and
//! only what is sent from the page itself.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Redirect, Response},
};
use tokio::net::TcpListener;
use uuid::Uuid;

/// Beside what the page needs: forms lead only here, and the page is in no frame.
const POLICY: &str = "form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Answers on loopback what these routes do under the path that they are given, in the background.
/// Returns the address to open.
pub async fn listen(routes: impl FnOnce(&str) -> Router) -> anyhow::Result<String> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = bound.context("cannot listen on 127.0.0.1")?;
    let door = Door::new(listener.local_addr()?);
    let address = format!("http://{}/{}", door.at, door.printed);
    let guard = middleware::from_fn_with_state(door.clone(), guard);
    let guarded = routes(&door.page()).layer(guard);
    tokio::spawn(async move { axum::serve(listener, guarded).await });
    Ok(address)
}

/// The secrets of one run.
///
/// The printed address stays on a screen and in a history, so it opens once. It leads to another
/// address, whose path is the secret of the session: unlike a cookie, no other page can have a browser
/// send it, and no other port of this machine receives it.
#[derive(Clone)]
struct Door {
    at: SocketAddr,
    printed: String,
    is_used: Arc<AtomicBool>,
    session: String,
}

impl Door {
    fn new(at: SocketAddr) -> Self {
        let secret = || Uuid::new_v4().simple().to_string();
        Self { at, printed: secret(), is_used: Arc::default(), session: secret() }
    }

    /// The path of the page.
    fn page(&self) -> String {
        format!("/{}/", self.session)
    }

    /// Reports whether a request is for the printed address, for the first time.
    fn opens(&self, address: &Uri) -> bool {
        let is_printed = address.path().strip_prefix('/') == Some(&self.printed);
        is_printed && !self.is_used.swap(true, Ordering::SeqCst)
    }

    /// Reports whether a request is one that a person makes in this page. A browser says from which
    /// page it sends a form, and for a name that resolves to this machine it sends that name.
    fn admits(&self, method: &Method, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let here = self.at.to_string();
        let site = text(HeaderName::from_static("sec-fetch-site"));
        let is_own_site = matches!(site, None | Some("none" | "same-origin"));
        let is_own_form = text(header::ORIGIN) == Some(&format!("http://{here}"));
        let is_known = *method == Method::GET || *method == Method::POST && is_own_form;
        text(header::HOST) == Some(&here) && is_own_site && is_known
    }
}

/// Answers what [`Door::admits`], and keeps each answer out of caches and other pages.
async fn guard(State(door): State<Door>, request: Request, next: Next) -> Response {
    let mut response = if !door.admits(request.method(), request.headers()) {
        refused()
    } else if door.opens(request.uri()) {
        Redirect::to(&door.page()).into_response()
    } else if request.uri().path().starts_with(&door.page()) {
        next.run(request).await
    } else {
        refused()
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, page::POLICY),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        // With `no-referrer`, a browser does not say where a form comes from.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response
}

fn refused() -> Response {
    let text = "This address is not open. `offhours ui` prints a new one, which opens once.\n";
    (StatusCode::FORBIDDEN, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door::new("127.0.0.1:8080".parse().unwrap())
    }

    #[test]
    fn the_printed_address_opens_once() {
        let door = door();
        let printed = format!("/{}", door.printed).parse().unwrap();
        let page = door.page().parse().unwrap();
        assert!(!door.opens(&page) && !door.opens(&Uri::from_static("/")));
        assert!(door.opens(&printed));
        assert!(!door.opens(&printed));
    }

    #[test]
    fn only_this_page_changes_anything() {
        let door = door();
        let admits = |method, pairs: &[(&'static str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            door.admits(&method, &pairs.collect())
        };
        let here = ("host", "127.0.0.1:8080");
        let own = ("origin", "http://127.0.0.1:8080");
        assert!(admits(Method::GET, &[here]));
        assert!(admits(Method::GET, &[here, ("sec-fetch-site", "none")]));
        assert!(admits(Method::POST, &[here, own, ("sec-fetch-site", "same-origin")]));
        for refused in [
            admits(Method::GET, &[("host", "rebound.example:8080")]),
            admits(Method::GET, &[]),
            admits(Method::GET, &[here, ("sec-fetch-site", "cross-site")]),
            admits(Method::GET, &[here, ("sec-fetch-site", "same-site")]),
            admits(Method::POST, &[here]),
            admits(Method::POST, &[here, ("origin", "null")]),
            admits(Method::POST, &[here, ("origin", "https://page.example")]),
            admits(Method::POST, &[here, ("origin", "http://127.0.0.1:8081")]),
            admits(Method::POST, &[("host", "rebound.example:8080"), own]),
            admits(Method::POST, &[here, own, ("sec-fetch-site", "cross-site")]),
            admits(Method::HEAD, &[here]),
            admits(Method::PUT, &[here, own]),
        ] {
            assert!(!refused);
        }
    }
}
