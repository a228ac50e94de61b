//! The same over TLS, which a server of our own ends on its way to Redis.

use std::net::Ipv4Addr;
use std::sync::Arc;

use abate_redis::Endpoint;
use abate_redis::link::{Cause, Link, LinkError};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::support::{Kind, Server, call, counting};

#[tokio::test]
async fn scripts_run_over_tls_by_a_root_of_our_own() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &["--requirepass", "s"])? else { continue };
        let tls = Tls::before(&server).await?;
        let url = format!("rediss://:s@localhost:{}", tls.port);
        let endpoint = Endpoint::new(&url, "test")?.with_root_certificates(tls.root.clone());
        let answers = Link::new(endpoint).evaluate(&counting(), &[call("count")]).await?;
        assert!(answers[0].is_ok(), "{answers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_named() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let tls = Tls::before(&server).await?;
        let other = Tls::before(&server).await?;
        for (host, root) in [("localhost", &other.root), ("127.0.0.1", &tls.root)] {
            let url = format!("rediss://{host}:{}", tls.port);
            let endpoint = Endpoint::new(&url, "test")?.with_root_certificates(root.clone());
            let link = Link::new(endpoint);
            let refused = link.evaluate(&counting(), &[call("count")]).await;
            assert_eq!(refused, Err(LinkError::Unsent(Cause::Tls)), "{host}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_no_connection() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let tls = Tls::before(&server).await?;
        let url = format!("rediss://localhost:{}", server.port());
        let endpoint = Endpoint::new(&url, "test")?.with_root_certificates(tls.root.clone());
        let refused = Link::new(endpoint).evaluate(&counting(), &[call("count")]).await;
        assert!(matches!(refused, Err(LinkError::Unsent(_))), "{refused:?}");
    }
    Ok(())
}

/// Ends TLS before a server, with a certificate for `localhost` made on the spot.
struct Tls {
    port: u16,
    root: String,
    task: AbortHandle,
}

impl Tls {
    async fn before(server: &Server) -> anyhow::Result<Self> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()])?;
        let key =
            PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let behind = server.port();
        let accepting = serve(listener, TlsAcceptor::from(Arc::new(config)), behind);
        Ok(Self { port, root: cert.pem(), task: tokio::spawn(accepting).abort_handle() })
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, behind: u16) -> anyhow::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let tls = tls.clone();
        tokio::spawn(async move {
            let mut client = tls.accept(client).await?;
            let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).await?;
            copy_bidirectional(&mut client, &mut server).await?;
            anyhow::Ok(())
        });
    }
}
