//! The hints that a policy declares, through the retry layer and the one that publishes them.

use std::time::{Duration, SystemTime};

use abate::{
    CircuitBreakerLayer, HintSources, Policy, Pushback, PushbackHeader, Report, ResetUnit,
    RetryAfterLayer, RetryLayer, StopReason, Transient, Verdict,
};
use abate_tests::play::Beat;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use http::{HeaderName, Method};
use http_body_util::BodyExt;
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

/// What a timer may be late by.
const TICK: Duration = millis(2);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy(sources: HintSources) -> Result<Policy, BoxError> {
    Ok(Policy::builder().with_hints(sources).build()?)
}

fn reset_in(unit: ResetUnit) -> HintSources {
    HintSources::new().with_reset(HeaderName::from_static("x-ratelimit-reset"), unit)
}

/// The shortest and the longest wait after `answer`, over many seeds.
async fn waits(sources: &HintSources, answer: &Answer) -> Result<(Duration, Duration), BoxError> {
    let mut waits = Vec::new();
    for seed in 0..40 {
        let script = Script::of([answer.clone(), Answer::status(200)]);
        let layer = RetryLayer::new(policy(sources.clone())?).without_budget().with_seed(seed);
        layer.layer(script.clone()).oneshot(get()).await?;
        let arrived = script.arrived();
        let [first, second] = &arrived[..] else { return Err("not two attempts".into()) };
        waits.push(second.at - first.at);
    }
    waits.sort();
    Ok((waits[0], waits[waits.len() - 1]))
}

/// That waits after `answer` are `hint` and a spread, or the jittered backoff where there is none.
async fn assert_waits(sources: &HintSources, answer: Answer, hint: Option<Duration>) -> Tested {
    let (shortest, longest) = waits(sources, &answer).await?;
    let least = hint.unwrap_or(Duration::ZERO);
    let spread = millis(100).max(least / 4);
    assert!(shortest >= least, "{shortest:?} after {answer:?}");
    assert!(longest <= least + spread + TICK, "{longest:?} after {answer:?}");
    assert!(longest - shortest > spread / 2, "{shortest:?}..{longest:?} after {answer:?}");
    Ok(())
}

/// The attempts, the status, and why there were no more.
async fn attempts(
    sources: HintSources,
    answers: impl Into<Vec<Answer>>,
) -> Result<(usize, u16, Option<StopReason>), BoxError> {
    let script = Script::of(answers);
    let layer = RetryLayer::new(policy(sources)?).without_budget().with_seed(1);
    let response = layer.layer(script.clone()).oneshot(get()).await?;
    let reason = response.extensions().get().and_then(Report::stop_reason);
    Ok((script.count(), response.status().as_u16(), reason))
}

async fn pushback(sources: HintSources, answer: Answer) -> Result<Option<Pushback>, BoxError> {
    let layer = RetryAfterLayer::from_policy(policy(sources)?);
    let response = layer.layer(Script::of([answer])).oneshot(get()).await?;
    Ok(response.extensions().get().copied())
}

#[tokio::test(start_paused = true)]
async fn milliseconds_need_no_declaration() -> Tested {
    let none = HintSources::new();
    let answer = |value| Answer::status(503).header("retry-after-ms", value);
    assert_waits(&none, answer("750"), Some(millis(750))).await?;
    assert_waits(&none, answer("1500.2"), Some(millis(1_501))).await?;
    let both = answer("750").header("retry-after", "2");
    assert_waits(&none, both, Some(seconds(2))).await?;
    for malformed in ["-5", "soon", "", "1e3"] {
        assert_waits(&none, answer(malformed), None).await?;
    }
    Ok(())
}

// RA-12
#[tokio::test(start_paused = true)]
async fn a_reset_is_read_in_the_unit_that_was_declared() -> Tested {
    let answer = |value| {
        Answer::status(429)
            .header("date", "Wed, 05 Mar 2031 12:00:00 GMT")
            .header("x-ratelimit-reset", value)
    };
    for (unit, value, hint) in [
        (ResetUnit::EpochSeconds, "1930478405", Some(seconds(5))),
        (ResetUnit::EpochMillis, "1930478405000", Some(seconds(5))),
        (ResetUnit::Seconds, "5", Some(seconds(5))),
        (ResetUnit::GoDuration, "5s", Some(seconds(5))),
        (ResetUnit::GoDuration, "1.5s", Some(millis(1_500))),
        (ResetUnit::EpochSeconds, "1930478390", None),
        (ResetUnit::EpochMillis, "1930478390000", None),
        (ResetUnit::Seconds, "0", None),
        (ResetUnit::Seconds, "-5", None),
        (ResetUnit::GoDuration, "5", None),
    ] {
        assert_waits(&reset_in(unit), answer(value), hint).await?;
    }
    Ok(())
}

