use std::borrow::Borrow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use abate_core::policy::Policy;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::redirect::Redirects;
use super::service::Client;
use crate::error::BoxError;
use crate::scope::Scope;
use crate::stack::Stack;

/// The longest a connection may take, unless half the attempt timeout is less: 5 s, which the second
/// repeat of a lost SYN (after 3 s) still meets. In time for the attempt to fail as one that was
/// never sent, and so may be repeated whatever the method.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most redirects of an attempt: 10, as of reqwest. The next one is the response.
pub const REDIRECTS: u32 = 10;

/// A client with all defaults, by `policy`; see the [module](mod@crate::client).
///
/// # Errors
///
/// If the platform has no root certificates.
pub fn client(policy: impl Borrow<Policy>) -> Result<Client, BuildError> {
    Client::builder(policy).build()
}

impl Client {
    /// A client that is still to be told something.
    #[must_use]
    pub fn builder(policy: impl Borrow<Policy>) -> ClientBuilder {
        ClientBuilder::new(policy.borrow())
    }
}

/// Makes a [`Client`].
///
/// # Examples
///
/// ```no_run
/// # fn build() -> Result<(), Box<dyn std::error::Error>> {
/// let client = abate::Client::builder(abate::Policy::default())
///     .with_root_certificates(std::fs::read("company-ca.pem")?)
///     .map_stack(|stack| stack.covering_body())
///     .build()?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    stack: Stack,
    redirects: u32,
    connect_timeout: Duration,
    platform_roots: bool,
    /// PEM.
    roots: Vec<Vec<u8>>,
}

impl ClientBuilder {
    fn new(policy: &Policy) -> Self {
        Self {
            stack: Stack::new(policy).with_scope(Scope::PerAuthority),
            redirects: REDIRECTS,
            connect_timeout: CONNECT_TIMEOUT.min(policy.attempt_timeout() / 2),
            platform_roots: true,
            roots: Vec::new(),
        }
    }

    /// Changes the stack: a budget that others share, bodies that are covered, another scope.
    #[must_use]
    pub fn map_stack(mut self, change: impl FnOnce(Stack) -> Stack) -> Self {
        self.stack = change(self.stack);
        self
    }

    /// Follows at most so many redirects in an attempt; with 0 they are responses as any other.
    #[must_use]
    pub const fn with_redirects(mut self, at_most: u32) -> Self {
        self.redirects = at_most;
        self
    }

    /// How long a connection may take. Best less than the attempt timeout: see [`CONNECT_TIMEOUT`].
    #[must_use]
    pub const fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Trusts these root certificates as well, in PEM, one or several.
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Trusts none of the platform's root certificates, and does not read them: for private
    /// authorities, and for a client of plain HTTP where there are none.
    #[must_use]
    pub const fn without_platform_roots(mut self) -> Self {
        self.platform_roots = false;
        self
    }

    /// The client.
    ///
    /// Reads the platform's root certificates from its files: some milliseconds, best spent at
    /// start.
    ///
    /// # Errors
    ///
    /// As [`BuildError`] has them.
    pub fn build(self) -> Result<Client, BuildError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls()?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let hyper = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // What a dying connection never took is sent on another, of which the retry need not
            // know: it was not an attempt.
            .retry_canceled_requests(true)
            .build(connector);
        Ok(Client::new(self.stack, Redirects::new(self.redirects), hyper))
    }

    fn tls(&self) -> Result<ClientConfig, BuildError> {
        let roots = self.trusted()?;
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| BuildError::Tls(error.into()))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    fn trusted(&self) -> Result<RootCertStore, BuildError> {
        let mut roots = RootCertStore::empty();
        if self.platform_roots {
            let found = rustls_native_certs::load_native_certs();
            // Some of a platform's are malformed now and then, and nobody here can mend them.
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let why = found.errors.into_iter().next().map(BoxError::from);
                return Err(BuildError::NoPlatformRoots(why));
            }
        }
        for pem in &self.roots {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(BoxError::from);
                let added = certificate.and_then(|certificate| Ok(roots.add(certificate)?));
                added.map_err(|error| BuildError::RootCertificate(Some(error)))?;
            }
            if roots.len() == before {
                return Err(BuildError::RootCertificate(None));
            }
        }
        Ok(roots)
    }
}

/// Why there is no [`Client`].
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The platform has no root certificates, or they cannot be read: no server could be trusted.
    /// [`without_platform_roots`](ClientBuilder::without_platform_roots) does without.
    NoPlatformRoots(Option<BoxError>),
    /// What was [given](ClientBuilder::with_root_certificates) is no certificate in PEM.
    RootCertificate(Option<BoxError>),
    /// The process's own cryptography provider of rustls can do neither TLS 1.2 nor 1.3.
    Tls(BoxError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPlatformRoots(_) => "no root certificates were found on this platform",
            Self::RootCertificate(_) => "no root certificate in PEM",
            Self::Tls(_) => "the cryptography provider cannot be used",
        })
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::NoPlatformRoots(source) | Self::RootCertificate(source) => source.as_deref(),
            Self::Tls(source) => Some(source.as_ref()),
        }
        .map(|source| source as _)
    }
}
