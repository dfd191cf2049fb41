//! Enums of the API as arguments. The values are the last parts of their names in lower case, such
//! as `tech` for `ACCESS_LEVEL_TECH`.

use clap::{ValueEnum, builder::PossibleValue};

use crate::proto::v1::{AbsentSteps, AccessLevel, Severity, TaskType};

macro_rules! arguments {
    ($($type:ident $prefix:literal: $($value:ident)+;)+) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$value),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let name = self.as_str_name().strip_prefix($prefix)?;
                Some(PossibleValue::new(name.to_ascii_lowercase()))
            }
        }
    )+};
}

arguments! {
    AbsentSteps "ABSENT_STEPS_": Keep Delete;
    AccessLevel "ACCESS_LEVEL_": User User2 User3 Tech Tech2 Tech3 Expert;
    Severity "SEVERITY_": Info Warning Error;
    TaskType "TASK_TYPE_": Standard Linked;
}