// RA-12
#[tokio::test(start_paused = true)]
async fn a_unit_that_is_wrong_by_a_thousand_ends_the_call_and_never_hurries_it() -> Tested {
    let answer = |value| {
        Answer::status(429)
            .header("date", "Wed, 05 Mar 2031 12:00:00 GMT")
            .header("x-ratelimit-reset", value)
    };
    let deadline = (1, 429, Some(StopReason::Deadline));
    for (unit, value) in [
        (ResetUnit::EpochSeconds, "1930478405000"),
        (ResetUnit::Seconds, "1930478405"),
        (ResetUnit::GoDuration, "6000h"),
    ] {
        assert_eq!(attempts(reset_in(unit), [answer(value)]).await?, deadline, "{value}");
    }
    Ok(())
}

// RA-12, RA-18
#[tokio::test(start_paused = true)]
async fn without_a_date_a_reset_is_held_against_the_local_clock() -> Tested {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let soon = (since_1970 + seconds(20)).as_secs().to_string();
    let answer = Answer::status(429).header("x-ratelimit-reset", &soon);
    let told = pushback(reset_in(ResetUnit::EpochSeconds), answer).await?.ok_or("a hint")?;
    assert!((seconds(9)..=seconds(20)).contains(&told.delay()), "{told:?}");
    Ok(())
}

