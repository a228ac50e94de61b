//! Where a key may be made: above the retry, and nowhere else.

use abate::{Attempt, DeadlineLayer, IdempotencyKeyLayer, Idempotent, RetryLayer, StopReason};
use abate_tests::events::Events;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use std::time::Duration;
use tower::buffer::BufferLayer;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};
use tracing::Level;

use super::{Tested, busy_twice, keys, policy, post, retry};

fn warnings(events: &Events) -> usize {
    events.take().iter().filter(|event| event.level == Level::WARN).count()
}

fn stop<B>(response: &Response<B>) -> Option<StopReason> {
    response.extensions().get().and_then(abate::Report::stop_reason)
}

// ID-03
#[tokio::test(start_paused = true)]
async fn below_a_retry_no_attempt_gets_a_key_and_that_is_told_once() -> Tested {
    let layer = IdempotencyKeyLayer::new();
    let events = Events::listen();
    // Repeated for reasons of their own: refused by the server, or idempotent by the caller's word.
    for (code, mark) in [(429, None), (503, Some(Idempotent(true)))] {
        let script = Script::of([code, code, 200].map(Answer::status));
        let service = retry()?.layer(layer.layer(script.clone()));
        let mut request = post();
        if let Some(mark) = mark {
            request.extensions_mut().insert(mark);
        }
        assert_eq!(service.oneshot(request).await?.status(), 200);
        assert_eq!(keys(&script), [None, None, None]);
    }
    assert_eq!(warnings(&events), 1, "one layer, one warning");
    let another = IdempotencyKeyLayer::new().quoted();
    retry()?.layer(another.layer(busy_twice())).oneshot(post()).await?;
    assert_eq!(warnings(&events), 1, "another layer, another one");
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn below_a_retry_a_post_is_not_repeated_on_the_strength_of_a_key_that_comes_too_late()
-> Tested {
    let script = busy_twice();
    let service = retry()?.layer(IdempotencyKeyLayer::new().layer(script.clone()));
    let response = service.oneshot(post()).await?;
    assert_eq!((response.status().as_u16(), script.count()), (503, 1));
    assert_eq!(stop(&response), Some(StopReason::NotIdempotent));
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn the_callers_key_passes_a_layer_below_a_retry_without_a_word() -> Tested {
    let events = Events::listen();
    let script = busy_twice();
    let service = retry()?.layer(IdempotencyKeyLayer::new().layer(script.clone()));
    let mut request = post();
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("order-7"));
    service.oneshot(request).await?;
    assert_eq!(keys(&script), [(); 3].map(|()| Some("order-7".to_owned())));
    assert_eq!(warnings(&events), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_two_layers_the_upper_one_makes_the_key() -> Tested {
    let events = Events::listen();
    let script = busy_twice();
    let lower = IdempotencyKeyLayer::new().with_seed(2).layer(script.clone());
    let service = IdempotencyKeyLayer::new().with_seed(1).layer(retry()?.layer(lower));
    service.oneshot(post()).await?;
    let upper = Script::of([Answer::status(200)]);
    IdempotencyKeyLayer::new().with_seed(1).layer(upper.clone()).oneshot(post()).await?;
    let expected = keys(&upper).remove(0);
    assert_eq!(keys(&script), [expected.clone(), expected.clone(), expected]);
    assert_eq!(warnings(&events), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_other_layers_of_a_call_are_no_retry() -> Tested {
    let events = Events::listen();
    let script = busy_twice();
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::new(Duration::from_secs(9)))
        .layer(IdempotencyKeyLayer::new())
        .layer(retry()?)
        .service(script.clone());
    service.clone().oneshot(post()).await?;
    service.oneshot(post()).await?;
    let keys = keys(&script);
    assert!(keys.iter().all(Option::is_some), "{keys:?}");
    assert!(keys[0] == keys[2] && keys[2] != keys[3], "{keys:?}");
    assert_eq!(warnings(&events), 0);
    Ok(())
}

// ID-03: what is called below a retry is repeated with it, so that its key has to come from above.
#[tokio::test(start_paused = true)]
async fn a_call_that_another_one_makes_below_its_retry_gets_no_key_either() -> Tested {
    let (payments, events) = (busy_twice(), Events::listen());
    let pay = IdempotencyKeyLayer::new().layer(payments.clone());
    let checkout = tower::service_fn(move |_: Request<abate::ReplayBody<Full<Bytes>>>| {
        let pay = pay.clone();
        async move { Ok::<_, BoxError>(pay.oneshot(post()).await?) }
    });
    let mut order = post();
    order.extensions_mut().insert(Idempotent(true));
    let layer = RetryLayer::new(policy().build()?);
    assert_eq!(layer.layer(checkout).oneshot(order).await?.status(), 200);
    assert_eq!(keys(&payments), [None, None, None]);
    assert_eq!(warnings(&events), 1);
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn a_repeat_that_somebody_elses_retry_marks_gets_no_second_key() -> Tested {
    let (script, events) = (busy_twice(), Events::listen());
    let service = IdempotencyKeyLayer::new().layer(script.clone());
    let mut request = post();
    for _ in 0..3 {
        service.clone().oneshot(request.clone()).await?;
        Attempt::mark_repeat(request.extensions_mut());
    }
    let keys = keys(&script);
    assert!(keys[0].is_some(), "a first attempt does not show that it is one of several");
    assert_eq!((keys[1..].to_vec(), warnings(&events)), (vec![None, None], 1));
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn behind_a_buffer_it_is_known_where_the_retry_reaches_through() -> Tested {
    for (reaches, expected) in [(true, [false, false, false]), (false, [true, false, false])] {
        let script = Script::of([429, 429, 200].map(Answer::status));
        let layer = if reaches { retry()?.through_spawned_layers() } else { retry()? };
        let service = ServiceBuilder::new()
            .layer(layer)
            .layer(BufferLayer::new(4))
            .layer(IdempotencyKeyLayer::new())
            .service(script.clone());
        assert_eq!(service.oneshot(post()).await?.status(), 200);
        let keyed: Vec<_> = keys(&script).iter().map(Option::is_some).collect();
        assert_eq!(keyed, expected, "never two keys, and none where it can be known");
    }
    Ok(())
}
