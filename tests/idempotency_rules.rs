//! What may be repeated without a key: by the caller's word, by a rule for a route, and once.

use abate::{Idempotent, NonIdempotent, PolicyBuilder, Report, RetryLayer, Stack, StopReason};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, busy_twice, policy, post, request};

type Sent = Request<Full<Bytes>>;

fn marked(mut request: Sent, mark: bool) -> Sent {
    request.extensions_mut().insert(Idempotent(mark));
    request
}

fn keyed(mut request: Sent) -> Sent {
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("order-7"));
    request
}

fn query() -> Sent {
    request(Method::POST, "http://bank.test/graphql/query")
}

/// GraphQL by POST: queries may be repeated, whatever else comes to that server may not.
fn graphql() -> PolicyBuilder {
    policy().with_idempotent(|head| match head.uri.path() {
        "/graphql/query" => Some(true),
        "/counter" => Some(false),
        _ => None,
    })
}

/// The attempts of a call that is busy twice, alone and in the stack.
async fn attempts(policy: &PolicyBuilder, request: &Sent) -> Result<usize, BoxError> {
    let policy = policy.clone().build()?;
    let (alone, stacked) = (busy_twice(), busy_twice());
    RetryLayer::new(policy.clone()).layer(alone.clone()).oneshot(request.clone()).await?;
    Stack::new(policy).layer(stacked.clone()).oneshot(request.clone()).await?;
    assert_eq!(alone.count(), stacked.count());
    Ok(alone.count())
}

// ID-07
#[tokio::test(start_paused = true)]
async fn a_post_that_its_caller_marks_is_retried_like_a_get_and_its_twin_is_not() -> Tested {
    let get = request(Method::GET, "http://bank.test/graphql/query");
    assert_eq!(attempts(&policy(), &get).await?, 3);
    let tagged = marked(query(), true);
    assert_eq!(attempts(&policy(), &tagged).await?, 3);
    assert_eq!(attempts(&policy(), &tagged.clone()).await?, 3, "the tag survives a clone");
    assert_eq!(attempts(&policy(), &query()).await?, 1);
    Ok(())
}

// ID-07
#[tokio::test(start_paused = true)]
async fn a_rule_says_it_for_a_route_and_for_one_dependency() -> Tested {
    assert_eq!(attempts(&graphql(), &query()).await?, 3);
    assert_eq!(attempts(&graphql(), &post()).await?, 1, "another route");
    assert_eq!(attempts(&policy(), &query()).await?, 1, "another dependency");
    Ok(())
}

// ID-07
#[tokio::test(start_paused = true)]
async fn clones_of_policy_layer_and_service_keep_the_rule() -> Tested {
    let (policy, script) = (graphql().build()?, busy_twice());
    let layer = RetryLayer::new(policy.clone()).with_seed(1).without_budget();
    let service = layer.clone().layer(script.clone());
    let response = service.clone().oneshot(query()).await?;
    assert_eq!(response.extensions().get::<Report>().map(Report::attempts), Some(3));
    assert_eq!(policy, policy.clone());
    Ok(())
}

// ID-07
#[tokio::test(start_paused = true)]
async fn the_mark_wins_over_the_rule_the_rule_over_the_key_and_the_key_over_the_method() -> Tested {
    let counter = |method| request(method, "http://bank.test/counter");
    for (request, sent) in [
        (marked(query(), false), 1),
        (marked(counter(Method::POST), true), 3),
        (counter(Method::GET), 1),
        (keyed(counter(Method::POST)), 1),
        (keyed(post()), 3),
        (post(), 1),
    ] {
        assert_eq!(attempts(&graphql(), &request).await?, sent, "{request:?}");
    }
    Ok(())
}

// ID-01: the opt-in.
#[tokio::test(start_paused = true)]
async fn once_is_one_more_attempt_for_what_nothing_says_is_idempotent() -> Tested {
    let once = graphql().with_non_idempotent(NonIdempotent::Once);
    let counter = request(Method::POST, "http://bank.test/counter");
    for (request, sent) in
        [(post(), 2), (query(), 3), (keyed(post()), 3), (marked(post(), false), 1), (counter, 1)]
    {
        assert_eq!(attempts(&once, &request).await?, sent, "{request:?}");
    }
    let script = Script::of([Answer::status(503)]);
    let service = RetryLayer::new(once.build()?).layer(script.clone());
    let response = service.oneshot(post()).await?;
    let report = response.extensions().get::<Report>();
    assert_eq!(report.and_then(Report::stop_reason), Some(StopReason::NotIdempotent));
    assert_eq!(script.count(), 2);
    Ok(())
}