// RA-12
#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_not_read() -> Tested {
    for (name, value) in [
        ("x-ratelimit-reset", "5"),
        ("ratelimit", "\"default\";r=0;t=5"),
        ("grpc-retry-pushback-ms", "5000"),
        ("grpc-retry-pushback-ms", "-1"),
        ("x-should-retry", "false"),
    ] {
        let answer = Answer::status(503).header(name, value);
        assert_waits(&HintSources::new(), answer.clone(), None).await?;
        assert_eq!(pushback(HintSources::new(), answer).await?, None, "{name}");
    }
    let asked = Answer::status(404).header("x-should-retry", "true");
    assert_eq!(attempts(HintSources::new(), [asked]).await?.0, 1);
    let other = reset_in(ResetUnit::Seconds);
    assert_waits(&other, Answer::status(429).header("x-rate-limit-reset", "5"), None).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_the_draft_is_waited_for_once_nothing_remains() -> Tested {
    let sources = HintSources::new().with_ratelimit();
    let answer = |value| Answer::status(429).header("ratelimit", value);
    for (value, hint) in [
        ("\"default\";r=0;t=4", Some(seconds(4))),
        ("\"burst\";r=0;t=2, \"day\";r=0;t=6", Some(seconds(6))),
        ("\"burst\";r=0;t=2, \"day\";r=9;t=6", Some(seconds(2))),
        ("\"default\";r=1;t=4", None),
        ("\"default\";r=0", None),
        ("\"default\";r=0;t=-4", None),
        ("limit=100, remaining=0, reset=4", None),
        ("nonsense;;", None),
    ] {
        assert_waits(&sources, answer(value), hint).await?;
    }
    let both = answer("\"default\";r=0;t=9").header("retry-after", "1");
    assert_waits(&sources, both, Some(seconds(1))).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_pushback_of_grpc_is_a_delay_or_an_end() -> Tested {
    let sources = HintSources::new().with_grpc_pushback();
    let answer = |value| Answer::status(503).header("grpc-retry-pushback-ms", value);
    assert_waits(&sources, answer("1200"), Some(millis(1_200))).await?;
    assert_waits(&sources, answer("0"), None).await?;
    assert_waits(&sources, answer("300").header("retry-after", "9"), Some(millis(300))).await?;
    for never in ["-1", "never", ""] {
        let (count, status, reason) = attempts(sources.clone(), [answer(never)]).await?;
        assert_eq!((count, status), (1, 503), "{never:?}");
        assert!(reason.is_some_and(|it| it != StopReason::Attempts), "{reason:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_may_ask_for_a_retry_and_forbid_one() -> Tested {
    let sources = HintSources::new().with_should_retry();
    let says = |code, value| Answer::status(code).header("x-should-retry", value);
    let then = Answer::status(200);
    for (code, value, count) in [
        (404, "true", 2),
        (409, "true", 2),
        (503, "true", 2),
        (503, "false", 1),
        (429, "false", 1),
        (404, "false", 1),
        (503, "perhaps", 2),
        (404, "perhaps", 1),
        (200, "true", 1),
    ] {
        let made = attempts(sources.clone(), [says(code, value), then.clone()]).await?;
        assert_eq!(made.0, count, "{code} with {value}: {made:?}");
    }
    let forever = attempts(sources, [says(404, "true")]).await?;
    assert_eq!((forever.0, forever.1), (3, 404), "no more often than anything");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_retry_does_not_make_a_post_repeatable() -> Tested {
    let sources = HintSources::new().with_should_retry();
    let script = Script::of([Answer::status(503).header("x-should-retry", "true")]);
    let mut request = get();
    *request.method_mut() = Method::POST;
    let layer = RetryLayer::new(policy(sources)?).without_budget();
    let response = layer.layer(script.clone()).oneshot(request).await?;
    let reason = response.extensions().get().and_then(Report::stop_reason);
    assert_eq!((script.count(), reason), (1, Some(StopReason::NotIdempotent)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_published_names_its_header() -> Tested {
    let all = reset_in(ResetUnit::Seconds).with_ratelimit().with_grpc_pushback();
    for (name, value, header, delay) in [
        ("retry-after", "3", PushbackHeader::RetryAfter, 3_000),
        ("retry-after-ms", "250", PushbackHeader::RetryAfterMs, 250),
        ("x-ratelimit-reset", "7", PushbackHeader::RateLimitReset, 7_000),
        ("ratelimit", "\"a\";r=0;t=8", PushbackHeader::RateLimit, 8_000),
        ("grpc-retry-pushback-ms", "90", PushbackHeader::GrpcPushback, 90),
    ] {
        let told = pushback(all.clone(), Answer::status(429).header(name, value)).await?;
        let told = told.map(|it| (it.header(), it.delay()));
        assert_eq!(told, Some((header, millis(delay))), "{name}");
    }
    Ok(())
}

// CL-05
#[tokio::test(start_paused = true)]
async fn an_error_in_the_disguise_of_a_success_is_a_success() -> Tested {
    let sources = reset_in(ResetUnit::Seconds).with_ratelimit();
    let answer = Answer::status(200)
        .header("x-ratelimit-remaining", "0")
        .header("x-ratelimit-reset", "5")
        .header("ratelimit", "\"default\";r=0;t=5");
    assert_eq!(attempts(sources.clone(), [answer.clone()]).await?, (1, 200, None));
    assert_eq!(pushback(sources, answer).await?, None);
    Ok(())
}

// CL-05
#[tokio::test(start_paused = true)]
async fn a_judge_sees_through_the_disguise_and_the_hint_counts() -> Tested {
    let judged =
        Policy::builder().with_hints(reset_in(ResetUnit::Seconds)).with_judge(|_, headers| {
            let used_up = headers.get("x-ratelimit-remaining")?.as_bytes() == b"0";
            used_up.then_some(Verdict::Transient(Transient::Asked))
        });
    let disguised = Answer::status(200)
        .header("x-ratelimit-remaining", "0")
        .header("x-ratelimit-reset", "5")
        .body([Beat::data("an error document")]);
    let script = Script::of([disguised, Answer::status(200).body([Beat::data("the answer")])]);
    let policy = judged.build()?;
    let breaker = CircuitBreakerLayer::new(&policy);
    let layer = RetryLayer::new(policy).without_budget();
    let response = layer.layer(breaker.layer(script.clone())).oneshot(get()).await?;
    assert_eq!(response.into_body().collect().await?.to_bytes(), "the answer");
    assert_eq!(script.count(), 2);
    assert!(script.arrived()[1].at >= seconds(5));
    assert_eq!(breaker.handle().transitions(), 0);
    Ok(())
}
