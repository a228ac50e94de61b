use abate::test::{Answer, Dependency};
use abate::{Fault, Policy, Stack};
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn a_blip_of_the_stock_is_not_noticed() {
    let stock = Dependency::answering([Answer::fault(Fault::Unsent), Answer::status(200)]);
    let client = Stack::new(Policy::default()).with_seed(7).layer(stock.clone());
    assert!(shop::in_stock(client, 12).await.unwrap());
    assert_eq!(stock.attempts(), [1, 2]);
    assert_eq!(stock.requests()[1].uri().path(), "/items/12");
}
