use proptest::prelude::*;

use super::*;

fn error_of(text: &str) -> (usize, &'static str) {
    let error = parse(text).unwrap_err();
    (error.at, error.expected)
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
fn faults_behind_the_last_character_say_that_the_text_ends() {
    let message = |text: &str| parse(text).unwrap_err().to_string();
    for text in [
        "components.7.q in y",
        "components.7.q = ",
        "components.7.q = a,",
    ] {
        let message = message(text);
        assert!(
            message.contains(", the end of the text: expected "),
            "{message}"
        );
    }
    let message = message("components.7.q >= 5");
    assert!(
        message.starts_with("at character 17: expected "),
        "{message}"
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
    fn what_parses_renders_and_every_fault_has_its_character(text in prop_oneof![
        "components\\.[0-9]{1,3}\\.[ a-c.!\0]{0,4}[=<>!]{1,2}[ ,\"\\\\a-c=\0ü🔧]{0,8}",
        any_text(),
    ]) {
        match parse(&text) {
            Ok(group) => {
                prop_assert!(!text.contains('\0'));
                let rendered = render(&group);
                prop_assert!(rendered.is_some());
                prop_assert_eq!(parse(&rendered.unwrap_or_default()), Ok(group));
            }
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.at)),
        }
    }
}
