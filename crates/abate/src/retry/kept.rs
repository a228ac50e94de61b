//! What is kept of a request so that it can be sent again.
//!
//! Cloning a `HeaderMap` whose values came from the network costs an allocation a header, and a
//! first clone of freshly made `Bytes` one more: every call would pay for the few that fail. The
//! head, and a small body, are written flat into a buffer of the thread's pool instead, and only a
//! repeat builds a request out of it.

use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use http::header::HOST;
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use http_body::Body;
use rustc_hash::FxHasher;

use crate::body::{ReplayBody, Tape};
use crate::context::Target;

/// A body up to this length is copied, which is cheaper than the allocation that sharing it may
/// need; a longer one is shared.
const COPIED: usize = 4 * 1024;

/// What a new buffer has room for: the head of a usual request, and some body.
const USUAL: usize = 1024;

/// A request that can be sent again, in memory that is used again. Nothing is held for others
/// between two calls, and the method is GET.
pub(super) struct Kept {
    method: Method,
    version: Version,
    extensions: Extensions,
    /// The URI, the headers, and the body if it was copied.
    flat: Vec<u8>,
    uri: FlatUri,
    head: usize,
    shared: Option<Bytes>,
    /// Whether the body is on a tape, and not here.
    taped: bool,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            method: Method::GET,
            version: Version::HTTP_11,
            extensions: Extensions::new(),
            flat: Vec::with_capacity(USUAL),
            uri: FlatUri::default(),
            head: 0,
            shared: None,
            taped: false,
        }
    }

    /// The bytes of memory that it keeps for what it holds.
    pub(super) const fn bytes(&self) -> usize {
        self.flat.capacity()
    }

    /// Lets go of all that belongs to others.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.method != Method::GET {
            self.method = Method::GET;
        }
        if !self.extensions.is_empty() {
            self.extensions = Extensions::new();
        }
        self.flat.clear();
        if self.shared.is_some() {
            self.shared = None;
        }
    }

    /// Keeps the URI of a request, and returns what tells whether two requests mean the same thing to
    /// a retry: a hash of method, authority (or `Host`) and path.
    #[inline(always)]
    pub(super) fn keep_uri(&mut self, head: &Parts) -> Target {
        let path = head.uri.path_and_query().map_or("", PathAndQuery::path);
        self.uri = FlatUri::write(&head.uri, &mut self.flat);
        let mut hasher = FxHasher::default();
        head.method.hash(&mut hasher);
        let path = self.uri.authority + path.len();
        hasher.write(self.flat.get(..path).unwrap_or(&self.flat));
        if self.uri.authority == 0
            && let Some(host) = head.headers.get(HOST)
        {
            hasher.write(host.as_bytes());
        }
        Target::MIN | hasher.finish() as u32
    }

    /// Keeps what else is needed of a request whose body is whole, or on a `tape`; false when it can be
    /// sent only once.
    #[inline(always)]
    pub(super) fn keep<B>(
        &mut self,
        head: &Parts,
        body: &ReplayBody<B>,
        tape: Option<&Tape<B>>,
    ) -> bool
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.taped = tape.is_some();
        let data = match body.data() {
            Some(data) => data,
            None if self.taped => None,
            None => return false,
        };
        for (name, value) in &head.headers {
            write_header(name, value, &mut self.flat);
        }
        self.head = self.flat.len();
        match data {
            Some(data) if data.len() <= COPIED => self.flat.extend_from_slice(data),
            Some(data) => self.shared = Some(data.clone()),
            None => {}
        }
        if head.method != Method::GET {
            self.method = head.method.clone();
        }
        self.version = head.version;
        if !head.extensions.is_empty() {
            self.extensions = head.extensions.clone();
        }
        true
    }

    /// The request once more; `None` where its body cannot be had from the `tape` that it is on. (Or
    /// if a URI or a header which was valid were not any more.)
    pub(super) fn request<B>(&self, tape: Option<&Tape<B>>) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = if self.taped { ReplayBody::taped(tape?)? } else { self.whole_body() };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.version_mut() = self.version;
        *request.uri_mut() = self.uri.read(&self.flat)?;
        *request.headers_mut() = read_headers(&self.flat[self.uri.end..self.head])?;
        *request.extensions_mut() = self.extensions.clone();
        Some(request)
    }

    fn whole_body<B>(&self) -> ReplayBody<B>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let copied = &self.flat[self.head..];
        ReplayBody::whole(match &self.shared {
            None if copied.is_empty() => None,
            None => Some(Bytes::copy_from_slice(copied)),
            shared => shared.clone(),
        })
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may be secret: sizes alone.
        f.debug_struct("Kept")
            .field("method", &self.method)
            .field("bytes", &self.flat.len())
            .finish_non_exhaustive()
    }
}

/// A URI whose text is at the beginning of the flat bytes. Its parts are kept apart, since not every
/// URI that can be made of parts can be parsed from one text: `OPTIONS *` has an authority and the
/// path `*`.
#[derive(Debug, Default)]
struct FlatUri {
    /// Not as text: of those in use, only a scheme of someone's own needs memory.
    scheme: Option<Scheme>,
    authority: usize,
    end: usize,
}

impl FlatUri {
    #[inline(always)]
    fn write(uri: &Uri, flat: &mut Vec<u8>) -> Self {
        let authority = uri.authority().map_or("", Authority::as_str).as_bytes();
        let path = uri.path_and_query().map_or("", PathAndQuery::as_str).as_bytes();
        flat.extend_from_slice(authority);
        flat.extend_from_slice(path);
        Self { scheme: uri.scheme().cloned(), authority: authority.len(), end: flat.len() }
    }

