//! Redirects, below the retry: a repeat begins at the request's own URI again, and a hop is no
//! attempt.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{Request, Uri};
use http_body::Body;
use tower_http::follow_redirect::policy::{Action, Attempt, Policy};
use tower_service::Service;

use crate::body::ReplayBody;

/// What is for the first origin alone.
const FOR_THE_ORIGIN: [HeaderName; 4] = [AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION];

/// Which redirects are followed, and with what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Redirects {
    left: u32,
    /// Whether one led to another origin. From then on for good: tower-http's own filter forgets it
    /// at the next hop, and sends what it had held back.
    crossed: bool,
}

impl Redirects {
    pub(super) const fn new(at_most: u32) -> Self {
        Self { left: at_most, crossed: false }
    }
}

impl<B, E> Policy<ReplayBody<B>, E> for Redirects
where
    B: Body<Data = Bytes> + Unpin,
{
    fn redirect(&mut self, attempt: &Attempt<'_>) -> Result<Action, E> {
        let (from, to) = (attempt.previous(), attempt.location());
        let Some(left) = self.left.checked_sub(1).filter(|_| port(to).is_some()) else {
            return Ok(Action::Stop);
        };
        self.left = left;
        self.crossed |= !is_same_origin(from, to);
        Ok(Action::Follow)
    }

    fn on_request(&mut self, request: &mut Request<ReplayBody<B>>) {
        if self.crossed {
            for name in FOR_THE_ORIGIN {
                request.headers_mut().remove(name);
            }
        }
    }

    fn clone_body(&self, body: &ReplayBody<B>) -> Option<ReplayBody<B>> {
        body.try_clone()
    }
}

/// RFC 6454 section 5.
fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let hosts = one.host().zip(other.host());
    one.scheme() == other.scheme()
        && hosts.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
        && port(one) == port(other)
}

/// `None` for what is not HTTP.
fn port(uri: &Uri) -> Option<u16> {
    let default = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => 443,
        Some(scheme) if *scheme == Scheme::HTTP => 80,
        _ => return None,
    };
    Some(uri.port_u16().unwrap_or(default))
}

/// Looks whether a body is whole. The retry does that too, but not where it would not repeat.
#[derive(Debug, Clone)]
pub(super) struct Replayed<S>(S);

impl<S> Replayed<S> {
    pub(super) const fn new(inner: S) -> Self {
        Self(inner)
    }
}

impl<S, B> Service<Request<B>> for Replayed<S>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body<Data = Bytes> + Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.0.call(request.map(ReplayBody::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (one, other, same) in [
            ("http://a/x", "http://a/y?z", true),
            ("http://a/", "http://A:80/", true),
            ("https://a/", "https://a:443/", true),
            ("http://a/", "https://a/", false),
            ("http://a:443/", "https://a/", false),
            ("http://a/", "http://a:81/", false),
            ("http://a/", "http://b.a/", false),
            ("http://a/", "ftp://a/", false),
        ] {
            let uri = |text: &'static str| Uri::from_static(text);
            assert_eq!(is_same_origin(&uri(one), &uri(other)), same, "{one} and {other}");
        }
    }
}
