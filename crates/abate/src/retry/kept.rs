//! What is kept of a request so that it can be sent again.
//!
//! Cloning a `HeaderMap` whose values came from the network costs an allocation a header, and a
//! first clone of freshly made `Bytes` one more: every call would pay for the few that fail. The
//! head, and a small body, are written flat into a buffer of the thread's pool instead, and only a
//! repeat builds a request out of it.

use std::cell::RefCell;
use std::fmt;

use bytes::{BufMut, Bytes};
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use http_body::Body;

use crate::body::ReplayBody;

/// A body up to this length is copied, which is cheaper than the allocation that sharing it may
/// need; a longer one is shared.
const COPIED: usize = 4 * 1024;

/// The bytes that a thread keeps for reuse, and the largest buffer that is worth it.
const POOLED: usize = 1024 * 1024;
const LARGEST_POOLED: usize = 64 * 1024;

/// What a new buffer has room for: the head of a usual request, and some body.
const USUAL: usize = 1024;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { buffers: Vec::new(), bytes: 0 }) };
}

struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pool {
    /// An empty buffer. A thread that is ending has no pool any more.
    fn take() -> Vec<u8> {
        let take = |pool: &RefCell<Self>| {
            let pool = &mut *pool.borrow_mut();
            let buffer = pool.buffers.pop()?;
            pool.bytes -= buffer.capacity();
            Some(buffer)
        };
        POOL.try_with(take).ok().flatten().unwrap_or_else(|| Vec::with_capacity(USUAL))
    }

    fn give_back(mut buffer: Vec<u8>) {
        if buffer.capacity() > LARGEST_POOLED {
            return;
        }
        let _ = POOL.try_with(|pool| {
            let pool = &mut *pool.borrow_mut();
            if pool.bytes + buffer.capacity() <= POOLED {
                buffer.clear();
                pool.bytes += buffer.capacity();
                pool.buffers.push(buffer);
            }
        });
    }
}

/// A request that can be sent again.
pub(super) struct Kept {
    method: Method,
    version: Version,
    extensions: Option<Extensions>,
    /// The URI, the headers, and the body if it was copied.
    flat: Vec<u8>,
    uri: FlatUri,
    head: usize,
    shared: Option<Bytes>,
}

impl Kept {
    /// Keeps what is needed of `request`; `None` when its body can be sent only once.
    pub(super) fn of<B>(request: &Request<ReplayBody<B>>) -> Option<Self>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let data = request.body().data()?;
        let mut flat = Pool::take();
        let uri = FlatUri::write(request.uri(), &mut flat);
        for (name, value) in request.headers() {
            write_header(name, value, &mut flat);
        }
        let head = flat.len();
        let shared = match data {
            Some(data) if data.len() <= COPIED => {
                flat.extend_from_slice(data);
                None
            }
            data => data.cloned(),
        };
        let extensions = request.extensions();
        Some(Self {
            method: request.method().clone(),
            version: request.version(),
            extensions: (!extensions.is_empty()).then(|| extensions.clone()),
            flat,
            uri,
            head,
            shared,
        })
    }

    /// The request once more. `None` would mean that a URI or a header which was valid is not.
    pub(super) fn request<B>(&self) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let copied = &self.flat[self.head..];
        let data = match &self.shared {
            None if copied.is_empty() => None,
            None => Some(Bytes::copy_from_slice(copied)),
            shared => shared.clone(),
        };
        let mut request = Request::new(ReplayBody::whole(data));
        *request.method_mut() = self.method.clone();
        *request.version_mut() = self.version;
        *request.uri_mut() = self.uri.read(&self.flat)?;
        *request.headers_mut() = read_headers(&self.flat[self.uri.end..self.head])?;
        if let Some(extensions) = &self.extensions {
            *request.extensions_mut() = extensions.clone();
        }
        Some(request)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        Pool::give_back(std::mem::take(&mut self.flat));
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

/// Where the parts of a URI end. They are kept apart, since not every URI that can be made of
/// parts can be parsed from one text: `OPTIONS *` has an authority and the path `*`.
#[derive(Debug, Clone, Copy)]
struct FlatUri {
    scheme: usize,
    authority: usize,
    end: usize,
}

impl FlatUri {
    fn write(uri: &Uri, flat: &mut Vec<u8>) -> Self {
        let mut write = |part: Option<&str>| {
            flat.extend_from_slice(part.unwrap_or_default().as_bytes());
            flat.len()
        };
        Self {
            scheme: write(uri.scheme_str()),
            authority: write(uri.authority().map(Authority::as_str)),
            end: write(uri.path_and_query().map(PathAndQuery::as_str)),
        }
    }

    fn read(&self, flat: &[u8]) -> Option<Uri> {
        let mut parts = uri::Parts::default();
        if self.scheme > 0 {
            parts.scheme = Some(Scheme::try_from(&flat[..self.scheme]).ok()?);
        }
        if self.authority > self.scheme {
            let authority = &flat[self.scheme..self.authority];
            parts.authority = Some(Authority::try_from(authority).ok()?);
        }
        if self.end > self.authority {
            let path = &flat[self.authority..self.end];
            parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        }
        Uri::from_parts(parts).ok()
    }
}

fn write_header(name: &HeaderName, value: &HeaderValue, flat: &mut Vec<u8>) {
    let name = name.as_str().as_bytes();
    // Neither length can exceed 32 bits: `http` limits names to 64 KiB, and a value of 4 GiB would
    // have been refused by every peer.
    flat.put_u32_ne(name.len() as u32);
    flat.put_u32_ne(value.len() as u32);
    flat.push(u8::from(value.is_sensitive()));
    flat.extend_from_slice(name);
    flat.extend_from_slice(value.as_bytes());
}

fn read_headers(mut flat: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    while !flat.is_empty() {
        let name = length(&mut flat)?;
        let value = length(&mut flat)?;
        let (sensitive, rest) = flat.split_first()?;
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        let mut value = HeaderValue::from_bytes(value).ok()?;
        value.set_sensitive(*sensitive != 0);
        headers.append(HeaderName::from_bytes(name).ok()?, value);
        flat = rest;
    }
    Some(headers)
}

fn length(flat: &mut &[u8]) -> Option<usize> {
    let (length, rest) = flat.split_first_chunk()?;
    *flat = rest;
    usize::try_from(u32::from_ne_bytes(*length)).ok()
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};
    use proptest::prelude::*;

    use super::*;

    fn round<B>(request: Request<B>) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        Kept::of(&request.map(ReplayBody::new))?.request()
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
        let kept = Kept::of(&request.map(ReplayBody::new)).unwrap();
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
