//! Neighbours, stacked by hand in the order of the stack.

use std::time::Duration;

use abate::grpc::GrpcStatusLayer;
use abate::{
    AttemptTimeoutLayer, BreakerState, BufferedResponseLayer, CircuitBreakerLayer,
    ConcurrencyLimitLayer, CooldownLayer, DeadlineLayer, IdempotencyKeyLayer, RetryAfterLayer,
    RetryBudgetLayer, RetryLayer,
};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, Rig, call, telling};
use tokio::time::advance;
use tokio_test::task;
use tower::Layer;

use crate::contract_cancellation::{gives_everything_back, policy};

const SECOND: Duration = Duration::from_secs(1);

/// Three attempts, or three calls; then calls that are dropped at every await.
async fn together(rig: impl Fn(Probe) -> Rig) {
    let answer = |code| Answer::status(code).when(When::Polls(1)).with_chunks(2, When::Polls(1));
    let probe = Probe::answering([answer(503), answer(503), answer(200)])
        .readying([Readiness::Comes(When::Polls(1)); 3]);
    let handle = probe.handle();
    let rig_of_three = rig(probe);
    let (retries, tokens) = (rig_of_three.kind.retries(), rig_of_three.tokens());
    for _ in 0..if retries { 1 } else { 3 } {
        let response = call(rig_of_three.client.clone()).await.unwrap();
        assert_eq!(response.status(), if retries { 200 } else { 503 });
        assert_eq!(response.into_body().unwrap(), "chunkchunk");
    }
    assert_eq!((handle.calls(), handle.most_live()), (3, 1));
    assert_eq!((handle.held(), rig_of_three.in_use()), ((0, 0, 0), 0));
    if let (Some(before), Some(now)) = (tokens, rig_of_three.tokens()) {
        assert!((before - now - 2.0).abs() < 0.1 + 4.0 * 0.3, "two retries: {before}, {now}");
    }
    gives_everything_back(rig).await;
}

/// A probe of the breaker that is dropped at any await leaves its slot to the next call.
async fn gives_probes_back(rig: impl Fn(Probe) -> Rig) {
    for polls in 0.. {
        let probe = Probe::answering([Answer::status(503)]);
        let handle = probe.handle();
        let rig = rig(probe);
        let breaker = rig.breaker.clone().unwrap();
        for _ in 0..20 {
            let _ = call(rig.client.clone()).await;
            advance(SECOND / 5).await;
        }
        assert_eq!(breaker.state(), BreakerState::Open);
        advance(10 * SECOND).await;
        handle.answer([Answer::status(200).when(When::Polls(2)).with_chunks(2, When::Polls(1))]);
        let mut task = task::spawn(call(rig.client.clone()));
        let ended = (0..polls).any(|_| task.poll().is_ready());
        drop(task);
        assert_eq!((handle.held(), rig.in_use()), ((0, 0, 0), 0), "{polls} polls");
        assert!(call(rig.client.clone()).await.is_ok(), "{polls} polls: it is a probe");
        assert_eq!(breaker.state(), BreakerState::Closed, "{polls} polls");
        if ended {
            assert!(polls > 3);
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_over_retry() {
    together(|probe| {
        let retry = RetryLayer::new(policy());
        let service = DeadlineLayer::new(60 * SECOND).layer(retry.layer(probe));
        Rig { budget: retry.budget(), ..Rig::of(Kind::Retry, service) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_over_retry() {
    together(|probe| {
        let retry = RetryLayer::new(policy());
        let keys = IdempotencyKeyLayer::new().with_rule(|_| true);
        let rig = Rig::of(Kind::Retry, keys.layer(retry.layer(probe)));
        Rig { budget: retry.budget(), ..rig }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn retry_over_breaker() {
    let rig = |probe| {
        let (retry, breaker) = (RetryLayer::new(policy()), CircuitBreakerLayer::new(policy()));
        let rig = Rig::of(Kind::Retry, retry.layer(breaker.layer(probe)));
        Rig { budget: retry.budget(), breaker: Some(breaker.handle()), ..rig }
    };
    together(rig).await;
    gives_probes_back(rig).await;
}

#[tokio::test(start_paused = true)]
async fn breaker_over_retry_after() {
    let rig = |probe| {
        let breaker = CircuitBreakerLayer::new(policy());
        let service = breaker.layer(RetryAfterLayer::new().layer(probe));
        Rig { breaker: Some(breaker.handle()), ..Rig::of(Kind::CircuitBreaker, service) }
    };
    together(rig).await;
    gives_probes_back(rig).await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_over_limit() {
    together(|probe| {
        let limit = ConcurrencyLimitLayer::from_policy(policy());
        let service = RetryAfterLayer::new().layer(limit.layer(probe));
        Rig { limit: Some(limit.handle()), ..Rig::of(Kind::ConcurrencyLimit, service) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn limit_over_attempt_timeout() {
    together(|probe| {
        let limit = ConcurrencyLimitLayer::from_policy(policy());
        let service = limit.layer(AttemptTimeoutLayer::new(5 * SECOND).layer(probe));
        Rig { limit: Some(limit.handle()), ..Rig::of(Kind::ConcurrencyLimit, service) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn retry_over_retry_budget() {
    together(|probe| {
        let retry = RetryLayer::new(policy());
        let budget = retry.budget().unwrap();
        let below = RetryBudgetLayer::new(policy()).with_budget(budget.clone());
        let rig = Rig::of(Kind::Retry, retry.layer(below.layer(probe)));
        Rig { budget: Some(budget), ..rig }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn breaker_over_cooldown() {
    let rig = |probe| {
        let breaker = CircuitBreakerLayer::new(policy());
        let cooldown = CooldownLayer::new(policy()).holding(5 * SECOND);
        let rig = Rig::of(Kind::Cooldown, breaker.layer(cooldown.layer(telling(probe))));
        Rig { breaker: Some(breaker.handle()), ..rig }
    };
    together(rig).await;
    gives_probes_back(rig).await;
}

#[tokio::test(start_paused = true)]
async fn breaker_over_buffered_response() {
    let rig = |probe| {
        let breaker = CircuitBreakerLayer::new(policy());
        let service = breaker.layer(BufferedResponseLayer::default().layer(probe));
        Rig { breaker: Some(breaker.handle()), ..Rig::of(Kind::BufferedResponse, service) }
    };
    together(rig).await;
    gives_probes_back(rig).await;
}

#[tokio::test(start_paused = true)]
async fn buffered_response_over_attempt_timeout() {
    together(|probe| {
        let timeout = AttemptTimeoutLayer::new(5 * SECOND).layer(probe);
        Rig::of(Kind::BufferedResponse, BufferedResponseLayer::default().layer(timeout))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cooldown_over_limit() {
    together(|probe| {
        let cooldown = CooldownLayer::new(policy()).holding(5 * SECOND);
        let limit = ConcurrencyLimitLayer::from_policy(policy());
        let rig = Rig::of(Kind::Cooldown, cooldown.layer(limit.layer(telling(probe))));
        Rig { limit: Some(limit.handle()), ..rig }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn attempt_timeout_over_grpc_status() {
    together(|probe| {
        let timeout = AttemptTimeoutLayer::new(5 * SECOND);
        let service = timeout.layer(GrpcStatusLayer::new().layer(probe));
        Rig::of(Kind::AttemptTimeout, service)
    })
    .await;
}
