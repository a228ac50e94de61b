//! The budget for other people's retries: whose repeats it pays for, and what it refuses.

mod budgets_figures;
mod budgets_marks;
mod budgets_refusals;
mod budgets_threads;
mod budgets_warnings;

use std::pin::Pin;
use std::time::Duration;

use abate::{Attempt, BudgetHandle, Policy, PolicyError, RetryBudgetLayer};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::{Sleep, sleep};
use tower::retry::Policy as Retries;
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

/// What somebody writes for tower's `Retry`: a 5xx is tried again after a wait, up to `left` times.
#[derive(Debug, Clone, Copy)]
struct TowerRetries {
    left: u32,
    marks: bool,
    wait: Duration,
}

impl TowerRetries {
    /// Three attempts.
    const MARKING: Self = Self { left: 2, marks: true, wait: Duration::ZERO };
    const SILENT: Self = Self { marks: false, ..Self::MARKING };
}

impl<B, E> Retries<Request<Full<Bytes>>, Response<B>, E> for TowerRetries {
    type Future = Pin<Box<Sleep>>;

    fn retry(
        &mut self,
        request: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<Self::Future> {
        if !result.as_ref().is_ok_and(|response| response.status().is_server_error()) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        if self.marks {
            Attempt::mark_repeat(request.extensions_mut());
        }
        Some(Box::pin(sleep(self.wait)))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

/// Pays for a call's first retry, and for more only out of success; a fifth of a token each.
fn poor() -> Result<Policy, PolicyError> {
    Policy::builder().with_attempts(2).with_budget_floor(0.0).build()
}

fn down() -> Script {
    Script::of([Answer::status(503)])
}

fn up() -> Script {
    Script::of([Answer::status(200)])
}

/// Attempt `number` of a call, as its extensions tell.
fn attempt(number: u32) -> Request<Full<Bytes>> {
    let mut request = get();
    request.extensions_mut().insert(Attempt::new(number));
    request
}

/// What `budget` has lost since it held `before`.
fn spent(budget: &BudgetHandle, before: f64) -> f64 {
    ((before - budget.tokens()) * 1e6).round() / 1e6
}

/// Earns by as many successes, all now.
async fn earn(layer: &RetryBudgetLayer, successes: usize) -> Result<f64, abate::Error> {
    let service = layer.layer(up());
    for _ in 0..successes {
        service.clone().oneshot(get()).await?;
    }
    Ok(layer.budget().tokens())
}
