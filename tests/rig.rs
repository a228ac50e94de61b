//! Each of our layers around a service, in one shape, so that one test can go over all of them.

use abate::grpc::GrpcStatusLayer;
use abate::{
    AttemptTimeoutLayer, BoxError, BreakerHandle, BudgetHandle, BufferedResponseLayer,
    CircuitBreakerLayer, ConcurrencyLimitHandle, ConcurrencyLimitLayer, CooldownLayer,
    DeadlineLayer, Error, IdempotencyKeyLayer, Policy, ReplayBody, Report, RetryAfterLayer,
    RetryBudgetLayer, RetryLayer, Stack, Tried, TriedResult,
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use tower::util::{BoxCloneSyncService, MapResponse};
use tower::{Layer, Service, ServiceExt};

use crate::probe::{Probe, ProbeBody, ProbeHandle};

/// Any of our services, over any that answers with the body of a probe.
pub type Client = BoxCloneSyncService<Request<Full<Bytes>>, Response<AnyBody>, Error>;

/// Any body that ends in the body of a probe.
pub type AnyBody = BoxBody<Bytes, BoxError>;

/// Our layers, and all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`RetryLayer`]
    Retry,
    /// [`CircuitBreakerLayer`]
    CircuitBreaker,
    /// [`RetryAfterLayer`]
    RetryAfter,
    /// [`ConcurrencyLimitLayer`]
    ConcurrencyLimit,
    /// [`AttemptTimeoutLayer`]
    AttemptTimeout,
    /// [`DeadlineLayer`]
    Deadline,
    /// [`RetryBudgetLayer`]
    RetryBudget,
    /// [`CooldownLayer`], which holds for as long as a call waits for a permit.
    Cooldown,
    /// [`IdempotencyKeyLayer`], which gives each request a key.
    IdempotencyKey,
    /// [`BufferedResponseLayer`]
    BufferedResponse,
    /// [`GrpcStatusLayer`]
    GrpcStatus,
    /// [`Stack`]
    Stack,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Retry,
        Self::CircuitBreaker,
        Self::RetryAfter,
        Self::ConcurrencyLimit,
        Self::AttemptTimeout,
        Self::Deadline,
        Self::RetryBudget,
        Self::Cooldown,
        Self::IdempotencyKey,
        Self::BufferedResponse,
        Self::GrpcStatus,
        Self::Stack,
    ];

    /// Those that try again.
    pub const RETRYING: [Self; 2] = [Self::Retry, Self::Stack];

    /// Whether it has read a body before it hands it on.
    #[must_use]
    pub fn reads_ahead(self) -> bool {
        self == Self::BufferedResponse
    }

    /// Whether it tries again.
    #[must_use]
    pub fn retries(self) -> bool {
        Self::RETRYING.contains(&self)
    }
}

/// Makes a module for each law, and in it a test for each layer: `law::layer`.
///
/// `tests/house.rs` reads it, and compares it with the tables in docs/contract.md.
#[macro_export]
macro_rules! cells {
    ($layers:tt $($law:ident: $check:path;)+) => {
        $($crate::cells!(@law $law $check, $layers);)+
        $crate::cells!(@all $layers);
    };
    (@law $law:ident $check:path, [$($layer:ident: $kind:ident),+]) => {
        mod $law {
            use super::*;
            $(
                #[tokio::test(start_paused = true)]
                async fn $layer() {
                    $check($crate::rig::Kind::$kind).await;
                }
            )+
        }
    };
    (@all [$($layer:ident: $kind:ident),+]) => {
        const _: [$crate::rig::Kind; $crate::rig::Kind::ALL.len()] =
            [$($crate::rig::Kind::$kind),+];
    };
}

/// A probe whose 503 asks for 300 ms.
pub type Telling = MapResponse<Probe, fn(Response<ProbeBody>) -> Response<ProbeBody>>;

/// See [`Telling`].
#[must_use]
pub fn telling(probe: Probe) -> Telling {
    MapResponse::new(probe, |mut response| {
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert("retry-after-ms", HeaderValue::from_static("300"));
        }
        response
    })
}

/// A service that both a retry layer and the others can stand on.
pub trait Inner: Below<Request<Full<Bytes>>> + Below<Request<ReplayBody<Full<Bytes>>>> {}

impl<S> Inner for S where S: Below<Request<Full<Bytes>>> + Below<Request<ReplayBody<Full<Bytes>>>> {}

/// A service that answers requests `R`.
pub trait Below<R>:
    Service<
        R,
        Response = Response<Self::Body>,
        Error: Into<BoxError> + 'static,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// The body of its responses.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + Unpin + 'static;
}

impl<S, R, B> Below<R> for S
where
    S: Service<R, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + Unpin + 'static,
{
    type Body = B;
}

/// A layer around a service, with all that can be watched.
#[derive(Debug, Clone)]
pub struct Rig {
    /// Which layer it is.
    pub kind: Kind,
    /// The service.
    pub client: Client,
    /// The retry budget, where there is one.
    pub budget: Option<BudgetHandle>,
    /// The breaker, where there is one.
    pub breaker: Option<BreakerHandle>,
    /// The concurrency limit, where there is one.
    pub limit: Option<ConcurrencyLimitHandle>,
}

