//! Between reqwest's types and http's, losing nothing on the way.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Extensions, Uri};
use http_body::{Body, Frame, SizeHint};
use reqwest::{ResponseBuilderExt, Url};

use crate::body::ReplayBody;
use crate::error::{BoxError, Error};

/// The URL that a request came with, where a `Uri` cannot have all of it: the fragment.
#[derive(Debug, Clone)]
struct Came(Url);

/// A request of reqwest as one of http. Timeout and version go with it.
pub(super) fn into_http(request: reqwest::Request) -> Result<http::Request<reqwest::Body>, Error> {
    let whole = request.url().fragment().is_some().then(|| request.url().clone());
    let mut request =
        http::Request::<reqwest::Body>::try_from(request).map_err(Error::from_inner)?;
    if let Some(url) = whole {
        request.extensions_mut().insert(Came(url));
    }
    Ok(request)
}

/// The way back, for a body of any kind.
pub(super) fn into_reqwest<B>(mut request: http::Request<B>) -> Result<reqwest::Request, Error>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    let came = request.extensions_mut().remove::<Came>();
    // Unless a layer on the way has changed the target.
    let came = came.filter(|Came(url)| is_target(url, request.uri()));
    let mut request =
        reqwest::Request::try_from(request.map(replayed)).map_err(Error::from_inner)?;
    if let Some(Came(url)) = came {
        *request.url_mut() = url;
    }
    Ok(request)
}

fn is_target(url: &Url, uri: &Uri) -> bool {
    let mut url = url.clone();
    url.set_fragment(None);
    *uri == url.as_str()
}

/// A response of reqwest as one of http, which tells its URL to whoever makes it one of reqwest again.
pub(super) fn answer(response: reqwest::Response) -> http::Response<reqwest::Body> {
    let url = response.url().clone();
    let mut response = http::Response::<reqwest::Body>::from(response);
    response.extensions_mut().extend(told(url));
    response
}

/// A response of http as one of reqwest, to a request for `url`.
pub(super) fn into_answer<B>(response: http::Response<B>, url: Url) -> reqwest::Response
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = response.into_parts();
    // What is told of below prevails: there may have been redirects.
    let below = std::mem::replace(&mut head.extensions, told(url));
    head.extensions.extend(below);
    http::Response::from_parts(head, wrapped(body)).into()
}

/// `url` in the form in which reqwest reads it out of a response: it shows that to its builder only.
fn told(url: Url) -> Extensions {
    let response = http::Response::builder().url(url).body(());
    response.map(|response| response.into_parts().0.extensions).unwrap_or_default()
}

/// A body that reqwest's redirects can send again if it is whole.
fn replayed<B>(body: B) -> reqwest::Body
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    let body = ReplayBody::new(body);
    match body.data() {
        Some(data) => reqwest::Body::from(data.cloned().unwrap_or_default()),
        None => wrapped(body),
    }
}

fn wrapped<B>(body: B) -> reqwest::Body
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    reqwest::Body::wrap(Shared(Mutex::new(body)))
}

/// A body that may be shared though the one within may not: reqwest asks for that. The lock is
/// never waited for, since nobody has two of it.
struct Shared<B>(Mutex<B>);

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, B> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Body + Unpin> Body for Shared<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let body = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}