    fn read(&self, flat: &[u8]) -> Option<Uri> {
        let mut parts = uri::Parts::default();
        parts.scheme.clone_from(&self.scheme);
        if self.authority > 0 {
            parts.authority = Some(Authority::try_from(&flat[..self.authority]).ok()?);
        }
        if self.end > self.authority {
            let path = &flat[self.authority..self.end];
            parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        }
        Uri::from_parts(parts).ok()
    }
}

/// Of the word before each header, the bit that tells that its value is sensitive. Below it is the
/// length of the name (`http` limits it to 64 KiB), and in the lower half that of the value (one of
/// 4 GiB would have been refused by every peer).
const SENSITIVE: u64 = 1 << 63;

#[inline]
fn write_header(name: &HeaderName, value: &HeaderValue, flat: &mut Vec<u8>) {
    let (name, text) = (name.as_str().as_bytes(), value.as_bytes());
    let sensitive = if value.is_sensitive() { SENSITIVE } else { 0 };
    let word = sensitive | ((name.len() as u64) << 32) | u64::from(text.len() as u32);
    flat.extend_from_slice(&word.to_ne_bytes());
    flat.extend_from_slice(name);
    flat.extend_from_slice(text);
}

fn read_headers(mut flat: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    while let Some((word, rest)) = flat.split_first_chunk() {
        let word = u64::from_ne_bytes(*word);
        let (name, rest) = rest.split_at_checked((word & !SENSITIVE) as usize >> 32)?;
        let (value, rest) = rest.split_at_checked(word as u32 as usize)?;
        let mut value = HeaderValue::from_bytes(value).ok()?;
        value.set_sensitive(word & SENSITIVE != 0);
        headers.append(HeaderName::from_bytes(name).ok()?, value);
        flat = rest;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};
    use proptest::prelude::*;

    use super::*;

    fn kept<B>(request: Request<B>) -> Option<Kept>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut kept = Kept::new();
        let (head, body) = request.into_parts();
        kept.keep_uri(&head);
        kept.keep(&head, &ReplayBody::new(body), None).then_some(kept)
    }

    fn round<B>(request: Request<B>) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        kept(request)?.request(None)
    }

    fn get(uri: &str) -> Request<Empty<Bytes>> {
        Request::get(uri).body(Empty::new()).unwrap()
    }

    #[test]
    fn every_form_of_uri_comes_back() {
        for uri in [
            "http://example.com/",
            "http://example.com",
            "https://user@example.com:8443/a/b?c=d&e",
            "/only/a/path?query",
            "example.com:443",
            "*",
            "http://[::1]:80/?",
        ] {
            let request = get(uri);
            assert_eq!(round(request.clone()).unwrap().uri(), request.uri(), "{uri}");
        }
    }

    #[test]
    fn a_uri_that_no_text_gives_comes_back() {
        let uri = Uri::builder().scheme("http").authority("example.com").path_and_query("*");
        let mut request = get("http://a/");
        *request.uri_mut() = uri.build().unwrap();
        let back = round(request.clone()).unwrap();
        assert_eq!(back.uri(), request.uri());
        assert_eq!(back.uri().host(), Some("example.com"));
    }

    #[test]
    fn headers_come_back_in_order_with_their_secrecy() {
        let mut request = get("http://a/");
        let headers = request.headers_mut();
        let mut secret = HeaderValue::from_static("Bearer x");
        secret.set_sensitive(true);
        headers.append("authorization", secret);
        headers.append("x-many", HeaderValue::from_static("one"));
        headers.append("x-many", HeaderValue::from_bytes(b"\xfftwo").unwrap());
        headers.append("x-empty", HeaderValue::from_static(""));
        let back = round(request.clone()).unwrap();
        assert_eq!(back.headers(), request.headers());
        assert!(back.headers()["authorization"].is_sensitive());
        assert!(!back.headers()["x-empty"].is_sensitive());
    }

    #[test]
    fn method_version_and_extensions_come_back() {
        let mut request = get("http://a/");
        *request.method_mut() = Method::from_bytes(b"PROPFIND").unwrap();
        *request.version_mut() = Version::HTTP_2;
        request.extensions_mut().insert(7_u8);
        let back = round(request).unwrap();
        assert_eq!(back.method(), "PROPFIND");
        assert_eq!(back.version(), Version::HTTP_2);
        assert_eq!(back.extensions().get(), Some(&7_u8));
    }

    #[test]
    fn bodies_of_every_size_come_back() {
        for size in [0, 1, COPIED, COPIED + 1, 1 << 20] {
            let data: Bytes = (0..size).map(|n| n as u8).collect();
            let back = round(Request::new(Full::new(data.clone()))).unwrap();
            let back = back.body().data().unwrap().cloned().unwrap_or_default();
            assert_eq!(back, data);
        }
    }

    #[test]
    fn a_secret_is_not_in_its_debug_form() {
        let mut request = get("http://a/");
        request.headers_mut().insert("authorization", HeaderValue::from_static("hunter2"));
        let kept = kept(request).unwrap();
        assert!(!format!("{kept:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn any_headers_come_back(
            headers in proptest::collection::vec(
                ("[a-z0-9-]{1,20}", proptest::collection::vec(32_u8..127, 0..40)),
                0..20,
            ),
        ) {
            let mut request = get("http://a/");
            for (name, value) in headers {
                request.headers_mut().append(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_bytes(&value).unwrap(),
                );
            }
            let back = round(request.clone()).unwrap();
            prop_assert_eq!(back.headers(), request.headers());
        }
    }
}
