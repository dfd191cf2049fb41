use proptest::prelude::*;

use super::*;
use crate::domain::analysis::StopSignal;

/// A random formula: each gate has operands among the nodes before it.
fn formulas() -> impl Strategy<Value = Vec<Vec<(prop::sample::Index, bool)>>> {
    let operand = (any::<prop::sample::Index>(), any::<bool>());
    prop::collection::vec(prop::collection::vec(operand, 2..4), 1..24)
}

proptest! {
    #[test]
    fn the_search_agrees_with_trying_every_assignment(gates in formulas()) {
        const INPUTS: usize = 6;
        let mut formula = Formula::new();
        let mut literals: Vec<Literal> = (0..INPUTS).map(|_| formula.input()).collect();
        for operands in gates {
            let operands: Vec<Literal> = operands
                .iter()
                .map(|(index, negated)| {
                    let literal = *index.get(&literals);
                    if *negated { !literal } else { literal }
                })
                .collect();
            literals.push(formula.and(operands));
        }
        let all: Vec<NodeValues> = (0..1_usize << INPUTS)
            .map(|assignment| {
                formula.evaluate(|node| {
                    if assignment >> (node - 1) & 1 == 1 { u64::MAX } else { 0 }
                })
            })
            .collect();
        let budget = Budget::new(StopSignal::NEVER);
        let mut search = Search::without_random_assignments(&formula, &budget);
        for literal in literals.into_iter().flat_map(|literal| [literal, !literal]) {
            let possible = all.iter().any(|values| values.of(literal) != 0);
            let expected =
                if possible { Possibility::Possible } else { Possibility::Impossible };
            prop_assert_eq!(search.decide(literal), expected);
            let (found, example) = search.example(literal);
            prop_assert_eq!(found, expected);
            if let Some(example) = example {
                prop_assert!(example.values(&formula).of(literal) != 0);
            }
        }
    }
}

#[test]
fn a_hard_question_is_undecided_and_later_ones_are_answered() {
    // More pigeons than holes: no solver of this kind proves it quickly.
    const HOLES: usize = 11;
    let mut formula = Formula::new();
    let holes: Vec<Vec<Literal>> = (0..=HOLES).map(|_| formula.one_of(HOLES)).collect();
    let mut apart = Vec::new();
    for (index, one) in holes.iter().enumerate() {
        for other in holes.iter().skip(index + 1) {
            for (here, there) in one.iter().zip(other) {
                apart.push(!formula.and([*here, *there]));
            }
        }
    }
    let (a, b) = (formula.input(), formula.input());
    let easy = formula.and([a, b]);
    let hard = formula.and(apart);
    let budget = Budget::new(StopSignal::NEVER);
    let mut search = Search::without_random_assignments(&formula, &budget);
    assert_eq!(search.decide(hard), Possibility::Undecided);
    assert_eq!(search.decide(easy), Possibility::Possible);
    let left = budget.left(Work::Decisions);
    let spent = Budget::new(StopSignal::NEVER).left(Work::Decisions) - left;
    assert!((MAX_DECISIONS_PER_QUESTION..MAX_DECISIONS_PER_QUESTION + 100).contains(&spent));
}

#[test]
fn without_decisions_left_easy_questions_are_answered_until_no_nodes_are_left() {
    let mut formula = Formula::new();
    let (a, b) = (formula.input(), formula.input());
    let both = formula.and([a, b]);
    let neither = formula.and([!a, !b]);
    let contradiction = formula.and([both, neither]);
    for (nodes, possibility) in [
        (2, Possibility::Impossible),
        (1, Possibility::Impossible),
        (0, Possibility::Undecided),
    ] {
        let budget = Budget::new(StopSignal::NEVER).with(Work::Decisions, 0);
        let budget = budget.with(Work::Nodes, nodes);
        let mut search = Search::without_random_assignments(&formula, &budget);
        assert_eq!(search.decide(contradiction), possibility);
    }
}
