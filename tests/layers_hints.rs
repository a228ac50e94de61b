//! The layer that publishes `Retry-After`.

use std::time::Duration;

use abate::{Pushback, RetryAfterLayer};
use abate_tests::events::Events;
use abate_tests::script::{Answer, Script};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, millis, seconds};

/// What is published of `answer`, and what is told.
async fn published(answer: Answer) -> Result<(Option<Duration>, Vec<String>), BoxError> {
    let events = Events::listen();
    let response = RetryAfterLayer::new().layer(Script::of([answer])).oneshot(get()).await?;
    let pushback = response.extensions().get::<Pushback>();
    Ok((pushback.map(|it| it.delay()), events.messages()))
}

fn hinted(code: u16, hint: &str) -> Answer {
    Answer::status(code).header("retry-after", hint)
}

#[tokio::test(start_paused = true)]
async fn seconds_and_dates_are_published() -> Tested {
    let date = |at| {
        hinted(503, &format!("Wed, 05 Mar 2031 {at} GMT"))
            .header("date", "Wed, 05 Mar 2031 12:00:00 GMT")
    };
    for (answer, delay) in [
        (hinted(503, "120"), seconds(120)),
        (hinted(429, "1.5"), millis(1_500)),
        (hinted(404, "7"), seconds(7)),
        (hinted(301, "7"), seconds(7)),
        (hinted(503, "0"), seconds(0)),
        (date("12:00:30"), seconds(30)),
        (date("11:59:20"), seconds(0)),
    ] {
        assert_eq!(published(answer.clone()).await?, (Some(delay), vec![]), "{answer:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_malformed_is_told_and_not_published() -> Tested {
    for hint in ["soon", "-7", "", "1,5"] {
        let (pushback, told) = published(hinted(503, hint)).await?;
        assert_eq!(pushback, None, "{hint:?}");
        assert!(matches!(&told[..], [one] if one.starts_with("hint ignored")), "{told:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_success_and_what_says_nothing_are_left_alone() -> Tested {
    for answer in [hinted(200, "120"), hinted(202, "soon"), Answer::status(503)] {
        assert_eq!(published(answer.clone()).await?, (None, vec![]), "{answer:?}");
    }
    Ok(())
}
