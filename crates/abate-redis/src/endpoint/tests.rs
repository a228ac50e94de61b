use super::{Endpoint, EndpointError};
use std::time::Duration;

#[test]
fn what_is_left_out_of_a_url_has_its_default() {
    let endpoint = Endpoint::new("redis://cache", "shop").unwrap();
    assert_eq!(endpoint.to_string(), "cache:6379/0");
    assert_eq!(endpoint.login().username(), None);
    assert_eq!(endpoint.login().password(), None);
    assert_eq!(endpoint.request_timeout(), Duration::from_millis(250));
    assert_eq!(endpoint.connect_timeout(), Duration::from_millis(500));
}

#[test]
fn user_and_password_are_read_with_their_escapes() {
    let endpoint = Endpoint::new("valkey://me:p%40ss%2F@[::1]:7000/3", "shop").unwrap();
    assert_eq!(endpoint.to_string(), "[::1]:7000/3");
    assert_eq!(endpoint.host(), "::1");
    assert_eq!(endpoint.login().username(), Some("me"));
    assert_eq!(endpoint.login().password(), Some("p@ss/"));
}

#[test]
fn every_problem_is_told_at_once_and_what_to_do() {
    let told = refused("http://cache", "");
    assert!(told.contains("`http://` is not supported: write redis://"), "{told}");
    assert!(told.contains("namespace: missing: name the fleet that shares this budget"), "{told}");
}

#[test]
fn wrong_urls_are_refused_with_a_reason() {
    for (url, reason) in [
        ("cache:6379:1", "`cache://` is not supported"),
        ("cache", "not a URL"),
        ("redis://", "the host is missing"),
        ("redis://cache/first", "the database is a number"),
        ("redis://cache/-1", "the database is a number"),
        ("redis://cache?timeout=1", "settings are methods"),
        ("redis://cache#insecure", "settings are methods"),
        ("redis://cache:99999", "not a URL"),
        ("redis://secret@cache", "a user without a password"),
        ("unix:///run/redis.sock", "`unix://` is not supported"),
    ] {
        let told = refused(url, "shop");
        assert!(told.contains(reason), "{url}: {told}");
    }
}

#[test]
fn namespaces_that_would_split_a_key_are_refused() {
    for namespace in ["a b", "a{b}", "a\n", "größe", &"x".repeat(65)] {
        assert!(refused("redis://cache", namespace).contains("namespace: "), "{namespace}");
    }
    Endpoint::new("redis://cache", "shop-prod_2.eu:a/b").unwrap();
}

#[test]
fn a_password_is_never_shown() {
    let url = "redis://me:hunter2@cache:6379/0";
    let endpoint = Endpoint::new(url, "shop").unwrap();
    assert!(!format!("{endpoint:?} {endpoint}").contains("hunter2"));
    for wrong in ["redis://me:hunter2@", "redis://me:hunter2@cache/x", "redis//me:hunter2@cache"] {
        assert!(!refused(wrong, "").contains("hunter2"), "{wrong}");
    }
}

#[test]
fn timeouts_are_refused_where_they_would_harm() {
    let endpoint = Endpoint::new("redis://cache", "shop").unwrap();
    for wrong in [Duration::ZERO, Duration::from_secs(11)] {
        assert!(endpoint.clone().with_request_timeout(wrong).is_err(), "{wrong:?}");
        assert!(endpoint.clone().with_connect_timeout(wrong).is_err(), "{wrong:?}");
    }
    endpoint.with_request_timeout(Duration::from_millis(500)).unwrap();
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_without_its_feature_is_refused() {
    assert!(refused("rediss://cache", "shop").contains("TLS needs the feature `tls`"));
}

#[cfg(feature = "tls")]
#[test]
fn tls_has_schemes_of_its_own() {
    assert!(Endpoint::new("rediss://cache", "shop").unwrap().is_tls());
    assert!(Endpoint::new("valkeys://cache", "shop").unwrap().is_tls());
    assert!(!Endpoint::new("redis://cache", "shop").unwrap().is_tls());
}

fn refused(url: &str, namespace: &str) -> String {
    Endpoint::new(url, namespace).map_or_else(|it: EndpointError| it.to_string(), |_| String::new())
}
