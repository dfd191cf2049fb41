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

/// Variables that are known to exist, although no observation sets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownVariables {
    names: BTreeSet<String>,
    /// Beginnings of names, each of which ends with a dot; sorted. None begins with another one.
    prefixes: Vec<String>,
}

impl KnownVariables {
    /// The names that a caller declares. One that ends in `.*` declares every name below it.
    pub fn new(declared: impl IntoIterator<Item = String>) -> Self {
        let mut known = Self::default();
        for name in declared {
            match name.strip_suffix(ALL_BELOW) {
                Some(above) => known.prefixes.push(format!("{above}.")),
                None => drop(known.names.insert(name)),
            }
        }
        known.with_sorted_prefixes()
    }

    /// The aliases of the loops of a guide, and the names that begin with one and a dot. An empty
    /// alias names nothing.
    pub fn of_loops<'a>(aliases: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known = Self::default();
        for alias in aliases.into_iter().filter(|alias| !alias.is_empty()) {
            known.names.insert(alias.to_owned());
            known.prefixes.push(format!("{alias}."));
        }
        known.with_sorted_prefixes()
    }

    fn with_sorted_prefixes(mut self) -> Self {
        self.prefixes.sort_unstable();
        self.prefixes
            .dedup_by(|longer, kept| longer.starts_with(kept.as_str()));
        self
    }

    /// Whether a name is known. Only the last prefix that is not after the name can begin it, as
    /// any between the two would begin with that prefix.
    pub fn contains(&self, name: &str) -> bool {
        let after = self
            .prefixes
            .partition_point(|prefix| prefix.as_str() <= name);
        let mut before = self.prefixes.iter().take(after);
        self.names.contains(name)
            || before
                .next_back()
                .is_some_and(|prefix| name.starts_with(prefix.as_str()))
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
