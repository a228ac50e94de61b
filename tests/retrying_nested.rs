//! A retry layer below another one.

use abate::{Policy, ReplayBody, Report, RetryLayer, StopReason};
use abate_tests::events::Events;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{Empty, Full};
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tracing::Level;

use super::{Tested, get, report, request, retries, stop};

// AM-01
#[tokio::test(start_paused = true)]
async fn the_inner_one_stands_down_and_says_so_once() -> Tested {
    for (outer, inner) in [(3, 3), (4, 3), (3, 4)] {
        let events = Events::listen();
        let script = Script::of([Answer::status(503)]);
        let service = retries(outer)?.layer(retries(inner)?.layer(script.clone()));
        let response = service.oneshot(get()).await?;
        assert_eq!(script.count(), outer as usize, "{outer} around {inner}");
        assert_eq!(stop(&response), Some(StopReason::Attempts));
        assert_eq!(report(&response).map(Report::attempts), Some(outer));
        let warned = events.take().into_iter().filter(|it| it.level == Level::WARN);
        assert_eq!(warned.count(), 1, "one warning");
    }
    Ok(())
}

// AM-01
#[tokio::test(start_paused = true)]
async fn three_on_top_of_each_other_make_no_more_requests_than_the_first() -> Tested {
    let script = Script::of([Answer::fail(std::io::ErrorKind::ConnectionReset)]);
    let service = retries(3)?.layer(retries(3)?.layer(retries(3)?.layer(script.clone())));
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!((script.count(), error.attempts()), (3, 3));
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Attempts));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_inner_one_does_not_pay() -> Tested {
    let inner = RetryLayer::new(Policy::default());
    let script = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
    retries(3)?.layer(inner.layer(script.clone())).oneshot(get()).await?;
    assert_eq!(script.count(), 3);
    let tokens = inner.budget().map_or(0.0, |budget| budget.tokens());
    assert!((tokens - 2.0).abs() < 1e-6, "neither pays nor earns: {tokens}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_inner_one_stands_down_in_another_calls_shade_only_while_that_lasts() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let inner = retries(3)?.layer(script.clone());
    retries(2)?.layer(inner.clone()).oneshot(get()).await?;
    assert_eq!(script.count(), 2);
    inner.oneshot(get()).await?;
    assert_eq!(script.count(), 5, "called by itself it retries as ever");
    Ok(())
}

// AM-01
#[tokio::test(start_paused = true)]
async fn another_call_made_below_keeps_its_own_retries() -> Tested {
    let busy_twice = [Answer::status(503), Answer::status(503), Answer::status(200)];
    for (method, uri) in [
        (Method::GET, "http://a.test/token"),
        (Method::GET, "http://auth.test/one"),
        (Method::POST, "http://a.test/one"),
    ] {
        let (tokens, script) =
            (Script::per_path(busy_twice.clone()), Script::of(busy_twice.clone()));
        let (fetch, main) = (retries(3)?.layer(tokens.clone()), script.clone());
        let authorized = service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
            let (fetch, main) = (fetch.clone(), main.clone());
            let mut token = Request::new(Empty::<Bytes>::new());
            *token.method_mut() = method.clone();
            *token.uri_mut() = Uri::from_static(uri);
            token.extensions_mut().insert(abate::Idempotent(true));
            async move {
                assert_eq!(fetch.oneshot(token).await?.status(), 200, "{uri}");
                main.oneshot(request).await
            }
        });
        let response = retries(3)?.layer(authorized).oneshot(get()).await?;
        assert_eq!(response.status(), 200);
        assert_eq!((tokens.count(), script.count()), (5, 3), "3, then 1 for each repeat");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_beside_another_is_not_below_it() -> Tested {
    let script = Script::per_path([Answer::status(503)]);
    let service = retries(3)?.layer(script.clone());
    let both = futures_util::future::join(
        service.clone().oneshot(get()),
        service.clone().oneshot(request(Method::PUT)),
    );
    let (one, two) = both.await;
    assert_eq!(
        (stop(&one?), stop(&two?)),
        (Some(StopReason::Attempts), Some(StopReason::Attempts))
    );
    assert_eq!(script.count(), 6);
    Ok::<_, BoxError>(())
}
