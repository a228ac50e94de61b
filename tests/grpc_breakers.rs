//! What gRPC's codes are to a breaker and to a retry budget.

use abate::grpc::GrpcStatusLayer;
use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Policy, RetryLayer};
use abate_tests::script::{Answer, Script};
use http_body_util::BodyExt;
use tokio::time::sleep;
use tower::{BoxError, Layer, ServiceExt};

use crate::{MESSAGE, Tested, call, head, millis, ok, repeatable, trailers};

/// The state of a breaker after three seconds of an answer, read to its end or not at all.
async fn state_after(answer: Answer, read: bool) -> Result<BreakerState, BoxError> {
    let breaker = CircuitBreakerLayer::new(Policy::builder().with_grpc().build()?);
    let service = breaker.layer(GrpcStatusLayer::new().layer(Script::of([answer])));
    for _ in 0..30 {
        match service.clone().oneshot(call()).await {
            Ok(response) if read => drop(response.into_body().collect().await?),
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::BreakerOpen),
        }
        sleep(millis(100)).await;
    }
    Ok(breaker.handle().state())
}

fn in_trailers(code: &'static str) -> Answer {
    head().body([trailers(code)])
}

// CL-04
#[tokio::test(start_paused = true)]
async fn a_breaker_opens_on_trouble_and_on_nothing_else() -> Tested {
    for code in ["2", "4", "13", "14"] {
        assert_eq!(state_after(in_trailers(code), false).await?, BreakerState::Open, "{code}");
        let in_head = head().header("grpc-status", code);
        assert_eq!(state_after(in_head, false).await?, BreakerState::Open, "{code}");
    }
    for code in ["0", "1", "3", "5", "8", "10", "12", "16"] {
        assert_eq!(state_after(in_trailers(code), false).await?, BreakerState::Closed, "{code}");
    }
    Ok(())
}

// CL-04
#[tokio::test(start_paused = true)]
async fn a_failure_behind_a_message_is_one_to_the_breaker_when_it_is_read() -> Tested {
    let failed = |code| head().body([MESSAGE, trailers(code)]);
    assert_eq!(state_after(failed("14"), true).await?, BreakerState::Open);
    assert_eq!(state_after(failed("14"), false).await?, BreakerState::Closed, "nobody knows");
    for code in ["0", "5", "8"] {
        assert_eq!(state_after(failed(code), true).await?, BreakerState::Closed, "{code}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_failure_earns_no_retries_and_a_success_does() -> Tested {
    let policy = || Policy::builder().with_grpc().with_attempts(1).with_budget_floor(0.0);
    for (answer, earns) in [(in_trailers("14"), false), (in_trailers("5"), true), (ok(), true)] {
        let retries = RetryLayer::new(policy().build()?);
        let budget = retries.budget().ok_or("a budget")?;
        let service = retries.layer(GrpcStatusLayer::new().layer(Script::of([answer])));
        let before = budget.tokens();
        for _ in 0..10 {
            service.clone().oneshot(repeatable()).await?;
        }
        sleep(millis(1)).await;
        assert_eq!(budget.tokens() > before, earns, "{before} and then {}", budget.tokens());
    }
    Ok(())
}
