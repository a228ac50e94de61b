use std::fmt;
use std::time::Duration;

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};
use url::Url;

use super::problem::{EndpointError, Problem};

/// A request that has no answer by then counts as lost: five times the slowest answer that a healthy store
/// in the same region gives, and a quarter of the usual interval between two.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(250);

/// Name, TCP, TLS and login together: four round trips of 100 ms, and a name server. An attempt that fell into a hole
/// holds up the next one for so long.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Shorter, and one pause of a garbage collector takes the store down; longer, and a hung store holds up a sync.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(10);

/// Keys stand in many lines of a server's log.
const LONGEST_NAMESPACE: usize = 64;

/// Where a Redis or Valkey is, and the namespace that all our keys there begin with.
///
/// Building one connects to nothing. `Debug` and `Display` never show the password.
///
/// | setting | default |
/// |---|---|
/// | port | 6379 |
/// | database | 0 |
/// | request timeout | 250 ms |
/// | connect timeout | 500 ms |
///
/// # Examples
///
/// ```
/// use abate_redis::Endpoint;
///
/// let endpoint = Endpoint::new("redis://:secret@cache.internal:6380/2", "shop")?;
/// assert_eq!(endpoint.to_string(), "cache.internal:6380/2");
/// # Ok::<_, abate_redis::EndpointError>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    host: String,
    port: u16,
    tls: bool,
    login: RedisConnectionInfo,
    namespace: String,
    roots: Option<Vec<u8>>,
    request_timeout: Duration,
    connect_timeout: Duration,
}

impl Endpoint {
    /// The server that `url` names, `redis://[user][:password@]host[:port][/database]`, and `rediss://` for TLS
    /// (feature `tls`); `valkey://` and `valkeys://` are the same. Every process that shares a budget has the same
    /// `namespace`, and no other program has it: keys begin with it.
    ///
    /// # Errors
    ///
    /// All that is wrong with either, and what would be right.
    pub fn new(url: &str, namespace: &str) -> Result<Self, EndpointError> {
        let mut problems = Vec::new();
        let server = server(url).map_err(|message| problems.push(Problem::new("url", message)));
        if let Err(message) = checked(namespace) {
            problems.push(Problem::new("namespace", message));
        }
        let (Ok((host, port, tls, login)), true) = (server, problems.is_empty()) else {
            return Err(EndpointError::new(problems));
        };
        Ok(Self {
            host,
            port,
            tls,
            login,
            namespace: namespace.to_owned(),
            roots: None,
            request_timeout: REQUEST_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
        })
    }

    /// How long a request may take, waiting and asking; 10 ms to 10 s.
    ///
    /// # Errors
    ///
    /// Where `timeout` is outside of that.
    pub fn with_request_timeout(self, timeout: Duration) -> Result<Self, EndpointError> {
        let request_timeout = within("request_timeout", timeout)?;
        Ok(Self { request_timeout, ..self })
    }

    /// How long name, TCP, TLS and login may take together; 10 ms to 10 s.
    ///
    /// # Errors
    ///
    /// Where `timeout` is outside of that.
    pub fn with_connect_timeout(self, timeout: Duration) -> Result<Self, EndpointError> {
        let connect_timeout = within("connect_timeout", timeout)?;
        Ok(Self { connect_timeout, ..self })
    }

    /// Trusts the certificates in `pem` instead of the platform's.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_root_certificates(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { roots: Some(pem.into()), ..self }
    }

    /// What all our keys there begin with.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How long a request may take.
    #[must_use]
    pub const fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// How long connecting may take.
    #[must_use]
    pub const fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    #[cfg(feature = "tls")]
    pub(crate) const fn is_tls(&self) -> bool {
        self.tls
    }

    #[cfg(feature = "tls")]
    pub(crate) fn roots(&self) -> Option<&[u8]> {
        self.roots.as_deref()
    }

    pub(crate) const fn login(&self) -> &RedisConnectionInfo {
        &self.login
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.host.contains(':');
        let (open, close) = if brackets { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}/{}", self.host, self.port, self.login.db())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &format_args!("{self}"))
            .field("tls", &self.tls)
            .field("username", &self.login.username())
            .field("password", &self.login.password().map(|_| "hidden"))
            .field("namespace", &self.namespace)
            .field("own_roots", &self.roots.is_some())
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

type Server = (String, u16, bool, RedisConnectionInfo);

const FORM: &str = "write redis://[user][:password@]host[:port][/database], or rediss:// for TLS";

fn server(url: &str) -> Result<Server, String> {
    // The parser's own error is not shown: what it could not read may be a password.
    let mut url = Url::parse(url).map_err(|_| format!("not a URL: {FORM}"))?;
    let tls = match url.scheme() {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        other => return Err(format!("`{other}://` is not supported: {FORM}")),
    };
    if tls && !cfg!(feature = "tls") {
        return Err("TLS needs the feature `tls` of abate-redis".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(format!("the host is missing: {FORM}"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        let fix = "leave out what follows `?` or `#`: settings are methods of `Endpoint`";
        return Err(fix.to_owned());
    }
    let database = url.path().trim_matches('/');
    if !database.is_empty() && database.parse::<u16>().is_err() {
        return Err(format!("the database is a number from 0: {FORM}"));
    }
    if url.password().is_none() && !url.username().is_empty() {
        return Err("a user without a password: write redis://user:password@host, or \
                    redis://:password@host where there is no user"
            .to_owned());
    }
    if tls {
        // The crate's own TLS is not built in: it would panic where rustls has two providers to choose from.
        url.set_scheme("redis").map_err(|()| format!("not a URL: {FORM}"))?;
    }
    let info = url.into_connection_info().map_err(|_| {
        "the host cannot be one, or user or password are not UTF-8 behind their %".to_owned()
    })?;
    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        return Err(format!("not a network address: {FORM}"));
    };
    let login = info.redis_settings().clone().set_lib_name("abate", env!("CARGO_PKG_VERSION"));
    Ok((host.clone(), *port, tls, login))
}

fn checked(namespace: &str) -> Result<(), String> {
    if namespace.is_empty() {
        return Err("missing: name the fleet that shares this budget, such as \"shop-prod\"; \
                    all its processes use the same, and no other program does"
            .to_owned());
    }
    if namespace.len() > LONGEST_NAMESPACE {
        return Err(format!("{} bytes, more than {LONGEST_NAMESPACE}", namespace.len()));
    }
    match namespace.chars().find(|it| !it.is_ascii_alphanumeric() && !"-_.:/".contains(*it)) {
        Some(other) => {
            Err(format!("{other:?} is not allowed: ASCII letters, digits and - _ . : /"))
        }
        None => Ok(()),
    }
}

fn within(key: &'static str, timeout: Duration) -> Result<Duration, EndpointError> {
    if TIMEOUTS.contains(&timeout) {
        return Ok(timeout);
    }
    let message = format!("{timeout:?} is outside of 10 ms to 10 s");
    Err(EndpointError::new(vec![Problem::new(key, message)]))
}
