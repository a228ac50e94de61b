use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{AGE, DATE, RETRY_AFTER};
use proptest::prelude::*;

use super::{Hint, Pushback};

/// Wednesday, 2031-03-05T12:00:00Z.
const NOW: Duration = Duration::from_secs(1_930_478_400);

fn wall() -> SystemTime {
    UNIX_EPOCH + NOW
}

fn read(value: &str) -> Hint {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, value.parse().unwrap());
    Hint::read(&headers, wall)
}

fn after(delay: Duration) -> Hint {
    Hint::Pushback(Pushback::new(delay))
}

fn millis(millis: u64) -> Hint {
    after(Duration::from_millis(millis))
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
        assert_eq!(read(value), Hint::Malformed, "{value:?}");
    }
    assert_eq!(Hint::read(&HeaderMap::new(), wall), Hint::Absent);
}

// RA-07
#[test]
fn a_huge_number_never_becomes_a_short_wait() {
    assert_eq!(read("9999999999"), after(Duration::from_secs(9_999_999_999)));
    assert_eq!(read("9223372036854775808"), after(Duration::from_secs(1 << 63)));
    for value in ["18446744073709551616", "18446744073709551616.5", &"9".repeat(400)] {
        assert!(read(value).pushback().unwrap().delay() >= Duration::from_secs(u64::MAX));
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
    let far = read("Fri, 31 Dec 9999 23:59:59 GMT").pushback().unwrap().delay();
    assert!(far > Duration::from_secs(200_000_000_000));
    assert_eq!(read("Sat, 01 Jan 0000 00:00:00 GMT"), Hint::Malformed);
    assert_eq!(read("Tue, 30 Feb 2031 00:00:00 GMT"), Hint::Malformed);
}

// RA-18
#[test]
fn a_date_is_measured_by_the_servers_clock_unless_the_answer_is_from_a_cache() {
    let fast = || wall() + Duration::from_secs(120);
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, "Wed, 05 Mar 2031 12:00:30 GMT".parse().unwrap());
    assert_eq!(Hint::read(&headers, fast), millis(0), "without Date the local clock decides");

    headers.insert(DATE, "Wed, 05 Mar 2031 12:00:00 GMT".parse().unwrap());
    assert_eq!(Hint::read(&headers, || panic!("Date was there")), millis(30_000));

    headers.insert(AGE, "0".parse().unwrap());
    assert_eq!(Hint::read(&headers, || panic!("Date was there")), millis(30_000));

    headers.insert(AGE, "90".parse().unwrap());
    assert_eq!(Hint::read(&headers, fast), millis(0), "a cached Date is not trusted");

    headers.remove(AGE);
    headers.insert(DATE, "yesterday".parse().unwrap());
    assert_eq!(Hint::read(&headers, wall), millis(30_000), "a broken Date is not trusted");
}

#[test]
fn of_several_values_the_longest_counts() {
    let mut headers = HeaderMap::new();
    for value in ["2", "nonsense", "Wed, 05 Mar 2031 12:00:09 GMT", "5"] {
        headers.append(RETRY_AFTER, value.parse().unwrap());
    }
    assert_eq!(Hint::read(&headers, wall), millis(9_000));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = http::HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value);
            let _ = Hint::read(&headers, wall);
        }
    }

    #[test]
    fn a_number_is_never_read_as_less_than_it_says(whole in 0_u64..1 << 40, fraction in "[0-9]{1,12}") {
        let stated = format!("{whole}.{fraction}");
        let read = read(&stated).pushback().unwrap().delay();
        let nanos = format!("{fraction:0<12}")[..12].parse::<u128>().unwrap() / 1_000;
        prop_assert!(read.as_nanos() >= u128::from(whole) * 1_000_000_000 + nanos);
        prop_assert!(read < Duration::from_secs(whole + 2));
    }
}
