//! The scenarios that come along.

/// Names and files, in the order of the alphabet.
const SHIPPED: [(&str, &str); 8] = [
    ("collapse-ramp", include_str!("../../scenarios/collapse-ramp.toml")),
    ("held-connection", include_str!("../../scenarios/held-connection.toml")),
    ("herd", include_str!("../../scenarios/herd.toml")),
    ("metastable", include_str!("../../scenarios/metastable.toml")),
    ("retry-storm", include_str!("../../scenarios/retry-storm.toml")),
    ("slow-dependency", include_str!("../../scenarios/slow-dependency.toml")),
    ("three-tiers", include_str!("../../scenarios/three-tiers.toml")),
    ("transient", include_str!("../../scenarios/transient.toml")),
];

/// The names of the scenarios that come along.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The file of the scenario `name`, if it comes along.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, file)| *file)
}
