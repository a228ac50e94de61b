//! What may be repeated, and when the server says that it may.

use abate::grpc::GrpcStatusLayer;
use abate::{
    CooldownLayer, ErrorKind, HintSources, Policy, Pushback, PushbackHeader, RetryAfterLayer,
    StopReason,
};
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use tower::{Layer, ServiceExt};

use crate::{Tested, attempts, call, fields, head, millis, ok, repeatable, stopped, through};
use crate::{seconds, trailers};

const NO_WORD: [&str; 2] = ["8", "14"];

fn pushing_back(code: &'static str, pushback: &'static str) -> [Answer; 2] {
    let told = [("grpc-status", code), ("grpc-retry-pushback-ms", pushback)];
    let in_head = told.iter().fold(head(), |head, (name, value)| head.header(name, value));
    [in_head, head().body([Beat::Trailers(fields(told))])]
}

// ID-01
#[tokio::test(start_paused = true)]
async fn a_delay_from_the_server_is_obeyed_and_is_leave_to_repeat() -> Tested {
    for code in NO_WORD {
        for failed in pushing_back(code, "700") {
            let script = Script::of([failed, ok()]);
            let response = through(&script, call()).await?;
            assert_eq!((script.count(), attempts(&response)), (2, Some(2)), "{code}");
            let at = script.arrived()[1].at;
            assert!(millis(700) <= at && at <= millis(700 + 175 + 2), "{code}: {at:?}");
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forbids_a_repeat_gets_none() -> Tested {
    for forbidding in ["-1", "never"] {
        for failed in pushing_back("14", forbidding) {
            let script = Script::of([failed, ok()]);
            let response = through(&script, repeatable()).await?;
            assert_eq!((script.count(), stopped(&response)), (1, Some(StopReason::NotRetryable)));
        }
    }
    Ok(())
}

// ID-01
#[tokio::test(start_paused = true)]
async fn a_code_alone_is_no_word_that_nothing_was_done() -> Tested {
    for code in NO_WORD.into_iter().chain(["2", "4", "13"]) {
        let script = Script::of([head().body([trailers(code)]), ok()]);
        let response = through(&script, call()).await?;
        let stop = Some(StopReason::NotIdempotent);
        assert_eq!((script.count(), stopped(&response)), (1, stop), "{code}");
        let script = Script::of([head().body([trailers(code)]), ok()]);
        assert_eq!(attempts(&through(&script, repeatable()).await?), Some(2), "{code}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_another_attempt_would_meet_again_is_not_tried_again() -> Tested {
    for code in ["1", "3", "5", "6", "7", "9", "10", "11", "12", "15", "16"] {
        let script = Script::of([head().body([trailers(code)]), ok()]);
        let response = through(&script, repeatable()).await?;
        assert_eq!(script.count(), 1, "{code}");
        assert_eq!(response.headers()["grpc-status"], code);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_layers_learn_of_it_although_it_comes_with_200() -> Tested {
    let policy = Policy::builder().with_grpc().build()?;
    for failed in pushing_back("8", "5000") {
        let script = Script::of([failed.clone(), ok()]);
        let grpc = GrpcStatusLayer::new().layer(script.clone());
        let response = RetryAfterLayer::from_policy(&policy).layer(grpc).oneshot(call()).await?;
        let told = response.extensions().get::<Pushback>();
        let told = told.map(|told| (told.delay(), told.header()));
        assert_eq!(told, Some((seconds(5), PushbackHeader::GrpcPushback)));

        let undeclared = RetryAfterLayer::new().layer(Script::of([failed.clone()]));
        assert_eq!(undeclared.oneshot(call()).await?.extensions().get::<Pushback>(), None);

        let script = Script::of([failed, ok()]);
        let gate = CooldownLayer::new(&policy);
        let service = gate.layer(GrpcStatusLayer::new().layer(script.clone()));
        service.clone().oneshot(call()).await?;
        let refused = service.oneshot(call()).await.map(drop).map_err(|error| error.kind());
        assert_eq!((refused, script.count()), (Err(ErrorKind::CoolingDown), 1));
    }
    assert_ne!(policy.hints(), &HintSources::new());
    Ok(())
}
