//! Asks a SAT solver whether a literal of a formula can be true, unless random assignments already
//! show it. Each question gets its own solver, with a variable for each node that the literal
//! depends on. The clauses of a gate say that the gate implies each of its operands, and that all
//! operands together imply the gate.

use std::collections::HashMap;

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};

use super::formula::{Formula, Literal};
use crate::domain::analysis::{Allowance, Budget, DECISION_WORK};

/// The maximum work of one question, so that a hard question leaves some for the others.
const MAX_QUESTION_WORK: usize = 20_000 * DECISION_WORK;

/// The values of a formula's nodes, which follow from the values of its inputs.
#[derive(Clone, Debug)]
pub struct Assignment(Vec<bool>);

impl Assignment {
    fn new(formula: &Formula, input: impl Fn(usize) -> bool) -> Self {
        let mut values = Self(Vec::with_capacity(formula.len()));
        for node in 0..formula.len() {
            values.0.push(match formula.operands(node) {
                None => input(node),
                Some(operands) => operands.iter().all(|operand| values.is_true(*operand)),
            });
        }
        values
    }

    pub fn is_true(&self, literal: Literal) -> bool {
        self.0.get(literal.node()).copied().unwrap_or_default() != literal.negated()
    }

    /// The same assignment, except that this literal, one of several [choices], is true.
    ///
    /// [choices]: Formula::add_choice
    pub fn with(&self, formula: &Formula, choice: Literal) -> Self {
        let mut inputs: HashMap<usize, bool> = HashMap::new();
        let mut open = vec![choice];
        while let Some(literal) = open.pop() {
            match formula.operands(literal.node()) {
                Some(operands) => open.extend(operands),
                None => drop(inputs.insert(literal.node(), !literal.negated())),
            }
        }
        Self::new(formula, |node| {
            let changed = inputs.get(&node).copied();
            changed.unwrap_or_else(|| self.is_true(Literal::from_node(node)))
        })
    }
}

/// Answers questions about a formula, which may grow between questions.
pub struct Search<'a> {
    pub formula: Formula,
    budget: &'a Budget<'a>,
    /// Literals that were true in an assignment of the solver, and literals that cannot be true.
    known: HashMap<Literal, bool>,
}

impl<'a> Search<'a> {
    pub fn new(formula: Formula, budget: &'a Budget<'a>) -> Self {
        Self {
            formula,
            budget,
            known: HashMap::from([(Literal::FALSE, false)]),
        }
    }

    /// Whether the literal can be true; `None` if the budget was spent before that was decided.
    pub fn is_possible(&mut self, literal: Literal) -> Option<bool> {
        let is_true =
            |it: Literal| self.formula.is_sampled(it) || self.known.get(&it) == Some(&true);
        // A negated gate is true if one of its operands is false.
        let operands = self.formula.operands(literal.node()).unwrap_or_default();
        let has_false = literal.negated() && operands.iter().any(|operand| is_true(!*operand));
        if has_false || is_true(literal) {
            return Some(true);
        }
        Some(self.example(literal)?.is_some())
    }

    /// An assignment in which the literal is true, or `Some(None)` if there is none; `None` if the
    /// budget was spent before that was decided.
    pub fn example(&mut self, literal: Literal) -> Option<Option<Assignment>> {
        let is_impossible = |it: &Literal| self.known.get(it) == Some(&false);
        let operands = self.formula.operands(literal.node()).unwrap_or_default();
        let needs_impossible = !literal.negated() && operands.iter().any(is_impossible);
        if needs_impossible || is_impossible(&literal) {
            return Some(None);
        }
        let nodes = self.formula.reachable_nodes(literal);
        let gates = || {
            let nodes = nodes.iter().copied();
            nodes.filter_map(|node| Some((Literal::from_node(node), self.formula.operands(node)?)))
        };
        let operand_count: usize = gates().map(|(_, operands)| operands.len()).sum();
        let mut solver = Solver::new(
            SolverOpts::default(),
            QuestionBudget {
                budget: self.budget,
                decision: DECISION_WORK + nodes.len() + operand_count,
                left: Allowance::new(MAX_QUESTION_WORK),
            },
        );
        // Only inputs are decided. The values of gates follow.
        let variables = nodes.iter().map(|node| {
            let is_input = self.formula.operands(*node).is_none();
            (*node, solver.new_var(lbool::UNDEF, is_input))
        });
        let variables: HashMap<usize, Var> = variables.collect();
        let lit = |literal: Literal| {
            let variable = variables.get(&literal.node()).copied();
            Lit::new(variable.unwrap_or(Var::UNDEF), !literal.negated())
        };
        for (gate, operands) in gates() {
            for operand in operands {
                solver.add_clause_reuse(&mut vec![lit(!gate), lit(*operand)]);
            }
            let implies_gate = operands.iter().map(|operand| lit(!*operand));
            let mut clause: Vec<Lit> = std::iter::once(lit(gate)).chain(implies_gate).collect();
            solver.add_clause_reuse(&mut clause);
        }
        solver.add_clause_reuse(&mut vec![lit(literal)]);
        if solver.cb().stop() {
            return None;
        }
        let answer = solver.solve_limited(&[]);
        if answer == lbool::FALSE {
            self.known.insert(literal, false);
            return Some(None);
        }
        if answer != lbool::TRUE {
            return None;
        }
        let is_true = |literal: Literal| solver.value_lit(lit(literal)) == lbool::TRUE;
        let literals = nodes.iter().copied().map(Literal::from_node);
        let true_ones = literals.map(|one| if is_true(one) { one } else { !one });
        self.known.extend(true_ones.map(|one| (one, true)));
        // Inputs that the literal does not depend on are false.
        let input = |node| variables.contains_key(&node) && is_true(Literal::from_node(node));
        Some(Some(Assignment::new(&self.formula, input)))
    }
}

/// Stops a question that takes too many decisions.
struct QuestionBudget<'a> {
    budget: &'a Budget<'a>,
    /// The work of a decision, which grows with the nodes and operands that the question depends
    /// on.
    decision: usize,
    left: Allowance,
}

impl Callbacks for QuestionBudget<'_> {
    /// Called by the solver before each decision.
    fn stop(&self) -> bool {
        let allowances = [&self.left, &self.budget.work];
        allowances.iter().any(|it| !it.spend(self.decision)) || self.budget.is_stopped()
    }
}
