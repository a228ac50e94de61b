//! Which calls go out again when a server has lost the script amid a pipeline: by a server that plays the part, since
//! no real one can be brought to do it at that very moment.

use std::net::Ipv4Addr;

use abate_redis::Endpoint;
use abate_redis::link::{Link, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{call, counting};

#[tokio::test]
async fn only_what_was_answered_with_noscript_goes_out_again() -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("redis://127.0.0.1:{}", listener.local_addr()?.port());
    let server = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await?;
        let mut seen = Vec::new();
        for answer in ["+OK\r\n+OK\r\n", ":1\r\n-NOSCRIPT gone\r\n:3\r\n", ":2\r\n"] {
            let mut piece = [0; 4096];
            let length = client.read(&mut piece).await?;
            seen.push(String::from_utf8_lossy(&piece[..length]).into_owned());
            client.write_all(answer.as_bytes()).await?;
        }
        anyhow::Ok(seen)
    });
    let link = Link::new(Endpoint::new(&url, "test")?);
    let answers = link.evaluate(&counting(), &[call("a"), call("b"), call("c")]).await?;
    assert_eq!(answers, [1, 2, 3].map(|count| Ok(Reply::Integer(count))));
    let seen = server.await??;
    assert_eq!(seen[1].matches("EVALSHA").count(), 3);
    assert_eq!((seen[2].matches("EVAL").count(), seen[2].matches("\r\nb\r\n").count()), (1, 1));
    Ok(())
}
