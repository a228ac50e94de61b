//! TLS with rustls, by the process's own cryptography provider or else aws-lc-rs.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::Cause;
use crate::endpoint::Endpoint;

pub(super) async fn wrap(
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Cause> {
    let name = ServerName::try_from(endpoint.host().to_owned()).map_err(|_| Cause::Tls)?;
    let config = config(endpoint.roots()).ok_or(Cause::Tls)?;
    let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    shaken.map_err(|error| {
        let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        if is_tls { Cause::Tls } else { Cause::Unreachable(error.kind()) }
    })
}

/// Read anew for each connection: these are rare, and roots change while a process runs.
fn config(own: Option<&[u8]>) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = own {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.ok()?).ok()?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return None;
    }
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().ok()?;
    Some(config.with_root_certificates(roots).with_no_client_auth())
}
