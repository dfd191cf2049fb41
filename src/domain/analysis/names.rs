//! Names of variables. Names are equal when their code points are.

use std::collections::BTreeSet;

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
    /// Each ends with a dot.
    prefixes: BTreeSet<String>,
}

impl KnownVariables {
    /// The declared names. One that ends in `.*` declares every name below it.
    pub fn new(declared: impl IntoIterator<Item = String>) -> Self {
        let mut known = Self::default();
        for name in declared {
            match name.strip_suffix(ALL_BELOW) {
                Some(above) => known.prefixes.insert(format!("{above}.")),
                None => known.names.insert(name),
            };
        }
        known
    }

    /// Whether a name is declared.
    pub fn contains(&self, name: &str) -> bool {
        let dots = name.match_indices('.');
        let mut above = dots.filter_map(|(dot, _)| name.get(..=dot));
        self.names.contains(name) || above.any(|above| self.prefixes.contains(above))
    }
}

/// The aliases of the loops of a guide.
#[derive(Clone, Debug, Default)]
pub struct LoopAliases(BTreeSet<String>);

impl LoopAliases {
    /// Adds the alias of a loop; an empty one names nothing.
    pub fn add(&mut self, alias: &str) {
        if !alias.is_empty() {
            self.0.insert(alias.to_owned());
        }
    }

    /// Whether a name is an alias, or begins with one and a dot.
    pub fn contains(&self, name: &str) -> bool {
        let dots = name.match_indices('.');
        let mut above = dots.filter_map(|(dot, _)| name.get(..dot));
        self.0.contains(name) || above.any(|above| self.0.contains(above))
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
        let known = KnownVariables::new(["a.b".to_owned(), "c.*".to_owned()]);
        for (name, declared) in [
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
