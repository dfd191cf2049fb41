use proptest::prelude::*;

use super::*;

fn condition(text: &str) -> Condition {
    match parse(text).unwrap().nodes.as_slice() {
        [Node::Condition(condition)] => condition.clone(),
        other => panic!("one condition expected, got {other:?}"),
    }
}

fn error_of(text: &str) -> (usize, &'static str) {
    let error = parse(text).unwrap_err();
    (error.at, error.expected)
}

fn texts(condition: &Condition) -> Vec<&str> {
    let targets = condition.targets.iter();
    targets.map(text_of).collect()
}

fn text_of(target: &ConditionTarget) -> &str {
    match target {
        ConditionTarget::Text(text) => text,
        ConditionTarget::Number(_) | ConditionTarget::Bool(_) => {
            panic!("a text expected, got {target:?}")
        }
    }
}

#[test]
fn a_shorthand_is_an_and_of_one_condition() {
    let found = condition("components.7.light.color != red,  green ");
    assert_eq!(found.path.as_str(), "components.7");
    assert_eq!(found.variable.as_str(), "light.color");
    assert_eq!(found.operator, Comparison::NotEqual);
    assert_eq!(texts(&found), ["red", "green"]);
}

#[test]
fn spaces_around_operator_and_commas_do_not_matter() {
    let spaced = condition("components.7.a  =  x , y");
    assert_eq!(spaced, condition("components.7.a=x,y"));
}

#[test]
fn quotes_hold_what_would_be_syntax() {
    let found = condition(r#"components.7.a = "x,y", " z ", "", "\"\\""#);
    assert_eq!(texts(&found), ["x,y", " z ", "", "\"\\"]);
}

#[test]
fn faults_name_the_character_counted_in_code_points() {
    assert_eq!(error_of("").0, 1);
    assert_eq!(error_of("component.7.a = b").0, 1);
    assert_eq!(error_of("components.x.a = b").0, 12);
    assert_eq!(error_of("components.7").0, 13);
    assert_eq!(error_of("components.7. = b").0, 14);
    assert_eq!(error_of("components.7.ü").0, 15);
    assert_eq!(error_of("components.7.ü >= 5").0, 17);
    assert_eq!(error_of("components.7.ü = ").0, 18);
    assert_eq!(error_of("components.7.ü = b,").0, 20);
    assert_eq!(error_of("components.7.ü > 1, 2").0, 19);
    assert_eq!(error_of("components.7.ü = a\"b").0, 19);
    assert_eq!(error_of("components.7.ü = \"a\" b").0, 22);
    assert_eq!(error_of("components.7.ü = \"a").0, 20);
    assert_eq!(error_of(r#"components.7.ü = "\n""#).0, 20);
}

#[test]
fn other_forms_have_no_rendering() {
    let base = condition("components.7.a = b");
    let group = |operator, nodes| Group { operator, nodes };
    let and = |condition| group(LogicalOperator::And, vec![Node::Condition(condition)]);
    let one = Node::Condition(base.clone());
    assert_eq!(render(&and(base.clone())).unwrap(), "components.7.a = b");
    assert_eq!(render(&group(LogicalOperator::Or, vec![one.clone()])), None);
    assert_eq!(
        render(&group(LogicalOperator::And, vec![one.clone(), one])),
        None
    );
    let with = |change: fn(&mut Condition)| {
        let mut condition = base.clone();
        change(&mut condition);
        render(&and(condition))
    };
    assert_eq!(
        with(|c| c.targets = vec![ConditionTarget::Number(1.0)]),
        None
    );
    assert_eq!(
        with(|c| c.targets = vec![ConditionTarget::Bool(true)]),
        None
    );
    assert_eq!(
        with(|c| c.path = Tag::parse("parts.7".into()).unwrap()),
        None
    );
    assert_eq!(with(|c| c.path = Tag::default()), None);
    assert_eq!(
        with(|c| c.variable = Label::parse("a=b".into()).unwrap()),
        None
    );
    assert_eq!(
        with(|c| c.variable = Label::parse(" a".into()).unwrap()),
        None
    );
    assert_eq!(
        with(|c| {
            c.operator = Comparison::Less;
            c.targets = vec![
                ConditionTarget::Text("1".into()),
                ConditionTarget::Text("2".into()),
            ];
        }),
        None
    );
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ ,=!<>\"\\\\.a-c\u{a0}ü]{0,8}",
        "\\PC{0,12}",
        Just(String::new())
    ]
}

fn any_group() -> impl Strategy<Value = Group> {
    let operator = prop::sample::select(&Comparison::ALL[..]);
    let values = prop::collection::vec(any_text(), 1..4);
    let path = prop_oneof!["components\\.[0-9]{1,20}", any_text()];
    (any_text(), operator, values, path).prop_filter_map("labels", |(v, operator, values, p)| {
        let condition = Condition {
            variable: Label::parse(v).ok()?,
            operator,
            targets: values.into_iter().map(ConditionTarget::Text).collect(),
            path: Tag::parse(p).ok()?,
        };
        Some(Group {
            operator: LogicalOperator::And,
            nodes: vec![Node::Condition(condition)],
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn parsing_a_rendering_gives_the_condition_back(group in any_group()) {
        if let Some(text) = render(&group) {
            prop_assert_eq!(parse(&text), Ok(group));
        }
    }

    #[test]
    fn what_parses_renders(text in "components\\.[0-9]{1,3}\\.[ a-c.!]{0,4}[=<>!]{1,2}[ ,\"\\\\a-c=]{0,8}") {
        if let Ok(group) = parse(&text) {
            let rendered = render(&group);
            prop_assert!(rendered.is_some());
            prop_assert_eq!(parse(&rendered.unwrap_or_default()), Ok(group));
        }
    }
}