impl Rig {
    /// The layer of that kind, by `policy`, around `inner`.
    pub fn new<S: Inner>(kind: Kind, policy: &Policy, inner: S) -> Self {
        if kind.retries() {
            Self::retrying(kind, policy, inner)
        } else {
            Self::plain(kind, policy, inner)
        }
    }

    /// The same around a probe.
    #[must_use]
    pub fn over(kind: Kind, policy: &Policy, probe: Probe) -> (Self, ProbeHandle) {
        let handle = probe.handle();
        (Self::new(kind, policy, probe), handle)
    }

    /// The same, with all that a probe can say: to a [`CooldownLayer`], how long to wait.
    #[must_use]
    pub fn told(kind: Kind, policy: &Policy, probe: Probe) -> (Self, ProbeHandle) {
        let handle = probe.handle();
        if kind == Kind::Cooldown {
            return (Self::new(kind, policy, telling(probe)), handle);
        }
        Self::over(kind, policy, probe)
    }

    /// A layer that tries again; the whole stack for every other.
    pub fn retrying<S>(kind: Kind, policy: &Policy, inner: S) -> Self
    where
        S: Below<Request<ReplayBody<Full<Bytes>>>>,
    {
        if kind == Kind::Retry {
            let layer = RetryLayer::new(policy.clone());
            let rig = Self::of(kind, layer.layer(inner));
            return Self { budget: layer.budget(), ..rig };
        }
        let stack = Stack::new(policy.clone());
        Self {
            budget: stack.budget(),
            breaker: Some(stack.breaker()),
            limit: Some(stack.limit()),
            ..Self::of(Kind::Stack, stack.layer(inner))
        }
    }

    /// A layer that does not try again; the deadline for every other.
    pub fn plain<S>(kind: Kind, policy: &Policy, inner: S) -> Self
    where
        S: Below<Request<Full<Bytes>>>,
    {
        match kind {
            Kind::CircuitBreaker => {
                let layer = CircuitBreakerLayer::new(policy);
                let rig = Self::of(kind, layer.layer(inner));
                Self { breaker: Some(layer.handle()), ..rig }
            }
            Kind::RetryAfter => Self::of(kind, RetryAfterLayer::new().layer(inner)),
            Kind::ConcurrencyLimit => {
                let layer = ConcurrencyLimitLayer::from_policy(policy);
                let rig = Self::of(kind, layer.layer(inner));
                Self { limit: Some(layer.handle()), ..rig }
            }
            Kind::AttemptTimeout => {
                Self::of(kind, AttemptTimeoutLayer::new(policy.attempt_timeout()).layer(inner))
            }
            Kind::RetryBudget => {
                let layer = RetryBudgetLayer::new(policy);
                let rig = Self::of(kind, layer.layer(inner));
                Self { budget: Some(layer.budget()), ..rig }
            }
            Kind::Cooldown => {
                let layer = CooldownLayer::new(policy).holding(policy.concurrency_wait());
                Self::of(kind, layer.layer(inner))
            }
            Kind::IdempotencyKey => {
                Self::of(kind, IdempotencyKeyLayer::new().with_rule(|_| true).layer(inner))
            }
            Kind::BufferedResponse => Self::of(kind, BufferedResponseLayer::default().layer(inner)),
            Kind::GrpcStatus => Self::of(kind, GrpcStatusLayer::new().layer(inner)),
            Kind::Deadline | Kind::Retry | Kind::Stack => {
                let layer = DeadlineLayer::new(policy.total_timeout());
                Self::of(Kind::Deadline, layer.layer(inner))
            }
        }
    }

    /// Any service of ours, with nothing to watch yet, to be treated as one of that kind.
    pub fn of<S, B>(kind: Kind, service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Error>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
    {
        let boxed = |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed());
        let client = BoxCloneSyncService::new(service.map_response(boxed));
        Self { kind, client, budget: None, breaker: None, limit: None }
    }

    /// The tokens in stock; none without a budget.
    #[must_use]
    pub fn tokens(&self) -> Option<f64> {
        self.budget.as_ref().map(BudgetHandle::tokens)
    }

    /// The permits in use; 0 without a limit.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.limit.as_ref().map_or(0, ConcurrencyLimitHandle::in_use)
    }
}

/// A call, from readiness to the end of the body.
///
/// # Errors
///
/// Those of the client; one of the body stands in the response.
pub async fn call(client: Client) -> Result<Response<Result<Bytes, BoxError>>, Error> {
    let (head, body) = client.oneshot(get()).await?.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    Ok(Response::from_parts(head, body))
}

/// What the attempts came to: a status each, 0 for none.
#[must_use]
pub fn tried(report: &Report) -> Vec<u16> {
    let code = |tried: &Tried| match tried.result() {
        TriedResult::Status(status) => status.as_u16(),
        _ => 0,
    };
    report.tried().iter().map(code).collect()
}

/// A request that may be repeated.
#[must_use]
pub fn get() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}
