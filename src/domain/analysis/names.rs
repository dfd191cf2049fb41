//! Names of variables. Names are equal when their code points are.

use std::{borrow::Cow, collections::BTreeSet};

use crate::domain::{dependency::Condition, ids::ProductId};

/// The prefix of the account-wide names of observations.
const COMPONENTS: &str = "components.";

/// The full name of a condition's variable: `path.variable`, or `variable` without a path.
pub fn full_name(condition: &Condition) -> Cow<'_, str> {
    match (condition.path.as_str(), condition.variable.as_str()) {
        ("", variable) => variable.into(),
        (path, variable) => format!("{path}.{variable}").into(),
    }
}

/// The account-wide name that an observation sets. Within its own task, it also sets the bare
/// feedback name.
pub fn account_name(product: ProductId, feedback_name: &str) -> String {
    format!("{COMPONENTS}{}.{feedback_name}", product.get())
}

/// The product and feedback name of [`account_name`]; `None` for a name that no observation
/// can set for the whole account.
pub fn parse_account_name(name: &str) -> Option<(ProductId, &str)> {
    let (digits, feedback_name) = name.strip_prefix(COMPONENTS)?.split_once('.')?;
    let product = ProductId::new(digits.parse().ok()?)?;
    // `01` and `+1` are different names from `1`.
    (product.get().to_string() == digits).then_some((product, feedback_name))
}

/// Variables that are known to exist although no observation sets them. A name that ends in `.*`
/// stands for every name below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownVariables(BTreeSet<String>);

impl KnownVariables {
    /// The names that a caller declares.
    pub fn new(declared: impl IntoIterator<Item = String>) -> Self {
        Self(declared.into_iter().collect())
    }

    /// The aliases of the loops of a guide, and the names below them. An empty alias names nothing.
    pub fn for_loops<'a>(aliases: impl IntoIterator<Item = &'a str>) -> Self {
        let aliases = aliases.into_iter().filter(|alias| !alias.is_empty());
        let names = aliases.flat_map(|alias| [alias.to_owned(), format!("{alias}.*")]);
        Self(names.collect())
    }

    pub fn contains(&self, name: &str) -> bool {
        let mut above = name.match_indices('.').map(|(dot, _)| name.split_at(dot).0);
        self.0.contains(name) || above.any(|above| self.0.contains(&format!("{above}.*")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_names_have_a_product_and_a_feedback_name() {
        let product = ProductId::new(1204);
        let name = product.map(|product| account_name(product, "charge.light"));
        let parsed = name.as_deref().and_then(parse_account_name);
        assert_eq!(parsed, product.zip(Some("charge.light")));
        for part in ["x.a", "01.a", "+1.a", "0.a", "1"] {
            assert_eq!(parse_account_name(&format!("components.{part}")), None);
        }
        assert_eq!(parse_account_name("charge_light"), None);
    }

    #[test]
    fn a_known_variable_declares_its_name_or_all_below_it() {
        let declared = ["a.b", "d.x.*", "c.*", "c.d.*", "d.*", "d-.*", "f."].map(str::to_owned);
        let known = KnownVariables::new(declared);
        for name in ["d.x", "d.y", "d-.y", "a.b", "c.d", "c.d.e"] {
            assert!(known.contains(name), "{name}");
        }
        for name in ["d", "d-", "e.d.", "a.b.c", "a", "c", "cc.d", "f.a"] {
            assert!(!known.contains(name), "{name}");
        }
    }
}
