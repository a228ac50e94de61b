//! What a key looks like, who gets one, and that it stays the same.

use std::collections::HashSet;
use std::time::Duration;

use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Fault, IdempotencyKeyLayer, Stack};
use abate_tests::events::Events;
use abate_tests::plan;
use abate_tests::probe::Probe;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use tokio::time::advance;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tracing::Level;

use super::{Tested, busy_twice, keys, policy, post, request, retry, values};

#[derive(Clone)]
struct OrderId(u64);

/// Such as `8e03978e-40d5-43dd-bc93-6894a57f9324`.
fn is_a_uuid_of_version_4(key: &str) -> bool {
    let form = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx";
    key.len() == form.len()
        && form.chars().zip(key.chars()).all(|(form, digit)| match form {
            'x' => matches!(digit, '0'..='9' | 'a'..='f'),
            'v' => matches!(digit, '8' | '9' | 'a' | 'b'),
            other => digit == other,
        })
}

// ID-03
#[tokio::test(start_paused = true)]
async fn a_call_has_one_key_on_all_its_attempts_and_another_call_another() -> Tested {
    for stacked in [false, true] {
        let mut seen = HashSet::new();
        for _ in 0..10 {
            let script = busy_twice();
            let layer = IdempotencyKeyLayer::new();
            let status = if stacked {
                let service = layer.layer(Stack::new(policy().build()?).layer(script.clone()));
                service.oneshot(post()).await?.status()
            } else {
                layer.layer(retry()?.layer(script.clone())).oneshot(post()).await?.status()
            };
            assert_eq!((status.as_u16(), script.count()), (200, 3), "it is repeated like a GET");
            let keys: HashSet<_> = keys(&script).into_iter().collect();
            assert_eq!(keys.len(), 1, "{keys:?}");
            let key = keys.into_iter().next().flatten().unwrap_or_default();
            assert!(is_a_uuid_of_version_4(&key), "{key}");
            assert!(seen.insert(key));
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn post_and_patch_get_a_key_and_no_other_method_does() -> Tested {
    for name in ["POST", "PATCH", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY", "LOCK"] {
        let script = Script::of([Answer::status(200)]);
        let service = IdempotencyKeyLayer::new().layer(script.clone());
        service.oneshot(request(name.parse()?, "http://bank.test/")).await?;
        let wanted = ["POST", "PATCH"].contains(&name);
        assert_eq!(
            keys(&script).iter().map(Option::is_some).collect::<Vec<_>>(),
            [wanted],
            "{name}"
        );
        assert_eq!(script.arrived()[0].headers.len(), usize::from(wanted), "and nothing else");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rule_says_which_requests_get_a_key() -> Tested {
    let layer = IdempotencyKeyLayer::new().with_rule(|head| head.uri.path() == "/payments");
    for (method, uri, wanted) in [
        (Method::POST, "http://bank.test/payments", true),
        (Method::PUT, "http://bank.test/payments", true),
        (Method::POST, "http://bank.test/search", false),
    ] {
        let script = Script::of([Answer::status(200)]);
        layer.layer(script.clone()).oneshot(request(method, uri)).await?;
        assert_eq!(keys(&script)[0].is_some(), wanted, "{uri}");
    }
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn the_callers_key_is_kept_to_the_byte() -> Tested {
    for own in [&b"order 7/1"[..], b"\"8e03978e\"", b"", b"\xe4\t~"] {
        let script = busy_twice();
        let layer = IdempotencyKeyLayer::new().with_key(|_| Some(HeaderValue::from_static("new")));
        let mut request = post();
        request.headers_mut().insert("idempotency-key", HeaderValue::from_bytes(own)?);
        layer.layer(retry()?.layer(script.clone())).oneshot(request).await?;
        assert_eq!(script.count(), 3);
        for arrived in script.arrived() {
            let kept: Vec<_> = arrived.headers.get_all("idempotency-key").iter().collect();
            assert_eq!(kept.iter().map(|it| it.as_bytes()).collect::<Vec<_>>(), [own]);
            assert!(!kept[0].is_sensitive(), "it is as visible as the caller made it");
        }
    }
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn a_key_made_of_the_request_is_the_same_for_every_call_of_the_operation() -> Tested {
    let script = busy_twice();
    let layer = IdempotencyKeyLayer::new().with_key(|head| {
        let OrderId(id) = head.extensions.get()?;
        HeaderValue::try_from(format!("order-{id}")).ok()
    });
    let service = layer.layer(retry()?.layer(script.clone()));
    for id in [7, 7, 8] {
        let mut request = post();
        request.extensions_mut().insert(OrderId(id));
        service.clone().oneshot(request).await?;
    }
    let expected = ["order-7", "order-7", "order-7", "order-7", "order-8"];
    assert_eq!(keys(&script), expected.map(|key| Some(key.to_owned())));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_the_key_that_it_was_to_have_a_request_is_not_sent() -> Tested {
    let events = Events::listen();
    let probe = Probe::answering([plan::Answer::status(200)]);
    let (handle, layer) = (probe.handle(), IdempotencyKeyLayer::new().with_key(|_| None));
    let mut service = layer.layer(probe);
    let refused = ready(&mut service).await?.call(post());
    assert_eq!(handle.held(), (0, 0, 0), "what was reserved for it is given back");
    let error = refused.await.map(drop).unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::NoKey, Fault::Local));
    assert_eq!(error.to_string(), "no idempotency key could be made");
    assert_eq!((handle.calls(), events.messages()), (0, vec!["refused".to_owned()]));
    // The rule is not about this one.
    ready(&mut service).await?.call(request(Method::GET, "http://bank.test/")).await?;
    assert_eq!(handle.calls(), 1);
    Ok(())
}

async fn ready<S: Service<Request<Full<Bytes>>>>(service: &mut S) -> Result<&mut S, S::Error> {
    service.ready().await
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_for_want_of_a_key_says_nothing_of_the_dependency() -> Tested {
    let breaker = CircuitBreakerLayer::new(policy().build()?);
    let script = Script::of([Answer::status(200)]);
    let service =
        breaker.layer(IdempotencyKeyLayer::new().with_key(|_| None).layer(script.clone()));
    for _ in 0..50 {
        let error = service.clone().oneshot(post()).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoKey);
        advance(Duration::from_millis(200)).await;
    }
    assert_eq!((breaker.handle().state(), script.count()), (BreakerState::Closed, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_header_carries_the_key_and_the_policy_tells_the_retry_of_it() -> Tested {
    let name = "paypal-request-id";
    let layer = IdempotencyKeyLayer::new().with_header(HeaderName::from_static(name));
    let told = policy()
        .with_idempotent(|head| head.headers.contains_key("paypal-request-id").then_some(true));
    for (policy, attempts) in [(told, 3), (policy(), 1)] {
        let script = busy_twice();
        let stack = Stack::new(policy.build()?);
        layer.layer(stack.layer(script.clone())).oneshot(post()).await?;
        assert_eq!(script.count(), attempts);
        let keys: HashSet<_> = script.arrived().iter().map(|it| values(it, name)).collect();
        assert_eq!((keys.len(), super::keys(&script).pop()), (1, Some(None)));
    }
    let script = Script::of([Answer::status(200)]);
    let mut request = post();
    request.headers_mut().insert(name, HeaderValue::from_static("mine"));
    layer.layer(script.clone()).oneshot(request).await?;
    assert_eq!(values(&script.arrived()[0], name), ["mine"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn in_quotes_it_is_a_string_of_a_structured_field() -> Tested {
    let script = busy_twice();
    let layer = IdempotencyKeyLayer::new().quoted();
    layer.layer(retry()?.layer(script.clone())).oneshot(post()).await?;
    for key in keys(&script) {
        let key = key.unwrap_or_default();
        let inner = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
        assert!(inner.is_some_and(is_a_uuid_of_version_4), "{key}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_shows_in_debug_output_only_if_that_is_wished_and_in_events_never() -> Tested {
    let own = |_: &http::request::Parts| Some(HeaderValue::from_static("order-7"));
    let layer = IdempotencyKeyLayer::new();
    for (layer, shows) in [
        (layer.clone(), false),
        (layer.clone().with_key(own), false),
        (layer.clone().visible(), true),
        (layer.with_key(own).visible(), true),
    ] {
        let events = Events::listen();
        let script = Script::of([Answer::status(503)]);
        let service = layer.layer(Stack::new(policy().build()?).layer(script.clone()));
        let debugged = format!("{layer:?} {service:?}");
        service.oneshot(post()).await?;
        assert_eq!(script.count(), 3);
        for arrived in script.arrived() {
            let key = values(&arrived, "idempotency-key").remove(0);
            assert_eq!(format!("{:?}", arrived.headers).contains(&key), shows, "{arrived:?}");
            assert!(!debugged.contains(&key));
            let heard = format!("{:?}", events.take());
            assert!(!heard.contains(&key), "{heard}");
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_seed_makes_the_same_keys_in_every_run_and_clones_share_them() -> Tested {
    let run = async |seed| -> Result<Vec<_>, tower::BoxError> {
        let script = Script::of([Answer::status(200)]);
        let layer = IdempotencyKeyLayer::new().with_seed(seed);
        let services = [layer.layer(script.clone()), layer.clone().layer(script.clone())];
        for service in services.iter().chain(&services) {
            service.clone().oneshot(post()).await?;
        }
        Ok(keys(&script))
    };
    let first = run(1).await?;
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 4, "{first:?}");
    assert_eq!(first, run(1).await?);
    assert_ne!(first, run(2).await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_settings_of_a_layer_come_in_any_order() -> Tested {
    let seeded = IdempotencyKeyLayer::new().with_seed(5);
    let mut made = HashSet::new();
    for layer in [
        seeded.clone().quoted().with_header(HeaderName::from_static("x-key")),
        IdempotencyKeyLayer::new()
            .with_header(HeaderName::from_static("x-key"))
            .quoted()
            .with_seed(5),
    ] {
        let script = Script::of([Answer::status(200)]);
        ServiceBuilder::new().layer(layer).service(script.clone()).oneshot(post()).await?;
        made.insert(values(&script.arrived()[0], "x-key"));
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(events_of(&seeded).await?, [] as [Level; 0]);
    Ok(())
}

/// What is told of a call that gets its key and succeeds.
async fn events_of(layer: &IdempotencyKeyLayer) -> Result<Vec<Level>, tower::BoxError> {
    let events = Events::listen();
    layer.layer(Script::of([Answer::status(200)])).oneshot(post()).await?;
    Ok(events.take().into_iter().map(|event| event.level).collect())
}
