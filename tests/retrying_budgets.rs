//! What pays for retries.

use std::time::Duration;

use abate::{BudgetHandle, ErrorKind, Policy, PolicyError, RetryLayer, StopReason, TriedResult};
use abate_tests::script::{Answer, Script};
use futures_util::future::join_all;
use http::{StatusCode, Uri};
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceExt};

use super::{Tested, get, millis, retries, seconds, stop};

/// One retry, and one token that nothing replaces but success.
fn poor() -> Result<RetryLayer, PolicyError> {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(0.0).build()?;
    Ok(RetryLayer::new(policy).with_seed(1))
}

/// Fails as often as it is called.
fn down() -> Script {
    Script::of([Answer::status(503)])
}

/// The attempts of one call through `layer` while all fails.
async fn attempts(layer: &RetryLayer) -> Result<usize, abate::Error> {
    let script = down();
    layer.layer(script.clone()).oneshot(get()).await?;
    Ok(script.count())
}

/// Earns by as many successes.
async fn earn(layer: &RetryLayer, successes: usize) -> Tested {
    let service = layer.layer(Script::of([Answer::status(200)]));
    for _ in 0..successes {
        service.clone().oneshot(get()).await?;
    }
    // A look at it counts what was earned now, and not later as if it had come evenly until then.
    let _ = layer.budget().map(|budget| budget.tokens());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_has_all_attempts_for_its_first_failing_call() -> Tested {
    for _ in 0..100 {
        let script = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
        let layer = RetryLayer::new(Policy::default());
        let response = layer.layer(script.clone()).oneshot(get()).await?;
        assert_eq!((response.status().as_u16(), script.count()), (200, 3));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_costs_one_token_and_five_successes_earn_one() -> Tested {
    let layer = poor()?;
    let tokens = || layer.budget().map_or(0.0, |budget| budget.tokens());
    assert_eq!(tokens(), 1.5);
    earn(&layer, 5).await?;
    assert!((tokens() - 2.5).abs() < 1e-6, "{}", tokens());
    assert_eq!(attempts(&layer).await?, 2);
    assert!(tokens() > 1.48 && tokens() <= 1.5, "{}", tokens());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shared_budget_is_spent_and_earned_by_all_who_share_it() -> Tested {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(0.0).build()?;
    let budget = BudgetHandle::new(&policy);
    let layer = RetryLayer::new(policy);
    let web = layer.clone().with_budget(budget.clone()).with_seed(1);
    let jobs = layer.with_seed(2).with_budget(budget);
    assert_eq!(attempts(&web).await?, 2);
    assert_eq!(attempts(&jobs).await?, 1, "the other one has spent it");
    earn(&jobs, 10).await?;
    assert_eq!(attempts(&web).await?, 2, "and earns for both");
    Ok(())
}

// BU-10
#[tokio::test(start_paused = true)]
async fn layers_have_budgets_of_their_own_which_their_clones_share() -> Tested {
    let a = poor()?;
    assert_eq!(attempts(&a).await?, 2);
    assert_eq!(attempts(&a.clone()).await?, 1);
    assert_eq!(attempts(&poor()?).await?, 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_nothing_bounds_the_sum() -> Tested {
    let layer = retries(3)?;
    assert!(layer.budget().is_none());
    for _ in 0..100 {
        assert_eq!(attempts(&layer).await?, 3);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_retries_tend_to_none() -> Tested {
    let script = down();
    let service = RetryLayer::new(Policy::default()).layer(script.clone());
    let calls = (0_u32..1_000).map(|n| {
        let service = service.clone();
        async move {
            sleep(millis(10) * n).await;
            service.oneshot(get()).await
        }
    });
    let mut reasons = Vec::new();
    for response in join_all(calls).await {
        reasons.push(stop(&response?));
    }
    let retries = script.count() - 1_000;
    assert!((2..=4).contains(&retries), "2 at the start and 0.2 a second, not {retries}");
    assert!(reasons.contains(&Some(StopReason::Budget)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_was_earned_before_is_not_spent_at_once() -> Tested {
    let layer = RetryLayer::new(Policy::default()).with_seed(1);
    earn(&layer, 100).await?;
    sleep(seconds(5)).await;
    let tokens = layer.budget().map_or(0.0, |budget| budget.tokens());
    assert!(tokens > 10.0, "{tokens}");
    let script = Script::per_path([Answer::status(503), Answer::status(200)]);
    let responses = burst(&layer, &script, 8).await;
    let retries = script.count() - 8;
    assert!((2..=3).contains(&retries), "{retries} retries at once, with {tokens} tokens");
    let paced = responses.iter().filter(|response| match response {
        Ok(response) => stop(response) == Some(StopReason::Pace),
        Err(error) => error.kind() == ErrorKind::RetryRefused(StopReason::Pace),
    });
    assert_eq!(paced.count(), 8 - retries);
    Ok(())
}

/// As many calls at once, each with a path of its own.
async fn burst(
    layer: &RetryLayer,
    script: &Script,
    calls: usize,
) -> Vec<Result<http::Response<abate_tests::play::Played>, abate::Error>> {
    let service = layer.layer(script.clone());
    join_all((0..calls).map(|n| {
        let mut request = get();
        *request.uri_mut() = Uri::try_from(format!("http://a.test/{n}")).unwrap_or_default();
        service.clone().oneshot(request)
    }))
    .await
}

#[tokio::test(start_paused = true)]
async fn a_retry_refused_after_its_wait_is_an_error_that_keeps_the_earlier_outcomes() -> Tested {
    let layer = RetryLayer::new(Policy::default()).with_seed(1);
    earn(&layer, 100).await?;
    let busy = Answer::status(503).header("retry-after", "5");
    let script = Script::per_path([busy, Answer::status(200)]);
    let tokens = layer.budget().unwrap().tokens();
    let responses = burst(&layer, &script, 8).await;

    let errors: Vec<_> = responses.iter().filter_map(|it| it.as_ref().err()).collect();
    let served = responses.iter().flatten().filter(|it| it.status() == 200).count();
    assert_eq!((errors.len(), served), (6, 2), "the server's wish ended all waits together");
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::RetryRefused(StopReason::Pace));
        assert_eq!(error.attempts(), 1);
        let told = error.report().cloned().unwrap_or_default();
        assert_eq!(told.stop_reason(), Some(StopReason::Pace));
        let earlier = TriedResult::Status(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(told.tried()[0].result(), earlier);
        assert!(told.elapsed() >= seconds(5));
    }
    assert_eq!(script.count(), 10, "what was refused was never sent");
    let faded = tokens * (-0.6_f64).exp();
    let left = layer.budget().unwrap().tokens();
    assert!(left > faded - 2.0, "the tokens of the six came back: {left} of {tokens}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refused_retry_leaves_the_next_call_its_retries() -> Tested {
    let layer = RetryLayer::new(Policy::default()).with_seed(1);
    earn(&layer, 100).await?;
    let busy = Answer::status(503).header("retry-after", "5");
    for round in 0..5 {
        let script = Script::per_path([busy.clone(), Answer::status(200)]);
        let responses = burst(&layer, &script, 3).await;
        let served = responses.iter().flatten().filter(|it| it.status() == 200).count();
        assert!(served >= 1, "round {round}: nothing was let through");
        sleep(Duration::from_secs(20)).await;
    }
    assert!(attempts(&layer).await? >= 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_while_it_waits_returns_its_token() -> Tested {
    let layer = poor()?;
    let script = Script::of([Answer::status(503).header("retry-after", "5")]);
    let call = layer.layer(script.clone()).oneshot(get());
    assert!(timeout(millis(100), call).await.is_err());
    assert_eq!(script.count(), 1);
    let left = layer.budget().map_or(0.0, |budget| budget.tokens());
    assert!(left > 0.98, "{left}");
    Ok(())
}
