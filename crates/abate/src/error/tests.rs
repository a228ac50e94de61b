use std::error::Error as StdError;
use std::io;

use abate_core::outcome::Fault;

use super::{BoxError, Error, ErrorKind};
use crate::fault::Known;

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

#[test]
fn it_is_one_pointer_wide_and_fits_everywhere() {
    fn fits<T: StdError + Send + Sync + 'static>() {}
    fits::<Error>();
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}

#[test]
fn an_error_of_ours_is_passed_on_unwrapped_boxed_or_not() {
    for error in [
        Error::from_inner(Error::new(ErrorKind::BreakerOpen)),
        Error::from_inner(BoxError::from(Error::new(ErrorKind::BreakerOpen))),
    ] {
        assert_eq!(error.kind(), ErrorKind::BreakerOpen);
        assert!(error.source().is_none());
    }
}

#[test]
fn an_error_of_the_client_is_the_source_untouched() {
    let error = Error::from_inner(refused());
    assert_eq!(error.kind(), ErrorKind::Client);
    assert_eq!(error.fault(), Fault::Unsent);
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
}

#[test]
fn it_is_found_below_foreign_layers() {
    let foreign: BoxError =
        io::Error::other(io::Error::other(Error::new(ErrorKind::Deadline))).into();
    assert_eq!(Error::find(foreign.as_ref()).map(Error::kind), Some(ErrorKind::Deadline));
    assert!(Error::find(&refused()).is_none());
}

#[test]
fn our_own_refusals_are_local_wherever_they_sit() {
    let refusal = Error::new(ErrorKind::BreakerOpen);
    assert_eq!(Error::from_inner(io::Error::other(refusal)).fault(), Fault::Local);
    assert_eq!(Error::new(ErrorKind::AttemptTimeout).fault(), Fault::Ambiguous);
    assert_eq!(Error::new(ErrorKind::Deadline).fault(), Fault::Cancelled);
}

#[test]
fn of_those_that_know_their_fault_the_outermost_is_believed() {
    let known = Known::new(Fault::Ambiguous).with_source(Error::from_inner(refused()));
    assert_eq!(Error::from_inner(io::Error::other(known)).fault(), Fault::Ambiguous);
    let ours = Error::from_inner(io::Error::other(Error::new(ErrorKind::LimitReached)));
    let below = Known::new(Fault::Unsent).with_source(ours);
    assert_eq!(Error::from_inner(io::Error::other(below)).fault(), Fault::Unsent);
    let known = Known::new(Fault::Ambiguous).with_source(Error::new(ErrorKind::LimitReached));
    let ours = Error::from_inner(io::Error::other(Error::from_inner(known)));
    assert_eq!(ours.fault(), Fault::Ambiguous);
}
