use std::error::Error as StdError;
use std::{fmt, io};

use abate_core::outcome::Fault;

use super::{Known, of};

#[derive(Debug)]
struct Wrapped(io::Error);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection refused, it says")
    }
}

impl StdError for Wrapped {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn an_error_inside_an_io_error_is_found() {
    let deep = Wrapped(io::Error::other(Wrapped(io::ErrorKind::ConnectionRefused.into())));
    assert_eq!(of(&deep), Fault::Unsent);
}

#[test]
fn text_decides_nothing() {
    assert_eq!(of(&Wrapped(io::Error::other("connection refused"))), Fault::Ambiguous);
}

#[test]
fn an_error_that_knows_its_fault_is_believed_wherever_it_stands() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let known = Known::new(Fault::Permanent).with_source(refused);
    assert_eq!(known.source().unwrap().to_string(), "connection refused");
    assert_eq!(of(&known), known.fault());
    assert_eq!(of(&Wrapped(io::Error::other(known))), Fault::Permanent);
}

#[test]
fn the_outermost_that_knows_its_fault_is_believed() {
    let inner = Known::new(Fault::Unsent);
    let outer = Known::new(Fault::Cancelled).with_source(Wrapped(io::Error::other(inner)));
    assert_eq!(of(&Wrapped(io::Error::other(outer))), Fault::Cancelled);
}

#[test]
fn a_reset_is_ambiguous() {
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof] {
        assert_eq!(of(&io::Error::from(kind)), Fault::Ambiguous);
    }
}

#[derive(Debug)]
struct Circle;

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round and round")
    }
}

impl StdError for Circle {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&Circle)
    }
}

#[test]
fn a_chain_without_end_is_given_up() {
    assert_eq!(of(&Circle), Fault::Ambiguous);
}

#[cfg(feature = "h2")]
#[test]
fn a_reason_that_no_frame_brought_proves_nothing() {
    assert_eq!(of(&h2::Error::from(h2::Reason::REFUSED_STREAM)), Fault::Ambiguous);
}

#[cfg(feature = "rustls")]
mod tls {
    use rustls::{AlertDescription, CertificateError, Error};

    use super::*;

    /// As tokio-rustls hands it to hyper.
    fn wrapped(error: Error) -> Wrapped {
        Wrapped(io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[test]
    fn what_the_next_handshake_would_meet_again_is_permanent() {
        for error in [
            Error::InvalidCertificate(CertificateError::Expired),
            Error::InvalidCertificate(CertificateError::UnknownIssuer),
            Error::InvalidCertificate(CertificateError::NotValidForName),
            Error::InvalidCertificate(CertificateError::Revoked),
            Error::NoCertificatesPresented,
            Error::NoApplicationProtocol,
            Error::AlertReceived(AlertDescription::HandshakeFailure),
            Error::AlertReceived(AlertDescription::CertificateRequired),
            Error::AlertReceived(AlertDescription::UnknownCA),
            Error::AlertReceived(AlertDescription::ProtocolVersion),
        ] {
            assert_eq!(of(&wrapped(error.clone())), Fault::Permanent, "{error:?}");
        }
    }

    #[test]
    fn what_may_go_well_the_next_time_is_left_to_the_connection() {
        for error in [
            Error::DecryptError,
            Error::General("expired".into()),
            Error::FailedToGetRandomBytes,
            Error::AlertReceived(AlertDescription::InternalError),
            Error::AlertReceived(AlertDescription::BadRecordMac),
            Error::AlertReceived(AlertDescription::CloseNotify),
        ] {
            assert_eq!(of(&wrapped(error.clone())), Fault::Ambiguous, "{error:?}");
        }
    }
}

#[cfg(feature = "reqwest")]
mod of_reqwest {
    use super::*;

    #[test]
    fn a_request_that_cannot_be_built_is_permanent() {
        let error = reqwest::Client::new().get("items/7").build().unwrap_err();
        assert_eq!(of(&error), Fault::Permanent);
    }

    #[test]
    fn a_status_is_permanent_unless_it_is_retried() {
        let of_status = |code: u16| {
            let response = http::Response::builder().status(code).body("").unwrap();
            of(&reqwest::Response::from(response).error_for_status().unwrap_err())
        };
        for code in [400, 404, 409, 501, 505] {
            assert_eq!(of_status(code), Fault::Permanent, "{code}");
        }
        for code in [408, 429, 500, 503] {
            assert_eq!(of_status(code), Fault::Ambiguous, "{code}");
        }
    }
}
