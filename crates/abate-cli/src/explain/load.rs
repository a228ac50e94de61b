use abate_core::classify::Transient;
use abate_core::config::Declared;

/// What the dependency gets when every attempt fails, as a multiple of the calls that are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    /// Services in a row that retry.
    pub(super) layers: u32,
    /// Only one of them retries, without a budget.
    pub(super) one: f64,
    /// Each has the budget of this policy; none without one.
    pub(super) budgeted: Option<f64>,
    /// Each retries without a budget.
    pub(super) unbounded: f64,
}

impl Load {
    /// Loads through 1, 2, 3 and `layers` layers.
    pub(super) fn through(declared: &Declared, layers: u32) -> Vec<Self> {
        let attempts = f64::from(declared.policy().attempts());
        let budgeted = declared.has_budget().then(|| with_budget(declared));
        let through = |layers: u32| Self {
            layers,
            one: attempts,
            budgeted: budgeted.map(|factor| power(factor, layers)),
            unbounded: power(attempts, layers),
        };
        (1..=3).chain((layers > 3).then_some(layers)).map(through).collect()
    }
}

/// While the budget lasts: it earns `ratio` a call at the most, and the cheapest retry buys most.
fn with_budget(declared: &Declared) -> f64 {
    let policy = declared.policy();
    let budget = policy.budget();
    let reasons = [Transient::Asked, Transient::Server, Transient::Unsent, Transient::Ambiguous];
    let cost = reasons.map(|why| budget.costs.of(why)).into_iter().fold(f64::INFINITY, f64::min);
    let retries = f64::from(policy.attempts() - 1);
    let paid = if cost > 0.0 { budget.ratio.as_f64() / cost } else { retries };
    1.0 + paid.min(retries)
}

/// Multiplied out, so that whole numbers stay whole.
fn power(factor: f64, times: u32) -> f64 {
    (0..times).fold(1.0, |product, _| product * factor)
}

#[cfg(test)]
mod tests {
    use abate_core::config::Policies;

    use super::*;

    fn loads(lines: &str, layers: u32) -> Vec<(u32, f64, Option<f64>, f64)> {
        let text = format!("[defaults]\n{lines}");
        let policies = Policies::parse("p.toml", text.as_bytes()).unwrap();
        let loads = Load::through(policies.defaults(), layers);
        loads.iter().map(|it| (it.layers, it.one, it.budgeted, it.unbounded)).collect()
    }

    #[test]
    fn layers_multiply() {
        let unbounded = |attempts: u32, layers| {
            let loads = loads(&format!("attempts = {attempts}\nbudget = false"), layers);
            loads.iter().map(|it| it.3).collect::<Vec<_>>()
        };
        assert_eq!(unbounded(3, 5), [3.0, 9.0, 27.0, 243.0]);
        assert_eq!(unbounded(4, 3), [4.0, 16.0, 64.0]);
        assert_eq!(unbounded(10, 1), [10.0, 100.0, 1000.0]);
    }

    #[test]
    fn a_budget_bounds_each_layer() {
        let budgeted = |lines| loads(lines, 1)[1].2;
        assert_eq!(budgeted(""), Some(1.2 * 1.2));
        assert_eq!(budgeted("budget.cost = 2"), Some(1.1 * 1.1));
        assert_eq!(budgeted("budget.cost.server = 0.5"), Some(1.4 * 1.4));
        // A retry that costs nothing is bounded by the attempts alone.
        assert_eq!(budgeted("budget.cost = 0"), Some(9.0));
        assert_eq!(budgeted("attempts = 1"), Some(1.0));
        assert_eq!(budgeted("budget = false"), None);
    }
}
