//! A thousand payments at an API that loses 30 % of its responses after it has charged: who is charged twice?
//!
//! ```text
//! cargo run --release -p abate-examples --example idempotent_payment
//! ```
//!
//! All of it runs on loopback, and ends by itself after a few seconds. Which responses are lost is the same in every run.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::future::{Ready, ready};
use std::time::Duration;

use abate::{IdempotencyKeyLayer, Policy, PolicyError, Stack};
use abate_examples::payments::{Api, Outcome, Payment, pay, table};
use http::Response;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

const PAYMENTS: u32 = 1_000;

/// Nobody loses ten responses in a row here.
const ATTEMPTS: u32 = 10;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let outcomes = compare().await?;
    println!("\n{}", table(&outcomes));
    let [keyed, unkeyed, naive] = outcomes;
    println!(
        "With keys every payment was made, once. Without them abate repeats no POST that may have been carried out: \
         {} were charged\nand reported as failed. Repeated all the same, {} were charged more than once, {} times in all \
         instead of {}.",
        unkeyed.failed, naive.books.overcharged, naive.books.charges, keyed.books.charges,
    );
    Ok(())
}

/// The same payments through three clients, each at an API of its own.
async fn compare() -> Result<[Outcome; 3], BoxError> {
    let api = Api::start().await?;
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(Stack::new(policy()?))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let keyed = pay("abate, with keys", client, &api, PAYMENTS).await?;

    let api = Api::start().await?;
    let client = ServiceBuilder::new()
        .layer(Stack::new(policy()?))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let unkeyed = pay("abate, without keys", client, &api, PAYMENTS).await?;

    let api = Api::start().await?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(Naive { retries_left: ATTEMPTS - 1 }))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let naive = pay("retries without keys", client, &api, PAYMENTS).await?;
    Ok([keyed, unkeyed, naive])
}

fn policy() -> Result<Policy, PolicyError> {
    Policy::builder()
        .with_attempts(ATTEMPTS)
        .with_base(Duration::from_millis(10))
        .with_cap(Duration::from_millis(200))
        // A batch of twenty at a time: that is what bounds the retries, the budget need not.
        .with_budget_floor(1_000.0)
        .build()
}

/// What is often written by hand for tower's retry: an error is reason enough to try again.
#[derive(Clone)]
struct Naive {
    retries_left: u32,
}

impl<B> tower::retry::Policy<Payment, Response<B>, Error> for Naive {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Payment,
        result: &mut Result<Response<B>, Error>,
    ) -> Option<Ready<()>> {
        result.as_ref().err()?;
        self.retries_left = self.retries_left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Payment) -> Option<Payment> {
        Some(request.clone())
    }
}

#[cfg(test)]
mod tests {
    use abate_examples::payments::Books;

    use super::*;

    #[tokio::test]
    async fn a_thousand_payments_with_keys_are_a_thousand_charges() -> Result<(), BoxError> {
        let [keyed, unkeyed, naive] = compare().await?;
        let all = PAYMENTS as usize;

        assert_eq!((keyed.paid, keyed.failed), (PAYMENTS, 0));
        let Books { requests, charges, keys, charged, overcharged } = keyed.books;
        assert_eq!((charges, keys, charged, overcharged), (all, all, all, 0), "each key once");

        assert_eq!((unkeyed.books.requests, unkeyed.books.charges), (PAYMENTS, all));
        assert_eq!((unkeyed.books.keys, unkeyed.books.overcharged), (0, 0));
        assert!((250..350).contains(&unkeyed.failed), "what is lost is lost: {}", unkeyed.failed);

        // Whose response is lost is sent again by both, and charged again by one.
        assert_eq!((naive.paid, naive.books.requests), (PAYMENTS, requests));
        assert_eq!(naive.books.charges, requests as usize);
        assert_eq!(naive.books.overcharged, unkeyed.failed as usize);
        Ok(())
    }
}
