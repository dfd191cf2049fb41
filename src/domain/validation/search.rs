//! Decides whether a literal of a formula can be true: first with random assignments, then
//! with a SAT solver.
//!
//! The effort is counted, never timed, so that the same formula gets the same answers
//! everywhere.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, lbool};

use super::formula::{Formula, Literal, NodeValues};
use crate::domain::analysis::StopSignal;

/// Most decisions for a guide.
const MAX_DECISIONS: u64 = 100_000;
/// Most decisions of one question, so that a hard one leaves some for the others.
const MAX_DECISIONS_PER_QUESTION: u64 = 20_000;
/// A decision counts as 1, and as 1 more for each full set of this many nodes and operands that
/// the question depends on.
const SIZE_PER_DECISION: u64 = 768;
/// Most nodes and operands of all questions that the solver is given, as that takes time, too.
const MAX_SIZE_OF_QUESTIONS: usize = 10_000_000;
/// How often 64 random assignments are tried before the first question.
const RANDOM_ROUNDS: usize = 4;

/// Whether a literal can be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Possibility {
    /// In some assignment of the inputs.
    Possible,
    /// In no assignment.
    Impossible,
    /// The search ended at its limit of decisions.
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
    /// For each node, whether it was seen false and whether it was seen true.
    seen: Vec<[bool; 2]>,
    impossible: HashSet<Literal>,
    decisions_left: u64,
    /// How many nodes and operands further questions may have.
    size_left: usize,
    random: u64,
    /// Assignments that the solver found and that are not evaluated yet.
    found: Vec<Assignment>,
    /// How many found assignments are evaluated at once.
    batch: usize,
    /// For each node, the number of the last question that depends on it, and its variable
    /// in that question's solver.
    variables: Vec<(u64, u32)>,
    /// The number of the current question.
    question: u64,
    stop: StopSignal<'a>,
}

impl<'a> Search<'a> {
    /// A search that has tried a few random assignments.
    pub fn new(formula: &'a Formula, stop: StopSignal<'a>) -> Self {
        let mut search = Self::without_random_assignments(formula, stop);
        // Nothing is found yet, so each round evaluates 64 random assignments.
        for _ in 0..RANDOM_ROUNDS {
            search.evaluate_found();
        }
        search
    }

    fn without_random_assignments(formula: &'a Formula, stop: StopSignal<'a>) -> Self {
        Self {
            formula,
            seen: vec![[false; 2]; formula.len()],
            impossible: HashSet::new(),
            decisions_left: MAX_DECISIONS,
            size_left: MAX_SIZE_OF_QUESTIONS,
            random: 0x9E37_79B9_7F4A_7C15,
            found: Vec::new(),
            batch: 1,
            variables: vec![(0, 0); formula.len()],
            question: 0,
            stop,
        }
    }

    /// Whether the literal can be true.
    pub fn decide(&mut self, literal: Literal) -> Possibility {
        if literal == Literal::TRUE || self.was_seen(literal) {
            return Possibility::Possible;
        }
        if literal == Literal::FALSE || self.is_impossible(literal) {
            return Possibility::Impossible;
        }
        let (possibility, found) = self.solve(literal);
        match possibility {
            Possibility::Possible => {
                self.found.extend(found);
                if self.found.len() >= self.batch {
                    self.evaluate_found();
                    self.batch = (self.batch * 2).min(64);
                }
            }
            Possibility::Impossible => {
                self.impossible.insert(literal);
            }
            Possibility::Undecided => {}
        }
        possibility
    }

    /// An assignment in which the literal is true, where there is one.
    pub fn example(&mut self, literal: Literal) -> (Possibility, Option<Assignment>) {
        if literal == Literal::TRUE {
            return (Possibility::Possible, Some(Assignment(HashMap::new())));
        }
        if literal == Literal::FALSE || self.is_impossible(literal) {
            return (Possibility::Impossible, None);
        }
        self.solve(literal)
    }

    fn was_seen(&self, literal: Literal) -> bool {
        let [seen_false, seen_true] = self.seen.get(literal.node()).copied().unwrap_or_default();
        if literal.negated() {
            seen_false
        } else {
            seen_true
        }
    }

    /// Whether it, or a literal that it needs, is known to be impossible.
    fn is_impossible(&self, literal: Literal) -> bool {
        let operands = self.formula.operands(literal.node()).unwrap_or_default();
        self.impossible.contains(&literal)
            || (!literal.negated() && operands.iter().any(|one| self.impossible.contains(one)))
    }

