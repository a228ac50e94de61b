//! What becomes of a response that is discarded for a retry.

use std::time::Duration;

use abate_tests::play::{Beat, Watched};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, millis, read, unpaid, waits};

const KIB: usize = 1_024;

/// What becomes of `body`, discarded for a retry that comes `wait` later.
async fn discarded(body: impl Into<Vec<Beat>>, wait: Duration) -> Result<Watched, BoxError> {
    let answers = [Answer::status(503).body(body), Answer::status(200).body([Beat::data("fine")])];
    let script = Script::of(answers);
    let response = unpaid(waits(wait))?.layer(script.clone()).oneshot(get()).await?;
    assert_eq!(response.status(), 200);
    assert_eq!(read(response).await?, "fine");
    let sent = script.arrived()[1].at;
    assert!((wait..=wait + millis(2)).contains(&sent), "draining moved the retry to {sent:?}");
    let watched = script.bodies()[0].clone();
    assert!(watched.dropped() <= Some(sent), "kept beyond the next attempt");
    Ok(watched)
}

#[tokio::test(start_paused = true)]
async fn a_small_body_is_read_to_its_end_during_the_wait() -> Tested {
    let body = [Beat::data("busy"), Beat::Pause(millis(20)), Beat::trailer("x-sum", "4")];
    let watched = discarded(body, millis(500)).await?;
    assert_eq!((watched.read(), watched.ended()), (4, true));
    assert_eq!(watched.dropped(), Some(millis(20)), "and dropped at once");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_is_dropped_at_once() -> Tested {
    assert_eq!(discarded([], millis(500)).await?.dropped(), Some(millis(0)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_hangs_is_dropped_after_fifty_milliseconds() -> Tested {
    let watched = discarded([Beat::data("busy"), Beat::Hang], millis(500)).await?;
    assert_eq!((watched.read(), watched.ended()), (4, false));
    let dropped = watched.dropped().unwrap();
    assert!((millis(50)..=millis(51)).contains(&dropped), "{dropped:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_read_for_longer_than_the_wait() -> Tested {
    let watched = discarded([Beat::Hang], millis(30)).await?;
    let dropped = watched.dropped().unwrap();
    assert!((millis(30)..=millis(31)).contains(&dropped), "{dropped:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_read_while_there_is_time() -> Tested {
    let drop_by_drop = [Beat::data("12345678"), Beat::Pause(millis(20))];
    let body: Vec<_> = drop_by_drop.into_iter().cycle().take(100).collect();
    let watched = discarded(body, millis(500)).await?;
    assert_eq!(watched.read(), 3 * 8, "at 0, 20 and 40 ms");
    assert!(watched.dropped() <= Some(millis(51)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_big_body_is_read_up_to_sixty_four_kibibytes() -> Tested {
    let chunk = Bytes::from(vec![7; 16 * KIB]);
    let big = vec![Beat::Data(chunk.clone()); 64];
    for body in [big, vec![Beat::Endless(chunk)]] {
        let watched = discarded(body, millis(500)).await?;
        assert_eq!((watched.read(), watched.dropped()), (64 * KIB, Some(millis(0))));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_while_it_is_drained_is_nobodys_matter() -> Tested {
    let watched = discarded([Beat::data("bu"), Beat::Break], millis(500)).await?;
    assert_eq!((watched.read(), watched.dropped()), (2, Some(millis(0))));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_not_discarded_is_not_read() -> Tested {
    let script = Script::of([Answer::status(404).body([Beat::data("who?")])]);
    let response = unpaid(waits(millis(9)))?.layer(script.clone()).oneshot(get()).await?;
    assert_eq!(script.bodies()[0].polls(), 0);
    assert_eq!(read(response).await?, "who?");
    Ok(())
}
