//! Decides whether a literal of a formula can be true: first with random assignments, then
//! with a SAT solver.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};

use super::{
    budget::{Budget, Work},
    formula::{Formula, Literal, NodeValues},
};

/// Most decisions of one question, so that a hard one leaves some for the others.
const MAX_DECISIONS_PER_QUESTION: usize = 20_000;
/// A decision counts as 1, and as 1 more for each full set of this many nodes and operands that
/// the question depends on.
const SIZE_PER_DECISION: usize = 768;
/// How often 64 random assignments are tried before the first question.
const RANDOM_ROUNDS: usize = 4;

/// Whether a literal can be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Possibility {
    /// In some assignment of the inputs.
    Possible,
    /// In no assignment.
    Impossible,
    /// The budget was spent before that was decided.
    Undecided,
}

/// An assignment: the values of the inputs that a question depends on. Other inputs do not matter;
/// [`Self::values`] takes them as false.
#[derive(Clone, Debug)]
pub struct Assignment(HashMap<usize, bool>);

impl Assignment {
    /// The values of the formula's literals.
    pub fn values(&self, formula: &Formula) -> NodeValues {
        formula.evaluate(|node| match self.0.get(&node) {
            Some(true) => u64::MAX,
            Some(false) | None => 0,
        })
    }

    /// The same assignment, except that this literal, one of several [choices], is true.
    ///
    /// [choices]: Formula::one_of
    pub fn with(&self, formula: &Formula, choice: Literal) -> Self {
        let mut inputs = self.0.clone();
        let mut open = vec![choice];
        while let Some(literal) = open.pop() {
            match formula.operands(literal.node()) {
                Some(operands) => open.extend(operands),
                None => {
                    inputs.insert(literal.node(), !literal.negated());
                }
            }
        }
        Self(inputs)
    }
}

/// Answers questions about a formula.
#[derive(Debug)]
pub struct Search<'a> {
    formula: &'a Formula,
    budget: &'a Budget<'a>,
    /// Literals that were true in some assignment: for each node, whether it was false, and whether
    /// it was true.
    seen: Vec<[bool; 2]>,
    impossible: HashSet<Literal>,
    /// For each node that the current question depends on, its variable in the solver.
    variables: Vec<Option<Var>>,
}

impl<'a> Search<'a> {
    /// A search that has tried a few random assignments.
    pub fn new(formula: &'a Formula, budget: &'a Budget<'a>) -> Self {
        let mut search = Self::without_random_assignments(formula, budget);
        let state = Cell::new(0x9E37_79B9_7F4A_7C15_u64);
        // Xorshift: the same sequence everywhere.
        let random = |_| {
            let mut next = state.get();
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            state.replace(next)
        };
        for _ in 0..RANDOM_ROUNDS {
            let values = formula.evaluate(random);
            for (node, [seen_false, seen_true]) in search.seen.iter_mut().enumerate() {
                *seen_true |= values.at(node) != 0;
                *seen_false |= values.at(node) != u64::MAX;
            }
        }
        search
    }

    fn without_random_assignments(formula: &'a Formula, budget: &'a Budget<'a>) -> Self {
        Self {
            formula,
            budget,
            seen: vec![[false; 2]; formula.len()],
            impossible: HashSet::new(),
            variables: vec![None; formula.len()],
        }
    }

    /// Whether the literal can be true.
    pub fn decide(&mut self, literal: Literal) -> Possibility {
        let [was_false, was_true] = self.seen.get(literal.node()).copied().unwrap_or_default();
        let was_seen = if literal.negated() {
            was_false
        } else {
            was_true
        };
        match was_seen {
            true => Possibility::Possible,
            false => self.example(literal).0,
        }
    }

    /// An assignment in which the literal is true, where there is one.
    pub fn example(&mut self, literal: Literal) -> (Possibility, Option<Assignment>) {
        if self.is_impossible(literal) {
            return (Possibility::Impossible, None);
        }
        let (possibility, example) = self.solve(literal);
        if possibility == Possibility::Impossible {
            self.impossible.insert(literal);
        }
        (possibility, example)
    }

    /// Whether it, or a literal that it needs, is known to be impossible.
    fn is_impossible(&self, literal: Literal) -> bool {
        let operands = self.formula.operands(literal.node()).unwrap_or_default();
        literal == Literal::FALSE
            || self.impossible.contains(&literal)
            || (!literal.negated() && operands.iter().any(|one| self.impossible.contains(one)))
    }

