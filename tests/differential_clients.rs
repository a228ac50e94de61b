//! The layers that a conduct of the simulator stands for, around a server.

use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, BoxError, ConcurrencyLimitLayer, Error, ErrorKind, Report, RetryLayer,
    Stack,
};
use abate_sim::model::{Conduct, Guarding, Payment};
use abate_sim::trace::Ending;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, ServiceExt};

use crate::differential_calls::Pending;
use crate::differential_server::Server;

/// Tells how a call ends, or that it ends as none can.
pub(crate) type Ended = Result<Ending, BoxError>;

/// The client of one process: makes a call of a number.
pub(crate) type Client = Box<dyn Fn(u32) -> Pending<Ended>>;

pub(crate) fn client(conduct: &Conduct, seed: u64, server: Server) -> Result<Client, BoxError> {
    let Conduct { policy, payment, breaker, attempt_timeout, deadline } = conduct;
    let guarded = *breaker == Guarding::Breaker;
    if guarded && *deadline && *attempt_timeout && *payment == Payment::Budget {
        return Ok(boxed(Stack::new(policy).with_seed(seed).layer(server)));
    }
    if *breaker != Guarding::Off || *deadline {
        return Err("a breaker or a deadline without the rest of the stack".into());
    }
    let retry = match payment {
        Payment::Free => RetryLayer::new(policy).without_budget(),
        Payment::Budget => RetryLayer::new(policy),
        other => return Err(format!("no layer pays by {other:?}").into()),
    };
    let timeout = if *attempt_timeout { policy.attempt_timeout() } else { Duration::MAX };
    let attempt = AttemptTimeoutLayer::new(timeout).layer(server);
    let attempt = ConcurrencyLimitLayer::from_policy(policy).layer(attempt);
    Ok(boxed(retry.with_seed(seed).layer(attempt)))
}

fn boxed<S, B>(service: S) -> Client
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = Error> + Clone + 'static,
    S::Future: 'static,
{
    Box::new(move |call| {
        let mut request = Request::new(Empty::new());
        request.extensions_mut().insert(Number(call));
        Box::pin(service.clone().oneshot(request).map(|answer| ending(&answer)))
    })
}

/// The number of a call, in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number(pub(crate) u32);

fn ending<B>(answer: &Result<Response<B>, Error>) -> Ended {
    let (report, error) = match answer {
        Ok(response) if response.status().is_success() => return Ok(Ending::Success),
        Ok(response) => (response.extensions().get::<Report>(), None),
        Err(error) => (error.report(), Some(error.kind())),
    };
    match (error, report.and_then(Report::stop_reason)) {
        (Some(ErrorKind::BreakerOpen), _) => Ok(Ending::BreakerOpen),
        (Some(ErrorKind::LimitReached), _) => Ok(Ending::LimitReached),
        (Some(ErrorKind::Deadline), _) => Ok(Ending::Deadline),
        (Some(ErrorKind::RetryRefused(reason)), _)
        | (Some(ErrorKind::AttemptTimeout) | None, Some(reason)) => Ok(Ending::Stopped(reason)),
        (error, reason) => Err(format!("an end of {error:?} because of {reason:?}").into()),
    }
}
