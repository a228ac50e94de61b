//! A breaker for each key.

use abate::scope::MOST_KEYS;
use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Policy, Scope, Stack};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::{advance, sleep};
use tower::{Layer, ServiceExt};

use super::{Tested, down, fail, get, kind, millis, seconds, to, up};

fn per_authority() -> CircuitBreakerLayer {
    CircuitBreakerLayer::new(Policy::default()).with_scope(Scope::PerAuthority).with_seed(1)
}

fn keys(breaker: &CircuitBreakerLayer) -> Vec<String> {
    let mut keys = breaker.handle().keys();
    keys.sort();
    keys
}

fn state(breaker: &CircuitBreakerLayer, key: &str) -> Option<BreakerState> {
    breaker.handle().key(key).map(|it| it.state())
}

// BU-10
#[tokio::test(start_paused = true)]
async fn an_authority_that_fails_does_not_refuse_another() -> Tested {
    let breaker = per_authority();
    fail(&breaker, "a.test").await;
    let script = up();
    let service = breaker.layer(script.clone());
    let refused = service.clone().oneshot(to("a.test")).await;
    assert_eq!(kind(&refused), Some(ErrorKind::BreakerOpen));
    for host in ["b.test", "a.test:8080", "www.a.test"] {
        assert_eq!(service.clone().oneshot(to(host)).await?.status(), 200, "{host}");
    }
    assert_eq!(script.count(), 3);
    assert_eq!(keys(&breaker), ["a.test", "a.test:8080", "b.test", "www.a.test"]);
    assert_eq!(state(&breaker, "a.test"), Some(BreakerState::Open));
    assert_eq!(state(&breaker, "b.test"), Some(BreakerState::Closed));
    assert_eq!(state(&breaker, "c.test"), None);
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_among_many_that_work_is_found_out() -> Tested {
    let breaker = per_authority();
    let good = breaker.layer(up());
    let bad = breaker.layer(down());
    for _ in 0..30 {
        for n in 0..10 {
            good.clone().oneshot(to(&format!("good-{n}.test"))).await?;
        }
        drop(bad.clone().oneshot(to("bad.test")).await);
        sleep(millis(100)).await;
    }
    let open: Vec<_> = keys(&breaker)
        .into_iter()
        .filter(|key| state(&breaker, key) == Some(BreakerState::Open))
        .collect();
    assert_eq!(open, ["bad.test"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn clones_and_services_of_one_layer_share_the_breaker_of_a_key() -> Tested {
    let breaker = per_authority();
    fail(&breaker.clone(), "a.test").await;
    let result = breaker.layer(up()).clone().oneshot(to("a.test")).await;
    assert_eq!(kind(&result), Some(ErrorKind::BreakerOpen));
    assert_eq!(per_authority().layer(up()).oneshot(to("a.test")).await?.status(), 200);
    Ok(())
}

#[derive(Clone)]
struct Tenant(&'static str);

#[tokio::test(start_paused = true)]
async fn keys_may_be_anything_that_a_request_says() -> Tested {
    let by_tenant = Scope::By(|head| head.extensions.get::<Tenant>().map_or("", |it| it.0));
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_scope(by_tenant);
    let of = |tenant: Option<Tenant>| {
        let mut request = get();
        if let Some(tenant) = tenant {
            request.extensions_mut().insert(tenant);
        }
        request
    };
    let bad = breaker.layer(down());
    for _ in 0..30 {
        drop(bad.clone().oneshot(of(Some(Tenant("noisy")))).await);
        sleep(millis(100)).await;
    }
    let service = breaker.layer(up());
    let refused = service.clone().oneshot(of(Some(Tenant("noisy")))).await;
    assert_eq!(kind(&refused), Some(ErrorKind::BreakerOpen));
    service.clone().oneshot(of(Some(Tenant("quiet")))).await?;
    service.clone().oneshot(of(None)).await?;
    assert_eq!(keys(&breaker), ["", "noisy", "quiet"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn requests_without_an_authority_share_one() -> Tested {
    let breaker = per_authority();
    let mut request: Request<Full<Bytes>> = Request::default();
    *request.uri_mut() = Uri::from_static("/path");
    breaker.layer(up()).oneshot(request).await?;
    assert_eq!(keys(&breaker), [""]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn two_thousand_authorities_leave_no_more_than_the_bound_and_those_in_use_stay() -> Tested {
    let breaker = per_authority();
    fail(&breaker, "broken.test").await;
    let service = breaker.layer(up());
    for n in 0..2_000 {
        service.clone().oneshot(to(&format!("host-{n}.test"))).await?;
        drop(service.clone().oneshot(to("broken.test")).await);
        advance(millis(1)).await;
        assert!(breaker.handle().keys().len() <= MOST_KEYS);
    }
    assert_eq!((MOST_KEYS, breaker.handle().keys().len()), (1_024, 1_024));
    assert!(state(&breaker, "broken.test").is_some(), "it is in use");
    assert_eq!(state(&breaker, "host-1999.test"), Some(BreakerState::Closed));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn keys_that_idle_are_forgotten_when_there_is_no_room() -> Tested {
    let breaker = per_authority();
    let service = breaker.layer(up());
    for n in 0..MOST_KEYS {
        service.clone().oneshot(to(&format!("host-{n}.test"))).await?;
    }
    advance(seconds(10 * 60)).await;
    service.clone().oneshot(to("host-7.test")).await?;
    assert_eq!(breaker.handle().keys().len(), MOST_KEYS, "there is room enough");
    service.oneshot(to("new.test")).await?;
    assert_eq!(keys(&breaker), ["host-7.test", "new.test"]);
    Ok(())
}

// BU-10
#[tokio::test(start_paused = true)]
async fn a_stack_for_many_dependencies_keeps_a_breaker_for_each() -> Tested {
    let stack = Stack::new(Policy::default()).with_scope(Scope::PerAuthority).with_seed(1);
    let service = stack.layer(Script::of([Answer::status(503)]));
    for _ in 0..30 {
        drop(service.clone().oneshot(to("a.test")).await);
        sleep(millis(100)).await;
    }
    let service = stack.layer(up());
    let refused = service.clone().oneshot(to("a.test")).await;
    assert_eq!(kind(&refused), Some(ErrorKind::BreakerOpen));
    assert_eq!(service.oneshot(to("b.test")).await?.status(), 200);
    let states = ["a.test", "b.test"].map(|key| stack.breaker().key(key).map(|it| it.state()));
    assert_eq!(states, [Some(BreakerState::Open), Some(BreakerState::Closed)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shared_again_it_is_one_for_all() -> Tested {
    let breaker = per_authority().with_scope(Scope::Shared);
    fail(&breaker, "a.test").await;
    let result = breaker.layer(up()).oneshot(to("b.test")).await;
    assert_eq!(kind(&result), Some(ErrorKind::BreakerOpen));
    Ok(())
}
