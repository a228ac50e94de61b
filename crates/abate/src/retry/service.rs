use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::{Context, Poll};

use abate_core::safety::Safety;
use abate_core::session::{Session, Traits};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use rustc_hash::FxHasher;
use tower_service::Service;

use super::call::Call;
use super::future::ResponseFuture;
use super::kept::Kept;
use super::shared::{Shared, Terms};
use crate::body::ReplayBody;
use crate::context::{Attempt, Scope};
use crate::error::{BoxError, Error};

/// The service of [`RetryLayer`](super::RetryLayer).
pub struct Retry<S> {
    inner: S,
    shared: Arc<Shared<S>>,
}

impl<S: Clone> Retry<S> {
    pub(super) fn new(inner: S, terms: Arc<Terms>) -> Self {
        let shared = Arc::new(Shared::new(terms, inner.clone()));
        Self { inner, shared }
    }
}

impl<S, B, ResBody> Service<Request<B>> for Retry<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Unpin,
    ResBody: Body,
{
    type Response = Response<ResBody>;
    type Error = Error;
    type Future = ResponseFuture<S, B, ResBody>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let target = target(&request);
        let terms = &self.shared.terms;
        let now = scope.now();

        let deadline = scope.earliest_deadline(&request);
        let safety =
            Safety::of(request.method(), request.headers(), request.extensions().get().copied());
        let around = Attempt::current();
        let marked = request.extensions().get::<Attempt>().copied();
        let above = [around, marked].into_iter().flatten().find(|it| it.has_target(target));
        let retries = terms.policy.attempts() > 1 && above.is_none();

        let (mut request, kept) = if retries {
            let request = request.map(ReplayBody::new);
            let kept = Kept::of(&request);
            (request, kept)
        } else {
            if above.is_some() {
                terms.stand_down();
            }
            (request.map(ReplayBody::once), None)
        };
        let traits = Traits { safety, replayable: kept.is_some(), nested: above.is_some() };
        let session = Session::new(&terms.policy, deadline, now);
        let shared = Arc::clone(&self.shared);
        let mut call = Call::new(shared, session, traits, kept, deadline, target, above);
        call.mark(&mut request, false);
        // A call that a layer below another retry makes of its own (a token fetch): what becomes of
        // it is not the other's affair.
        let apart = around.is_some() && above.is_none();
        let _sent = scope.keep_sent(apart);
        let inner = call.send(&scope, &mut self.inner, request, None);
        ResponseFuture::new(inner, call, apart)
    }
}

/// Tells whether two requests mean the same thing to a retry: method, authority (or `Host`) and
/// path.
fn target<B>(request: &Request<B>) -> u64 {
    let mut hasher = FxHasher::default();
    request.method().as_str().hash(&mut hasher);
    match request.uri().authority() {
        Some(authority) => authority.as_str().as_bytes().hash(&mut hasher),
        None => request.headers().get(HOST).map(HeaderValue::as_bytes).hash(&mut hasher),
    }
    request.uri().path().hash(&mut hasher);
    hasher.finish()
}

impl<S: Clone> Clone for Retry<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug> fmt::Debug for Retry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("inner", &self.inner).field("shared", &self.shared).finish()
    }
}
