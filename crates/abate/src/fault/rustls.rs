//! TLS: what the next handshake would meet again.

use std::error::Error as StdError;

use abate_core::outcome::Fault;
use rustls::{AlertDescription, Error};

use super::word::Word;

pub(super) fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    let permanent = match error.downcast_ref::<Error>()? {
        Error::AlertReceived(alert) => is_refusal(*alert),
        Error::InvalidCertificate(_)
        | Error::InvalidCertRevocationList(_)
        | Error::NoCertificatesPresented
        | Error::UnsupportedNameType
        | Error::PeerIncompatible(_)
        | Error::NoApplicationProtocol
        | Error::InconsistentKeys(_) => true,
        _ => false,
    };
    permanent.then_some(Word::Last(Fault::Permanent))
}

/// Alerts by which the peer refuses us or our certificate (RFC 8446 section 6.2). With TLS 1.3 that
/// comes after our handshake is done, and the request may have been sent by then: not to anyone
/// who acts on it, though.
const fn is_refusal(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::HandshakeFailure
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity
            | AlertDescription::UnrecognisedName
            | AlertDescription::UnknownPSKIdentity
            | AlertDescription::CertificateRequired
            | AlertDescription::NoApplicationProtocol
    )
}
