//! Names of variables. Names are equal when their code points are.

use std::{collections::BTreeSet, ops::Bound};

use crate::domain::{dependency::Condition, ids::ProductId};

/// What the account-wide names of observations begin with.
const COMPONENTS: &str = "components.";
/// The end of a known variable that declares every name below it.
const ALL_BELOW: &str = ".*";

/// The full name of a condition's variable: `path.variable`, or `variable` without a path.
pub fn full_name(condition: &Condition) -> String {
    let (path, variable) = (condition.path.as_str(), condition.variable.as_str());
    if path.is_empty() {
        variable.to_owned()
    } else {
        format!("{path}.{variable}")
    }
}

/// The name that an observation sets for the whole account. Within its own task it also
/// sets the bare feedback name.
pub fn account_name(product: ProductId, feedback_name: &str) -> String {
    format!("{COMPONENTS}{}.{feedback_name}", product.get())
}

/// The product and feedback name of [`account_name`]; `None` for a name that no observation
/// can set for the whole account.
pub fn parse_account_name(name: &str) -> Option<(ProductId, &str)> {
    let (digits, feedback_name) = name.strip_prefix(COMPONENTS)?.split_once('.')?;
    let product = ProductId::new(digits.parse().ok()?)?;
    // `01` and `+1` are other names than `1`.
    (product.get().to_string() == digits).then_some((product, feedback_name))
}

/// Variables that a caller knows to exist, although no observation sets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownVariables {
    names: BTreeSet<String>,
    prefixes: Prefixes,
}

/// Beginnings of names, each of which ends with a dot. None begins with another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Prefixes(BTreeSet<String>);

impl Prefixes {
    fn add(&mut self, prefix: String) {
        if self.begin(&prefix) {
            return;
        }
        let longer = self.0.range(prefix.clone()..);
        let longer = longer.take_while(|other| other.starts_with(&prefix));
        let longer: Vec<String> = longer.cloned().collect();
        for other in longer {
            self.0.remove(&other);
        }
        self.0.insert(prefix);
    }

    /// Whether one of them begins the name. Only the last one that is not after the name can,
    /// as any between the two would begin with it.
    fn begin(&self, name: &str) -> bool {
        let mut before = self
            .0
            .range::<str, _>((Bound::Unbounded, Bound::Included(name)));
        before
            .next_back()
            .is_some_and(|prefix| name.starts_with(prefix.as_str()))
    }
}

impl KnownVariables {
    /// The declared names. One that ends in `.*` declares every name below it.
    pub fn new(declared: impl IntoIterator<Item = String>) -> Self {
        let mut known = Self::default();
        for name in declared {
            match name.strip_suffix(ALL_BELOW) {
                Some(above) => known.prefixes.add(format!("{above}.")),
                None => drop(known.names.insert(name)),
            }
        }
        known
    }

    /// Whether a name is declared.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name) || self.prefixes.begin(name)
    }
}

/// The aliases of the loops of a guide.
#[derive(Clone, Debug, Default)]
pub struct LoopAliases {
    aliases: BTreeSet<String>,
    prefixes: Prefixes,
}

impl LoopAliases {
    /// Adds the alias of a loop; an empty one names nothing.
    pub fn add(&mut self, alias: &str) {
        if !alias.is_empty() {
            self.aliases.insert(alias.to_owned());
            self.prefixes.add(format!("{alias}."));
        }
    }

    /// Whether a name is an alias, or begins with one and a dot.
    pub fn contains(&self, name: &str) -> bool {
        self.aliases.contains(name) || self.prefixes.begin(name)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn account_names_have_a_product_and_a_feedback_name() {
        let product = ProductId::new(1204).expect("a product");
        let name = account_name(product, "charge.light");
        assert_eq!(parse_account_name(&name), Some((product, "charge.light")));
        for other in [
            "charge_light",
            "components.x.a",
            "components.01.a",
            "components.+1.a",
            "components.0.a",
            "components.1",
        ] {
            assert_eq!(parse_account_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_known_variable_declares_its_name_or_all_below_it() {
        let declared = ["a.b", "d.x.*", "c.*", "c.d.*", "d.*", "d-.*"].map(str::to_owned);
        let known = KnownVariables::new(declared);
        for (name, declared) in [
            ("d.x", true),
            ("d.y", true),
            ("d-.y", true),
            ("d", false),
            ("d-", false),
            ("e.d.", false),
            ("a.b", true),
            ("a.b.c", false),
            ("a", false),
            ("c", false),
            ("c.d", true),
            ("c.d.e", true),
            ("cc.d", false),
        ] {
            assert_eq!(known.contains(name), declared, "{name}");
        }
    }
}
