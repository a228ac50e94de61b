//! Handshakes that cannot succeed, and those that may the next time.

mod loopback;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use abate::{Error, Fault, Policy, ReplayBody, Report, Stack, StackService, StopReason};
use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use loopback::{Peer, Server, Test, report, tried};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tower::timeout::Timeout;
use tower::{Layer, ServiceExt};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

type Issuer = CertifiedIssuer<'static, KeyPair>;
type HttpsClient<C> = StackService<Client<C, ReplayBody<Full<Bytes>>>>;

fn issuer(name: &str) -> Result<Issuer, rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// A certificate for the loopback's address, which is what the tests connect to.
fn ours() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    Ok(params)
}

fn acceptor(
    issuer: &Issuer,
    params: &CertificateParams,
    asks: bool,
) -> anyhow::Result<TlsAcceptor> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder();
    let config = if asks {
        config.with_client_cert_verifier(
            WebPkiClientVerifier::builder(roots(issuer)?.into()).build()?,
        )
    } else {
        config.with_no_client_auth()
    };
    let config = config.with_single_cert(vec![certificate.der().clone()], key.into())?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn roots(issuer: &Issuer) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone())?;
    Ok(roots)
}

fn connector(trusted: &Issuer) -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let config = ClientConfig::builder().with_root_certificates(roots(trusted)?);
    let config = config.with_no_client_auth();
    Ok(HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build())
}

fn client<C: Connect + Clone>(connector: C) -> HttpsClient<C> {
    Stack::new(Policy::default()).layer(Client::builder(TokioExecutor::new()).build(connector))
}

/// Answers each request on a connection, after a handshake.
async fn serve(acceptor: TlsAcceptor, mut peer: Peer) -> io::Result<()> {
    let mut stream = match acceptor.accept(&mut peer.stream).into_fallible().await {
        Ok(stream) => stream,
        Err((_, stream)) => {
            // Read to its end, so that no reset overtakes the alert.
            let end = stream.read_to_end(&mut Vec::new()).await;
            peer.note("no handshake")?;
            return end.map(drop);
        }
    };
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await? > 0 {
        if request.ends_with(b"\r\n\r\n") || request.ends_with(b"data") {
            stream.write_all(OK).await?;
            request.clear();
        }
    }
    Ok(())
}

/// The error that rustls reports, wherever it is.
fn of_rustls(error: &Error) -> Option<&rustls::Error> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    None
}

/// The error of a call that was over after one attempt.
fn tried_once<R>(got: Result<R, Error>) -> anyhow::Result<Error> {
    let error = got.err().context("it went well")?;
    anyhow::ensure!(tried(error.report()) == [Err(Fault::Permanent)], "{error:?}");
    let reason = error.report().and_then(Report::stop_reason);
    anyhow::ensure!(reason == Some(StopReason::NotRetryable), "{error:?}");
    Ok(error)
}

// CN-06
#[tokio::test]
async fn a_certificate_that_does_not_hold_is_looked_at_once() -> Test {
    let (known, unknown) = (issuer("known")?, issuer("unknown")?);
    let mut expired = ours()?;
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2020, 2, 1);
    let other_name = CertificateParams::new(["stock.internal".to_owned()])?;
    let cases = [(&known, expired), (&unknown, ours()?), (&known, other_name)];
    let mut seen = Vec::new();
    for (issuer, params) in cases {
        let acceptor = acceptor(issuer, &params, false)?;
        let mut server = Server::start(move |peer| serve(acceptor.clone(), peer)).await?;
        let client = client(connector(&known)?);
        let error = tried_once(client.oneshot(server.request("https", Method::GET)).await)?;
        assert_eq!((server.note().await?.as_str(), server.connections()), ("no handshake", 1));
        seen.push(match of_rustls(&error) {
            Some(rustls::Error::InvalidCertificate(why)) => match why {
                CertificateError::ExpiredContext { .. } => "expired",
                CertificateError::UnknownIssuer => "unknown issuer",
                CertificateError::NotValidForNameContext { .. } => "another name",
                _ => "?",
            },
            _ => "not there",
        });
    }
    assert_eq!(seen, ["expired", "unknown issuer", "another name"], "the caller sees why");
    Ok(())
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_of_ours_is_asked_once() -> Test {
    let issuer = issuer("known")?;
    let acceptor = acceptor(&issuer, &ours()?, true)?;
    let mut server = Server::start(move |peer| serve(acceptor.clone(), peer)).await?;
    let client = client(connector(&issuer)?);
    let error = tried_once(client.oneshot(server.request("https", Method::GET)).await)?;
    assert!(matches!(of_rustls(&error), Some(rustls::Error::AlertReceived(_))), "{error:?}");
    assert_eq!((server.note().await?.as_str(), server.connections()), ("no handshake", 1));
    Ok(())
}

// CN-06
#[tokio::test]
async fn a_handshake_that_is_cut_off_is_tried_again_whatever_the_method() -> Test {
    let issuer = issuer("known")?;
    for reads in [true, false] {
        let acceptor = acceptor(&issuer, &ours()?, false)?;
        let mut server = Server::start(move |mut peer| {
            let acceptor = acceptor.clone();
            async move {
                if peer.number > 0 {
                    return serve(acceptor, peer).await;
                }
                // What is left unread makes the close a reset.
                let length = if reads { 4_096 } else { 1 };
                peer.stream.read(&mut vec![0; length]).await.map(drop)
            }
        })
        .await?;
        let client = client(connector(&issuer)?);
        let got = client.oneshot(server.request("https", Method::POST)).await?;
        assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)]);
        assert_eq!((server.connections(), server.notes()), (2, vec![]), "the second was whole");
    }
    Ok(())
}

// CN-06
#[tokio::test]
async fn a_handshake_that_the_connector_gives_up_is_tried_again_whatever_the_method() -> Test {
    const LIMIT: Duration = Duration::from_millis(500);
    let issuer = issuer("known")?;
    let acceptor = acceptor(&issuer, &ours()?, false)?;
    let server = Server::start(move |mut peer| {
        let acceptor = acceptor.clone();
        async move {
            if peer.number > 0 {
                return serve(acceptor, peer).await;
            }
            peer.stream.read_to_end(&mut Vec::new()).await.map(drop) // And never a word.
        }
    })
    .await?;
    let connector = Timeout::new(connector(&issuer)?, LIMIT);
    let client = client(ServiceExt::<Uri>::map_future(connector, Box::pin));
    let got = client.oneshot(server.request("https", Method::POST)).await?;
    assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)]);
    assert!(report(&got).is_some_and(|report| report.elapsed() >= LIMIT));
    Ok(())
}

#[tokio::test]
async fn a_server_that_talks_no_tls_may_talk_it_the_next_time() -> Test {
    let issuer = issuer("known")?;
    let acceptor = acceptor(&issuer, &ours()?, false)?;
    let server = Server::start(move |mut peer| {
        let acceptor = acceptor.clone();
        async move {
            if peer.number > 0 {
                return serve(acceptor, peer).await;
            }
            peer.stream.write_all(b"HTTP/1.0 503 Busy\r\n\r\n").await?;
            peer.stream.read_to_end(&mut Vec::new()).await.map(drop)
        }
    })
    .await?;
    let client = client(connector(&issuer)?);
    let got = client.oneshot(server.request("https", Method::POST)).await?;
    assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)]);
    Ok(())
}
