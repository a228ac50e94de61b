//! Every law for every layer, and every pair of neighbours; docs/contract.md says what each demands.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod contract_bodies;
mod contract_calls;
mod contract_cancellation;
mod contract_pairs;
mod contract_sharing;

abate_tests::cells! {
    [
        retry: Retry,
        circuit_breaker: CircuitBreaker,
        retry_after: RetryAfter,
        concurrency_limit: ConcurrencyLimit,
        attempt_timeout: AttemptTimeout,
        deadline: Deadline,
        retry_budget: RetryBudget,
        cooldown: Cooldown,
        idempotency_key: IdempotencyKey,
        buffered_response: BufferedResponse,
        grpc_status: GrpcStatus,
        stack: Stack
    ]
    readiness: contract_calls::readiness;
    readiness_error: contract_calls::readiness_error;
    back_pressure: contract_calls::back_pressure;
    clone: contract_calls::clone;
    attempts: contract_calls::attempts;
    cancellation: contract_cancellation::cancellation;
    trailers: contract_bodies::trailers;
    size_hint: contract_bodies::size_hint;
    dropped_body: contract_bodies::dropped_body;
    send_and_sync: contract_sharing::send_and_sync;
    relayering: contract_sharing::relayering;
}
