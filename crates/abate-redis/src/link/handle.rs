use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::driver::{Request, drive};
use super::error::{Cause, LinkError, Refusal};
use super::script::{Call, Reply, Script};
use crate::clock;
use crate::endpoint::Endpoint;

/// The driver answers by the deadline. It does not when its runtime stands still, as one does between two `block_on`.
const GRACE: Duration = Duration::from_millis(50);

/// A supervised connection to one server. Clones share it.
#[derive(Clone)]
pub struct Link(Arc<Shared>);

struct Shared {
    endpoint: Arc<Endpoint>,
    /// Towards the driver; a new one is started where there is none, or its runtime has ended.
    driver: Mutex<Option<mpsc::Sender<Request>>>,
}

impl Link {
    /// A link to `endpoint`. Nothing is connected, and no runtime needed, before the first request.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self(Arc::new(Shared { endpoint: Arc::new(endpoint), driver: Mutex::new(None) }))
    }

    /// Where it leads.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Runs `script` for each of `calls`, in their order, in one go, and tells what the server said to each.
    /// Takes the request timeout at most, of which waiting for a connection, or for another request, is a part.
    ///
    /// # Cancel safety
    ///
    /// What was handed over runs on; only its outcome is lost.
    ///
    /// # Errors
    ///
    /// [`Unsent`](LinkError::Unsent): nothing ran. [`Unknown`](LinkError::Unknown): no answer, each call may have run.
    pub async fn evaluate(
        &self,
        script: &Script,
        calls: &[Call],
    ) -> Result<Vec<Result<Reply, Refusal>>, LinkError> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = clock::now() + self.0.endpoint.request_timeout();
        let driver = self.driver().ok_or(LinkError::Unsent(Cause::NoRuntime))?;
        let (outcome, answered) = oneshot::channel();
        let (script, calls) = (script.clone(), calls.to_vec());
        let request = Request { script, calls, deadline, outcome };
        if !matches!(timeout_at(deadline.into(), driver.send(request)).await, Ok(Ok(()))) {
            return Err(LinkError::Unsent(Cause::Busy));
        }
        match timeout_at((deadline + GRACE).into(), answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(LinkError::Unknown(Cause::Dropped)),
            Err(_) => Err(LinkError::Unknown(Cause::Timeout)),
        }
    }

    fn driver(&self) -> Option<mpsc::Sender<Request>> {
        let mut driver = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = driver.as_ref().filter(|it| !it.is_closed()) {
            return Some(running.clone());
        }
        let runtime = Handle::try_current().ok()?;
        let (sender, requests) = mpsc::channel(1);
        runtime.spawn(drive(Arc::clone(&self.0.endpoint), requests));
        *driver = Some(sender.clone());
        Some(sender)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.0.endpoint).finish()
    }
}