    fn random(&mut self) -> u64 {
        // Xorshift: the same sequence everywhere.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Evaluates the assignments found, with random ones in the remaining bits, and notes
    /// which values each node had.
    fn evaluate_found(&mut self) {
        let mut inputs: Vec<u64> = (0..self.formula.len()).map(|_| self.random()).collect();
        for (index, Assignment(found)) in self.found.drain(..).enumerate().take(64) {
            let bit = 1_u64 << index;
            for (input, is_true) in found {
                if let Some(value) = inputs.get_mut(input) {
                    *value &= !bit;
                    *value |= if is_true { bit } else { 0 };
                }
            }
        }
        let input = |node: usize| inputs.get(node).copied().unwrap_or_default();
        let values = self.formula.evaluate(input);
        for (node, [seen_false, seen_true]) in self.seen.iter_mut().enumerate() {
            let value = values.at(node);
            *seen_true |= value != 0;
            *seen_false |= value != u64::MAX;
        }
    }

    /// Begins a question: numbers the nodes that the literal depends on, its cone of inputs and
    /// gates. Returns them, and how many nodes and operands they are.
    fn begin_question(&mut self, literal: Literal) -> (Vec<usize>, usize) {
        self.question += 1;
        let (mut cone, mut size) = (Vec::new(), 0);
        let mut open = vec![literal.node()];
        while let Some(node) = open.pop() {
            let Some(variable) = self.variables.get_mut(node) else {
                continue;
            };
            if variable.0 == self.question {
                continue;
            }
            *variable = (self.question, u32::try_from(cone.len()).unwrap_or(u32::MAX));
            cone.push(node);
            let operands = self.formula.operands(node).unwrap_or_default();
            size += 1 + operands.len();
            open.extend(operands.iter().map(|operand| operand.node()));
        }
        (cone, size)
    }

    /// Decides with the solver whether the literal can be true.
    fn solve(&mut self, literal: Literal) -> (Possibility, Option<Assignment>) {
        if self.size_left == 0 || self.stop.is_given() {
            return (Possibility::Undecided, None);
        }
        let (cone, size) = self.begin_question(literal);
        self.size_left = self.size_left.saturating_sub(size);
        let budget = DecisionBudget::new(size, self.decisions_left, self.stop);
        let mut solver = Solver::new(SolverOpts::default(), budget);
        for node in &cone {
            let is_input = self.formula.operands(*node).is_none();
            solver.new_var(lbool::UNDEF, is_input);
        }
        let mut clause = Vec::new();
        for node in &cone {
            if self.stop.is_given() {
                return (Possibility::Undecided, None);
            }
            let Some(operands) = self.formula.operands(*node) else {
                continue;
            };
            let gate = self.solver_variable(&mut solver, *node);
            for operand in operands {
                let operand = self.solver_literal(&mut solver, *operand);
                clause.clear();
                clause.extend([!gate, operand]);
                solver.add_clause_reuse(&mut clause);
            }
            clause.clear();
            clause.push(gate);
            for operand in operands {
                let operand = self.solver_literal(&mut solver, *operand);
                clause.push(!operand);
            }
            solver.add_clause_reuse(&mut clause);
        }
        let goal = self.solver_literal(&mut solver, literal);
        clause.clear();
        clause.push(goal);
        solver.add_clause_reuse(&mut clause);
        let result = solver.solve_limited(&[]);
        self.decisions_left = self.decisions_left.saturating_sub(solver.cb().spent.get());
        if result == lbool::FALSE {
            return (Possibility::Impossible, None);
        }
        if result != lbool::TRUE {
            return (Possibility::Undecided, None);
        }
        let inputs = cone.into_iter();
        let inputs = inputs.filter(|node| self.formula.operands(*node).is_none());
        let assignment = inputs.map(|input| {
            let variable = self.solver_variable(&mut solver, input);
            (input, solver.value_lit(variable) == lbool::TRUE)
        });
        let assignment = Assignment(assignment.collect());
        (Possibility::Possible, Some(assignment))
    }

    fn solver_variable(&self, solver: &mut Solver<DecisionBudget<'_>>, node: usize) -> Lit {
        let index = self.variables.get(node).map_or(0, |(_, index)| *index);
        Lit::new(solver.var_of_int(index), true)
    }

    fn solver_literal(&self, solver: &mut Solver<DecisionBudget<'_>>, literal: Literal) -> Lit {
        let variable = self.solver_variable(solver, literal.node());
        if literal.negated() {
            !variable
        } else {
            variable
        }
    }
}

/// Counts the decisions of a question and ends it when there are too many.
#[derive(Debug)]
struct DecisionBudget<'a> {
    spent: Cell<u64>,
    max: u64,
    weight: u64,
    stop: StopSignal<'a>,
}

impl<'a> DecisionBudget<'a> {
    fn new(size: usize, left: u64, stop: StopSignal<'a>) -> Self {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let weight = 1 + size / SIZE_PER_DECISION;
        Self {
            // The question itself counts like a decision.
            spent: Cell::new(weight),
            max: left.min(MAX_DECISIONS_PER_QUESTION),
            weight,
            stop,
        }
    }
}

impl Callbacks for DecisionBudget<'_> {
    /// The solver asks before each decision.
    fn stop(&self) -> bool {
        self.spent.set(self.spent.get() + self.weight);
        self.spent.get() > self.max || self.stop.is_given()
    }
}

#[cfg(test)]
mod tests;
