//! Ten thousand calls through the stack against a server that breaks off, answers early, forgets to
//! answer and loses answers, by callers who lose patience: nothing may be cut short, done twice
//! that must not be, or left behind.

#[path = "real_corruption_server.rs"]
mod server;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use abate::decisions::rng::{Seed, Stream};
use abate::{Policy, ReplayBody, Stack, StackService};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use server::{Server, content};

const CALLS: u64 = 10_000;
const TOGETHER: usize = 24;
const SEED: u64 = 20_261_130;

type Payload = UnsyncBoxBody<Bytes, Infallible>;
type Caller = StackService<Client<HttpConnector, ReplayBody<Payload>>>;

/// One call as its number makes it.
struct Plan {
    id: u64,
    method: Method,
    key: bool,
    length: usize,
    /// Sent in chunks of about this size, without a length; whole otherwise.
    chunks: Option<usize>,
    /// The caller loses patience.
    patience: Option<Duration>,
}

impl Plan {
    fn new(id: u64) -> Self {
        let mut dice = Seed::new(SEED).stream(id);
        let method = [Method::PUT, Method::POST, Method::POST, Method::DELETE, Method::GET];
        let method = method[dice.below(5) as usize].clone();
        // As many small ones as large ones, on a scale of powers of two.
        let scale = 1 << (1 + dice.below(18));
        let length = if method == Method::GET { 0 } else { dice.below(scale) as usize };
        Self {
            id,
            key: method == Method::POST && dice.below(2) == 0,
            method,
            length,
            chunks: (dice.below(3) == 0).then(|| 1 + dice.below(20_000) as usize),
            patience: (dice.below(10) == 0).then(|| Duration::from_micros(dice.below(8_000))),
        }
    }

    fn request(&self, server: &Server) -> anyhow::Result<Request<Payload>> {
        let mut request = Request::builder().method(self.method.clone()).uri(server.uri(self.id));
        request = request.header("x-length", self.length);
        if self.key {
            request = request.header("idempotency-key", format!("key of {}", self.id));
        }
        Ok(request.body(self.payload())?)
    }

    fn payload(&self) -> Payload {
        let data = Bytes::from_static(content(self.id, self.length));
        let Some(chunk) = self.chunks else { return Full::new(data).boxed_unsync() };
        let starts = (0..data.len()).step_by(chunk);
        let chunks: Vec<_> = starts.map(|at| data.slice(at..data.len().min(at + chunk))).collect();
        let frames = stream::iter(chunks).then(|data| async move {
            tokio::task::yield_now().await;
            Ok(Frame::data(data))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Answered(u16),
    /// An answer whose body broke, and said so.
    Broken,
    Failed,
    #[default]
    GivenUp,
}

async fn make(caller: Caller, plan: &Plan, server: &Server) -> anyhow::Result<End> {
    let call = async {
        let Ok(response) = caller.oneshot(plan.request(server)?).await else {
            return Ok(End::Failed);
        };
        let status = response.status().as_u16();
        match read(response).await {
            Ok(body) if status == 200 => {
                let whole = content(plan.id, server.length_of_answer(plan.id));
                anyhow::ensure!(body == whole, "call {}: {} bytes", plan.id, body.len());
                Ok(End::Answered(200))
            }
            Ok(_) => Ok(End::Answered(status)),
            Err(_) => Ok(End::Broken),
        }
    };
    match plan.patience {
        None => call.await,
        Some(patience) => timeout(patience, call).await.unwrap_or(Ok(End::GivenUp)),
    }
}

async fn read<B: Body>(response: Response<B>) -> Result<Bytes, B::Error> {
    Ok(response.into_body().collect().await?.to_bytes())
}

// BR-01, BR-04, BR-10, ID-01, TO-01
#[tokio::test]
async fn of_ten_thousand_calls_none_is_cut_short_done_twice_or_left_behind() -> anyhow::Result<()> {
    let server = Arc::new(Server::start(Seed::new(SEED).part(1)).await?);
    let policy = Policy::builder()
        .with_base(Duration::from_millis(1))
        .with_cap(Duration::from_millis(10))
        .with_attempt_timeout(Duration::from_millis(400))
        .with_budget_floor(1e6)
        .with_concurrency(TOGETHER)
        .build()?;
    let stack = Stack::new(policy).with_seed(SEED);
    // It would rightly refuse most calls to such a server.
    stack.breaker().observe_only();
    let caller: Caller = stack.layer(Client::builder(TokioExecutor::new()).build_http());

    let ends = stream::iter(0..CALLS).map(|id| {
        let (caller, server) = (caller.clone(), Arc::clone(&server));
        async move { make(caller, &Plan::new(id), &server).await }
    });
    let ends: Vec<_> = ends.buffer_unordered(TOGETHER).collect().await;
    let mut tally = BTreeMap::<End, u32>::new();
    for end in ends {
        *tally.entry(end?).or_default() += 1;
    }
    println!("{tally:?}; the server: {}", server.told());

    assert_eq!(server.cut_short(), Vec::<String>::new(), "what was taken for whole");
    for (id, times) in server.effects() {
        let plan = Plan::new(id);
        let harmless = plan.method != Method::POST || plan.key;
        assert!(harmless || times == 1, "call {id}: a bare POST was carried out {times} times");
    }
    assert!(tally[&End::Answered(200)] > CALLS as u32 / 2, "{tally:?}");
    for end in [End::Broken, End::Failed, End::GivenUp, End::Answered(503)] {
        assert!(tally.get(&end).is_some_and(|times| *times > 20), "{end:?} was meant to occur");
    }
    assert!(server.repeats() > 500, "retries were meant to occur");

    timeout(Duration::from_secs(20), async {
        while stack.limit().in_use() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await?;
    drop(caller);
    timeout(Duration::from_secs(20), server.until_nobody_is_connected()).await?;
    Ok(())
}

/// So that a stream of numbers is the same in both files.
pub(crate) fn dice(seed: Seed, id: u64, attempt: u64) -> Stream {
    seed.part(attempt).stream(id)
}