    /// Asks the solver whether the literal can be true.
    fn solve(&mut self, literal: Literal) -> (Possibility, Option<Assignment>) {
        if self.budget.is_spent(Work::Nodes) {
            return (Possibility::Undecided, None);
        }
        let cone = self.cone(literal);
        let operands = |node: &usize| self.formula.operands(*node);
        let size = |node| 1 + operands(node).map_or(0, <[Literal]>::len);
        let question = QuestionBudget::new(cone.iter().map(size).sum(), self.budget);
        let mut solver = Solver::new(SolverOpts::default(), question);
        for node in &cone {
            let variable = solver.new_var(lbool::UNDEF, operands(node).is_none());
            if let Some(known) = self.variables.get_mut(*node) {
                *known = Some(variable);
            }
        }
        let found = self.ask(&mut solver, &cone, literal);
        for node in &cone {
            if let Some(variable) = self.variables.get_mut(*node) {
                *variable = None;
            }
        }
        found
    }

    /// The nodes that a literal depends on, and its own.
    fn cone(&self, literal: Literal) -> Vec<usize> {
        let mut known = HashSet::from([literal.node()]);
        let mut cone = vec![literal.node()];
        let mut next = 0;
        while let Some(node) = cone.get(next) {
            let operands = self.formula.operands(*node).unwrap_or_default();
            let nodes = operands.iter().map(|operand| operand.node());
            cone.extend(nodes.filter(|node| known.insert(*node)));
            next += 1;
        }
        cone
    }

    /// Gives the solver the clauses of the nodes: a gate implies each of its operands, and all of
    /// them together imply it. Then asks whether the literal can be true.
    fn ask(
        &mut self,
        solver: &mut Solver<QuestionBudget<'_>>,
        cone: &[usize],
        literal: Literal,
    ) -> (Possibility, Option<Assignment>) {
        let lit = |literal: Literal| {
            let variable = self.variables.get(literal.node()).copied().flatten();
            Lit::new(variable.unwrap_or(Var::UNDEF), !literal.negated())
        };
        let mut clause = Vec::new();
        for node in cone {
            if self.budget.is_stopped() {
                return (Possibility::Undecided, None);
            }
            let gate = Literal::of(*node);
            let Some(operands) = self.formula.operands(*node) else {
                continue;
            };
            for operand in operands {
                clause.clear();
                clause.extend([lit(!gate), lit(*operand)]);
                solver.add_clause_reuse(&mut clause);
            }
            clause.clear();
            clause.push(lit(gate));
            clause.extend(operands.iter().map(|operand| lit(!*operand)));
            solver.add_clause_reuse(&mut clause);
        }
        clause.clear();
        clause.push(lit(literal));
        solver.add_clause_reuse(&mut clause);
        let result = solver.solve_limited(&[]);
        if result != lbool::TRUE {
            let is_impossible = result == lbool::FALSE;
            let possibility = match is_impossible {
                true => Possibility::Impossible,
                false => Possibility::Undecided,
            };
            return (possibility, None);
        }
        let is_true = |node: usize| solver.value_lit(lit(Literal::of(node))) == lbool::TRUE;
        let values: Vec<(usize, bool)> = cone.iter().map(|node| (*node, is_true(*node))).collect();
        for (node, is_true) in &values {
            if let Some([seen_false, seen_true]) = self.seen.get_mut(*node) {
                *if *is_true { seen_true } else { seen_false } = true;
            }
        }
        let inputs = values.into_iter();
        let inputs = inputs.filter(|(node, _)| self.formula.operands(*node).is_none());
        (Possibility::Possible, Some(Assignment(inputs.collect())))
    }
}

/// Counts the decisions of a question and ends it when there are too many.
#[derive(Debug)]
struct QuestionBudget<'a> {
    budget: &'a Budget<'a>,
    weight: usize,
    spent: Cell<usize>,
}

impl<'a> QuestionBudget<'a> {
    /// For a question with so many nodes and operands, which counts like a decision.
    fn new(size: usize, budget: &'a Budget<'a>) -> Self {
        budget.spend(Work::Nodes, size);
        let question = Self {
            budget,
            weight: 1 + size / SIZE_PER_DECISION,
            spent: Cell::new(0),
        };
        question.spend();
        question
    }

    fn spend(&self) -> bool {
        self.spent.set(self.spent.get() + self.weight);
        self.budget.spend(Work::Decisions, self.weight)
            && self.spent.get() <= MAX_DECISIONS_PER_QUESTION
    }
}

impl Callbacks for QuestionBudget<'_> {
    /// The solver asks before each decision.
    fn stop(&self) -> bool {
        !self.spend() || self.budget.is_stopped()
    }
}

#[cfg(test)]
mod tests;
