//! Boolean formulas: AND gates over free inputs, equal gates shared.

use std::{collections::HashMap, ops::Not};

/// A gate or input of a [`Formula`], or the opposite of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(u32);

impl Literal {
    /// Always true.
    pub const TRUE: Self = Self(0);
    /// Never true.
    pub const FALSE: Self = Self(1);

    pub fn of(node: usize) -> Self {
        // `Formula::is_full` is reached long before a node's index exceeds this.
        Self(u32::try_from(node << 1).unwrap_or(u32::MAX - 1))
    }

    pub fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it is the opposite of its gate or input.
    pub fn negated(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Not for Literal {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

#[derive(Clone, Debug)]
enum FormulaNode {
    /// Either true or false: an assignment chooses.
    Input,
    /// True when all literals are; the constant [`Literal::TRUE`] has none.
    And(Box<[Literal]>),
}

/// A set of gates over inputs. Every assignment of its inputs is allowed.
#[derive(Clone, Debug)]
pub struct Formula {
    nodes: Vec<FormulaNode>,
    /// How many operands all gates have.
    operands: usize,
    known: HashMap<Box<[Literal]>, Literal>,
}

/// Most nodes of a formula.
const MAX_NODES: usize = 500_000;
/// Most operands of all its gates.
const MAX_OPERANDS: usize = 2_000_000;

impl Formula {
    /// A formula of the constants alone.
    pub fn new() -> Self {
        Self {
            nodes: vec![FormulaNode::And(Box::default())],
            operands: 0,
            known: HashMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has reached `MAX_NODES` or `MAX_OPERANDS`. Then further nodes become
    /// [`Literal::FALSE`], and the formula must not be used.
    pub fn is_full(&self) -> bool {
        self.nodes.len() >= MAX_NODES || self.operands >= MAX_OPERANDS
    }

    /// The literals of an AND gate; `None` for an input.
    pub fn operands(&self, node: usize) -> Option<&[Literal]> {
        match self.nodes.get(node)? {
            FormulaNode::Input => None,
            FormulaNode::And(operands) => Some(operands),
        }
    }

    fn add(&mut self, node: FormulaNode) -> Literal {
        if self.is_full() {
            return Literal::FALSE;
        }
        self.nodes.push(node);
        Literal::of(self.nodes.len() - 1)
    }

    pub fn input(&mut self) -> Literal {
        self.add(FormulaNode::Input)
    }

    /// Whether all of the literals are true.
    pub fn and(&mut self, operands: impl IntoIterator<Item = Literal>) -> Literal {
        let mut operands: Vec<Literal> = operands.into_iter().collect();
        operands.retain(|operand| *operand != Literal::TRUE);
        operands.sort_unstable();
        operands.dedup();
        let mut pairs = operands.iter().zip(operands.iter().skip(1));
        if operands.contains(&Literal::FALSE) || pairs.any(|(one, next)| *one == !*next) {
            return Literal::FALSE;
        }
        match operands.as_slice() {
            [] => Literal::TRUE,
            [one] => *one,
            _ => self.gate(operands.into()),
        }
    }

    fn gate(&mut self, operands: Box<[Literal]>) -> Literal {
        if let Some(gate) = self.known.get(&operands) {
            return *gate;
        }
        self.operands = self.operands.saturating_add(operands.len());
        let gate = self.add(FormulaNode::And(operands.clone()));
        self.known.insert(operands, gate);
        gate
    }

    /// Whether one of the literals is true.
    pub fn or(&mut self, operands: impl IntoIterator<Item = Literal>) -> Literal {
        !self.and(operands.into_iter().map(Not::not))
    }

    /// `yes` where the condition is true, else `no`.
    pub fn choose(&mut self, condition: Literal, yes: Literal, no: Literal) -> Literal {
        if yes == no {
            return yes;
        }
        let yes = self.and([condition, yes]);
        let no = self.and([!condition, no]);
        self.or([yes, no])
    }

    /// Adds inputs, and returns `count` literals of which exactly one is true in every
    /// assignment.
    pub fn one_of(&mut self, count: usize) -> Vec<Literal> {
        let mut literals = Vec::with_capacity(count);
        self.split(Literal::TRUE, count, &mut literals);
        literals
    }

    fn split(&mut self, here: Literal, count: usize, literals: &mut Vec<Literal>) {
        if count <= 1 {
            literals.extend((count == 1).then_some(here));
            return;
        }
        let left = self.input();
        for (side, count) in [(left, count / 2), (!left, count - count / 2)] {
            let side = self.and([here, side]);
            self.split(side, count, literals);
        }
    }

    /// The value of each node in 64 assignments at once, one for each bit.
    pub fn evaluate(&self, input: impl Fn(usize) -> u64) -> NodeValues {
        let mut values = NodeValues(Vec::with_capacity(self.nodes.len()));
        for (index, node) in self.nodes.iter().enumerate() {
            let value = match node {
                FormulaNode::Input => input(index),
                FormulaNode::And(operands) => operands
                    .iter()
                    .fold(u64::MAX, |all, operand| all & values.of(*operand)),
            };
            values.0.push(value);
        }
        values
    }
}

/// The values of a formula's nodes in 64 assignments.
#[derive(Clone, Debug)]
pub struct NodeValues(Vec<u64>);

impl NodeValues {
    /// The value of a literal, one bit for each assignment.
    pub fn of(&self, literal: Literal) -> u64 {
        let value = self.at(literal.node());
        if literal.negated() { !value } else { value }
    }

    pub fn at(&self, node: usize) -> u64 {
        self.0.get(node).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_gates_are_one_and_constants_fold() {
        let mut formula = Formula::new();
        let (a, b) = (formula.input(), formula.input());
        assert_eq!(formula.and([a, b]), formula.and([b, a, Literal::TRUE, a]));
        assert_eq!(formula.and([a, Literal::TRUE, a]), a);
        assert_eq!(formula.and([a, !a]), Literal::FALSE);
        assert_eq!(formula.or([a, !a]), Literal::TRUE);
        assert_eq!(formula.and([a, Literal::FALSE]), Literal::FALSE);
        assert_eq!(formula.or([]), Literal::FALSE);
        assert_eq!(formula.choose(a, b, b), b);
    }

    #[test]
    fn a_full_formula_takes_no_more_nodes() {
        let mut formula = Formula::new();
        while formula.len() < MAX_NODES {
            assert!(!formula.is_full());
            formula.input();
        }
        assert!(formula.is_full());
        assert_eq!(formula.input(), Literal::FALSE);
        assert_eq!(formula.len(), MAX_NODES);
    }

    #[test]
    fn exactly_one_of_the_choices_holds() {
        for count in 1..9 {
            let mut formula = Formula::new();
            let literals = formula.one_of(count);
            let inputs: Vec<usize> = (0..formula.len())
                .filter(|node| formula.operands(*node).is_none())
                .collect();
            let mut chosen = 0_u64;
            for assignment in 0..1_u64 << inputs.len() {
                let values = formula.evaluate(|node| {
                    let input = inputs.iter().position(|input| *input == node);
                    input.map_or(0, |input| assignment >> input & 1)
                });
                let holds = |literal: &Literal| values.of(*literal) & 1 == 1;
                assert_eq!(literals.iter().filter(|one| holds(one)).count(), 1);
                let index = literals.iter().position(holds).unwrap_or_default();
                chosen |= 1 << index;
            }
            assert_eq!(chosen.count_ones() as usize, count);
        }
    }
}
