//! Boolean formulas: AND gates over free inputs. Equal gates are shared. Each node stores its
//! values in some random assignments, which show for most literals that they can be true.

use std::{
    collections::{HashMap, HashSet},
    ops::Not,
};

/// A gate or input of a [`Formula`], or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(u32);

impl Literal {
    pub const TRUE: Self = Self(0);
    pub const FALSE: Self = Self(1);

    pub fn from_node(node: usize) -> Self {
        // `Formula::is_full` is reached long before a node's index exceeds this.
        Self(u32::try_from(node << 1).unwrap_or(u32::MAX - 1))
    }

    pub fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it is the negation of its gate or input.
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

/// The values of a node in the random assignments, one bit for each.
type Samples = u128;

/// A set of gates over inputs. Every assignment of its inputs is allowed.
#[derive(Debug)]
pub struct Formula {
    /// The operands of each AND gate; `None` for an input. The constant [`Literal::TRUE`] is a gate
    /// without operands.
    nodes: Vec<Option<Box<[Literal]>>>,
    samples: Vec<Samples>,
    random: Samples,
    operands: usize,
    gates: HashMap<Box<[Literal]>, Literal>,
}

const MAX_NODES: usize = 500_000;
const MAX_OPERANDS: usize = 2_000_000;

impl Default for Formula {
    fn default() -> Self {
        Self {
            nodes: vec![Some(Box::default())],
            samples: vec![Samples::MAX],
            random: 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835,
            operands: 0,
            gates: HashMap::new(),
        }
    }
}

impl Formula {
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
        self.nodes.get(node)?.as_deref()
    }

    /// The nodes that a literal depends on, each once, including its own.
    pub fn reachable_nodes(&self, literal: Literal) -> Vec<usize> {
        let (mut nodes, mut known) = (Vec::new(), HashSet::new());
        let mut open = vec![literal.node()];
        while let Some(node) = open.pop() {
            if known.insert(node) {
                nodes.push(node);
                let operands = self.operands(node).unwrap_or_default();
                open.extend(operands.iter().map(|operand| operand.node()));
            }
        }
        nodes
    }

    /// Whether the literal is true in one of the random assignments.
    pub fn is_sampled(&self, literal: Literal) -> bool {
        self.samples(literal) != 0
    }

    fn samples(&self, literal: Literal) -> Samples {
        let samples = self.samples.get(literal.node()).copied();
        let samples = samples.unwrap_or_default();
        if literal.negated() { !samples } else { samples }
    }

    fn add(&mut self, node: Option<Box<[Literal]>>) -> Literal {
        if self.is_full() {
            return Literal::FALSE;
        }
        let samples = match &node {
            None => self.next_random(),
            Some(operands) => {
                let samples = operands.iter().map(|operand| self.samples(*operand));
                samples.fold(Samples::MAX, |all, one| all & one)
            }
        };
        self.samples.push(samples);
        self.nodes.push(node);
        Literal::from_node(self.nodes.len() - 1)
    }

    /// A linear congruential generator: the same sequence everywhere. Its low bits have short periods.
    fn next_random(&mut self) -> Samples {
        const FACTOR: Samples = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
        let mut next = || {
            self.random = self.random.wrapping_mul(FACTOR).wrapping_add(1);
            self.random >> 64
        };
        next() << 64 | next()
    }

    pub fn input(&mut self) -> Literal {
        self.add(None)
    }

    pub fn and(&mut self, operands: impl IntoIterator<Item = Literal>) -> Literal {
        let mut operands: Vec<Literal> = operands.into_iter().collect();
        operands.retain(|operand| *operand != Literal::TRUE);
        operands.sort_unstable();
        operands.dedup();
        let mut pairs = operands.iter().zip(operands.iter().skip(1));
        if operands.contains(&Literal::FALSE) || pairs.any(|(one, next)| *one == !*next) {
            return Literal::FALSE;
        }
        let operands: Box<[Literal]> = match operands.as_slice() {
            [] => return Literal::TRUE,
            [one] => return *one,
            _ => operands.into(),
        };
        if let Some(gate) = self.gates.get(&operands) {
            return *gate;
        }
        self.operands += operands.len();
        let gate = self.add(Some(operands.clone()));
        self.gates.insert(operands, gate);
        gate
    }

    pub fn or(&mut self, operands: impl IntoIterator<Item = Literal>) -> Literal {
        !self.and(operands.into_iter().map(Not::not))
    }

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
    pub fn add_choice(&mut self, count: usize) -> Vec<Literal> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_formula_takes_no_more_nodes() {
        let mut formula = Formula::default();
        while formula.len() < MAX_NODES {
            assert!(!formula.is_full());
            formula.input();
        }
        assert!(formula.is_full());
        assert_eq!(formula.input(), Literal::FALSE);
        assert_eq!(formula.len(), MAX_NODES);
    }
}
