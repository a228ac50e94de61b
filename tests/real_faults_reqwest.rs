//! The errors of a real reqwest client.

use std::time::Duration;

use abate::{Fault, fault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tower::BoxError;

type Test = Result<(), BoxError>;

/// A server that reads a little, sends `answer`, and then closes or waits for the client to.
async fn server(answer: &'static str, closes: bool) -> Result<String, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                connection.read_buf(&mut Vec::with_capacity(4_096)).await?;
                connection.write_all(answer.as_bytes()).await?;
                if !closes {
                    connection.read_to_end(&mut Vec::new()).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    Ok(format!("http://{address}/"))
}

/// What a client is told that has half a second for a call.
async fn failing(url: &str) -> Result<reqwest::Error, BoxError> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500));
    let got = client.build()?.post(url).body("data").send().await;
    got.err().ok_or_else(|| "it went well".into())
}

#[tokio::test]
async fn a_refused_connection_is_unsent() -> Test {
    // Bound, so that nobody else gets the port, and not listening.
    let closed = TcpSocket::new_v4()?;
    closed.bind("127.0.0.1:0".parse()?)?;
    let error = failing(&format!("http://{}/", closed.local_addr()?)).await?;
    assert!(error.is_connect());
    assert_eq!(fault::of(&error), Fault::Unsent);
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_not_found_is_unsent() -> Test {
    // A label of 64 bytes: too long for any name there is, and no resolver has to be asked.
    let error = failing(&format!("http://{}.invalid/", "a".repeat(64))).await?;
    assert!(error.is_connect() && error.is_dns(), "{error:?}");
    assert_eq!(fault::of(&error), Fault::Unsent);
    Ok(())
}

#[tokio::test]
async fn a_timeout_and_a_close_may_come_after_the_request_was_carried_out() -> Test {
    let error = failing(&server("", false).await?).await?;
    assert!(error.is_timeout());
    assert_eq!(fault::of(&error), Fault::Ambiguous);
    let error = failing(&server("", true).await?).await?;
    assert!(error.is_request());
    assert_eq!(fault::of(&error), Fault::Ambiguous);
    Ok(())
}

#[tokio::test]
async fn redirects_in_a_circle_are_permanent() -> Test {
    const ROUND: &str =
        "HTTP/1.1 307 Round\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let error = failing(&server(ROUND, true).await?).await?;
    assert!(error.is_redirect(), "{error:?}");
    assert_eq!(fault::of(&error), Fault::Permanent);
    Ok(())
}
