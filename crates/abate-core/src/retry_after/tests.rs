use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{AGE, DATE, RETRY_AFTER};
use proptest::prelude::*;

use super::{Hint, HintSources, Pushback, PushbackHeader, ResetUnit};

/// Wednesday, 2031-03-05T12:00:00Z.
const NOW: Duration = Duration::from_secs(1_930_478_400);

fn wall() -> SystemTime {
    UNIX_EPOCH + NOW
}

fn read_headers(headers: &HeaderMap) -> Hint {
    Hint::read(headers, &HintSources::new(), wall)
}

fn retry_after(value: &str) -> HeaderMap {
    headers(&[("retry-after", value)])
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

/// The delay that a `Retry-After` of `value` asks for; `None` where it is malformed.
fn read(value: &str) -> Option<Duration> {
    let hint = read_headers(&retry_after(value));
    assert_eq!(hint.is_malformed(), hint.pushback().is_none());
    hint.pushback().map(Pushback::delay)
}

fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

fn delay(hint: Hint) -> Option<Duration> {
    hint.pushback().map(Pushback::delay)
}

#[test]
fn whole_seconds_are_read() {
    assert_eq!(read("120"), millis(120_000));
    assert_eq!(read(" 7 "), millis(7_000));
    assert_eq!(read("007"), millis(7_000));
}

// RA-15
#[test]
fn zero_seconds_are_a_pushback_of_nothing() {
    assert_eq!(read("0"), millis(0));
}

// RA-04
#[test]
fn fractions_are_rounded_up_and_never_early() {
    assert_eq!(read("0.25"), millis(250));
    assert_eq!(read("1.5"), millis(1_500));
    assert_eq!(read(" 2.50 "), millis(2_500));
    assert_eq!(read("0.0"), millis(0));
    assert_eq!(read("1.0001"), millis(1_001));
    assert_eq!(read("1.9990000001"), millis(2_000));
}

// RA-05
#[test]
fn what_is_malformed_is_told_apart_from_what_is_absent() {
    for value in ["-7", "", " ", "soon", "1.", ".5", "1.2.3", "1e3", "0x10", "12 s", "+3", "١"] {
        assert_eq!(read(value), None, "{value:?}");
    }
    assert_eq!(read_headers(&HeaderMap::new()), Hint::ABSENT);
}

// RA-07
#[test]
fn a_huge_number_never_becomes_a_short_wait() {
    assert_eq!(read("9999999999"), Some(Duration::from_secs(9_999_999_999)));
    assert_eq!(read("9223372036854775808"), Some(Duration::from_secs(1 << 63)));
    for value in ["18446744073709551616", "18446744073709551616.5", &"9".repeat(400)] {
        assert!(read(value).unwrap() >= Duration::from_secs(u64::MAX));
    }
}

#[test]
fn all_three_forms_of_a_date_are_read() {
    for date in [
        "Wed, 05 Mar 2031 12:00:30 GMT",
        "Wednesday, 05-Mar-31 12:00:30 GMT",
        "Wed Mar  5 12:00:30 2031",
    ] {
        assert_eq!(read(date), millis(30_000), "{date}");
    }
}

// RA-01
#[test]
fn a_date_that_has_passed_asks_for_no_wait() {
    assert_eq!(read("Wed, 05 Mar 2031 11:59:20 GMT"), millis(0));
}

// RA-08
#[test]
fn extreme_dates_are_long_and_impossible_ones_malformed() {
    let far = read("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
    assert!(far > Duration::from_secs(200_000_000_000));
    assert_eq!(read("Sat, 01 Jan 0000 00:00:00 GMT"), None);
    assert_eq!(read("Tue, 30 Feb 2031 00:00:00 GMT"), None);
}

// RA-18
#[test]
fn a_date_is_measured_by_the_servers_clock_unless_the_answer_is_from_a_cache() {
    let fast = || wall() + Duration::from_secs(120);
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, "Wed, 05 Mar 2031 12:00:30 GMT".parse().unwrap());
    assert_eq!(
        delay(Hint::read(&headers, &HintSources::new(), fast)),
        millis(0),
        "without Date the local clock decides"
    );

    headers.insert(DATE, "Wed, 05 Mar 2031 12:00:00 GMT".parse().unwrap());
    assert_eq!(
        delay(Hint::read(&headers, &HintSources::new(), || panic!("Date was there"))),
        millis(30_000)
    );

    headers.insert(AGE, "0".parse().unwrap());
    assert_eq!(
        delay(Hint::read(&headers, &HintSources::new(), || panic!("Date was there"))),
        millis(30_000)
    );

    headers.insert(AGE, "90".parse().unwrap());
    assert_eq!(
        delay(Hint::read(&headers, &HintSources::new(), fast)),
        millis(0),
        "a cached Date is not trusted"
    );

    headers.remove(AGE);
    headers.insert(DATE, "yesterday".parse().unwrap());
    assert_eq!(
        delay(Hint::read(&headers, &HintSources::new(), wall)),
        millis(30_000),
        "a broken Date is not trusted"
    );
}

#[test]
fn of_several_values_the_longest_counts() {
    let mut headers = HeaderMap::new();
    for value in ["2", "nonsense", "Wed, 05 Mar 2031 12:00:09 GMT", "5"] {
        headers.append(RETRY_AFTER, value.parse().unwrap());
    }
    assert_eq!(delay(Hint::read(&headers, &HintSources::new(), wall)), millis(9_000));
}

#[test]
fn milliseconds_are_read_and_the_longer_of_both_units_counts() {
    let ms = |value| read_headers(&headers(&[("retry-after-ms", value)]));
    assert_eq!(delay(ms("250")), millis(250));
    assert_eq!(delay(ms("250.1")), millis(251));
    assert_eq!(ms("250").pushback().unwrap().header(), PushbackHeader::RetryAfterMs);
    assert!(ms("-1").is_malformed());
    let both = headers(&[("retry-after-ms", "1500"), ("retry-after", "2")]);
    assert_eq!(delay(read_headers(&both)), millis(2_000));
    assert!(delay(ms("18446744073709551616")).unwrap() >= Duration::from_secs(1 << 50));
}

#[test]
fn of_equal_waits_retry_after_counts_in_whichever_order_they_come() {
    for pairs in [
        [("retry-after", "2"), ("retry-after-ms", "2000")],
        [("retry-after-ms", "2000"), ("retry-after", "2")],
    ] {
        let pushback = read_headers(&headers(&pairs)).pushback();
        assert_eq!(pushback, Some(Pushback::new(Duration::from_secs(2))), "{pairs:?}");
    }
}

// RA-12
#[test]
fn a_reset_is_read_in_its_declared_unit_and_not_at_all_without() {
    let name = http::HeaderName::from_static("x-ratelimit-reset");
    let read = |unit, value| {
        let sources = HintSources::new().with_reset(name.clone(), unit);
        delay(Hint::read(&headers(&[("x-ratelimit-reset", value)]), &sources, wall))
    };
    assert_eq!(read(ResetUnit::EpochSeconds, "1930478405"), millis(5_000));
    assert_eq!(read(ResetUnit::EpochMillis, "1930478405000"), millis(5_000));
    assert_eq!(read(ResetUnit::EpochMillis, "1930478405000.25"), millis(5_001));
    assert_eq!(read(ResetUnit::Seconds, "5"), millis(5_000));
    assert_eq!(read(ResetUnit::EpochSeconds, "1930478390"), millis(0));
    assert_eq!(
        read(ResetUnit::EpochSeconds, "99999999999999999999").map(|it| it.as_secs() > 1 << 40),
        Some(true)
    );
    for (value, expected) in [
        ("6m0s", millis(360_000)),
        ("1h2m3.5s", millis(3_723_500)),
        ("12ms", millis(12)),
        ("1500us", millis(2)),
        ("1ns", millis(1)),
        ("6", None),
        ("6x", None),
        ("", None),
        ("-5s", None),
        ("s", None),
    ] {
        assert_eq!(read(ResetUnit::GoDuration, value), expected, "{value:?}");
    }
    let undeclared = headers(&[("x-ratelimit-reset", "5")]);
    assert_eq!(read_headers(&undeclared), Hint::ABSENT);
}

#[test]
fn the_ratelimit_draft_asks_for_the_longest_wait_of_what_is_used_up() {
    let read = |value: &str| {
        let sources = HintSources::new().with_ratelimit();
        delay(Hint::read(&headers(&[("ratelimit", value)]), &sources, wall))
    };
    assert_eq!(read(r#""default";r=0;t=30"#), millis(30_000));
    assert_eq!(read(r#""hour";r=0;t=600, "second";r=0;t=1"#), millis(600_000));
    assert_eq!(read(r#""hour";r=7;t=600, "second";r=0;t=1"#), millis(1_000));
    for ignored in
        [r#""default";r=5;t=30"#, r#""default";r=0"#, "r=0;t=", "\u{7f}", r#""x";r=0;t=-1"#]
    {
        if ignored.parse::<http::HeaderValue>().is_ok() {
            assert_eq!(read(ignored), None, "{ignored:?}");
        }
    }
    let undeclared = headers(&[("ratelimit", r#""default";r=0;t=30"#)]);
    assert_eq!(read_headers(&undeclared), Hint::ABSENT);
}

#[test]
fn retry_after_prevails_over_quotas() {
    let name = http::HeaderName::from_static("x-ratelimit-reset");
    let sources = HintSources::new().with_ratelimit().with_reset(name, ResetUnit::Seconds);
    let all = [("ratelimit", r#""d";r=0;t=30"#), ("x-ratelimit-reset", "20"), ("retry-after", "1")];
    assert_eq!(delay(Hint::read(&headers(&all), &sources, wall)), millis(1_000));
    assert_eq!(delay(Hint::read(&headers(&all[..2]), &sources, wall)), millis(30_000));
}

/// gRFC A6: a number is the delay; negative or unreadable, it forbids a retry.
#[test]
fn grpc_pushback_is_a_delay_or_a_no() {
    let sources = HintSources::new().with_grpc_pushback();
    let read = |value| {
        let headers = headers(&[("grpc-retry-pushback-ms", value), ("retry-after", "9")]);
        Hint::read(&headers, &sources, wall)
    };
    assert_eq!((delay(read("120")), read("120").again()), (millis(120), None));
    assert_eq!(delay(read("0")), millis(0));
    for never in ["-1", "soon", ""] {
        assert_eq!((delay(read(never)), read(never).again()), (None, Some(false)), "{never:?}");
    }
}

#[test]
fn should_retry_is_read_only_where_it_is_declared() {
    let sources = HintSources::new().with_should_retry();
    let read = |value, sources| Hint::read(&headers(&[("x-should-retry", value)]), sources, wall);
    assert_eq!(read("true", &sources).again(), Some(true));
    assert_eq!(read(" false ", &sources).again(), Some(false));
    assert_eq!(read("maybe", &sources).again(), None);
    assert_eq!(read("false", &HintSources::new()).again(), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = http::HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value);
            let _ = read_headers(&headers);
        }
    }

    #[test]
    fn a_number_is_never_read_as_less_than_it_says(whole in 0_u64..1 << 40, fraction in "[0-9]{1,12}") {
        let stated = format!("{whole}.{fraction}");
        let read = read(&stated).unwrap();
        let nanos = format!("{fraction:0<12}")[..12].parse::<u128>().unwrap() / 1_000;
        prop_assert!(read.as_nanos() >= u128::from(whole) * 1_000_000_000 + nanos);
        prop_assert!(read < Duration::from_secs(whole + 2));
    }
}
