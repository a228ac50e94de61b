//! What a user has: code that asks a dependency, through whatever client it is given.

use http::{Request, Response};
use tower::{BoxError, Service, ServiceExt};

/// Whether there is any of this item.
///
/// # Errors
///
/// When the stock cannot tell.
pub async fn in_stock<S, B>(stock: S, item: u32) -> Result<bool, BoxError>
where
    S: Service<Request<String>, Response = Response<B>, Error: Into<BoxError>>,
{
    let request = Request::get(format!("http://stock.internal/items/{item}")).body(String::new())?;
    let response = stock.oneshot(request).await.map_err(Into::into)?;
    match response.status().as_u16() {
        200 => Ok(true),
        404 => Ok(false),
        status => Err(format!("the stock answered {status}").into()),
    }
}
