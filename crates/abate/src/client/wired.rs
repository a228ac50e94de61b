use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use tower_http::decompression::Decompression;
use tower_http::follow_redirect::FollowRedirect;

use super::body::Body;
use super::redirect::{Redirects, Replayed};
use crate::body::ReplayBody;
use crate::stack::StackService;

/// Hyper's client, for the bodies that arrive at the bottom.
pub(super) type Hyper = legacy::Client<HttpsConnector<HttpConnector>, ReplayBody<ReplayBody<Body>>>;

/// All of it, in the order that the module gives reasons for.
pub(super) type Wired = Decompression<StackService<Replayed<FollowRedirect<Hyper, Redirects>>>>;
