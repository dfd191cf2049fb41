//! The table of rules. ListRules, findings and docs/analysis.md take their texts from it. An id
//! never changes its meaning, and the id of a removed rule is never reused.

/// Part of fingerprints. Raise it when a change may alter the findings of an unchanged guide.
pub const RULES_VERSION: u32 = 8;

/// The values are those of the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info = 2,
    /// Probably a mistake.
    Warning = 3,
    /// Certainly a mistake.
    Error = 4,
}

/// The texts of a rule, and its default severity.
#[derive(Clone, Copy, Debug)]
pub struct RuleText {
    pub id: &'static str,
    /// Applies unless a request sets another severity.
    pub severity: Severity,
    /// What the rule reports.
    pub description: &'static str,
    /// A guide with such a finding.
    pub example: &'static str,
    pub hint: &'static str,
}

macro_rules! rules {
    ($($rule:ident $id:literal $severity:ident
        $description:literal $example:literal $hint:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $description] $rule,)*
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$rule,)*];

            pub fn text(self) -> RuleText {
                match self {
                    $(Self::$rule => RuleText {
                        id: $id,
                        severity: Severity::$severity,
                        description: $description,
                        example: $example,
                        hint: $hint,
                    },)*
                }
            }
        }
    };
}

rules! {
    UnknownVariable "condition/unknown-variable" Warning
    "No observation of the account sets the variable that a condition reads, and it is not declared."
    "A step needs `components.1204.charge_ligth = off`, but the observation is named `charge_light`."
    "Correct the name, add an observation that sets it, or declare it in `known_variables`."

    UnknownAnswer "condition/unknown-answer" Warning
    "A target of `=` or `!=` is not among the values that the variable can have."
    "A step needs `charge_light = of`, but the answers are `on` and `off`."
    "Compare with an answer key of an observation that sets the variable."

    NotComparable "condition/not-comparable" Warning
    "`>` or `<` has a target that is not numeric, or reads a variable that has no numeric value."
    "A step needs `beeps > many`."
    "Compare with a number and use numeric answer keys, or use `=`."

    SeveralBounds "condition/several-bounds" Warning
    "`>` or `<` has several targets. The condition holds if any target matches, so only one of them has an effect."
    "A step needs `beeps > 2, 5`, which means the same as `beeps > 2`."
    "Keep one target, or write one condition per bound."

    AnsweredLater "condition/answered-later" Warning
    "Every observation that sets the variable comes after the step or task that reads it. No other guide sets it."
    "The first step needs `charge_light = off`; the third step asks for `charge_light`."
    "Move the observation before the step or task that reads it, or read another variable."

    SelfRead "condition/self" Error
    "An observation depends on the variable that only the observation itself sets."
    "The observation `charge_light` is shown only if `charge_light = off`."
    "Remove the condition, or read the variable of an earlier observation."

    SetElsewhere "condition/set-elsewhere" Info
    "Only observations of other guides set the variable. `related` names up to 20 of them."
    "A step needs `components.1204.damage = liquid`; only another guide asks for `damage`."
    "Make sure that the other guide always comes first, or ask in this guide, too."

    AlwaysHolds "condition/always-holds" Info
    "The dependencies of the step or task hold in every walkthrough that reaches it."
    "A step needs `charge_light != blinking`, and `blinking` is no longer an answer."
    "Remove the dependencies, or correct them if they should sometimes fail."

    Unreachable "step/unreachable" Error
    "No walkthrough reaches the step. `related` lists conditions that contradict each other, if any were found. If an END without conditions comes before the step, `hint` names it."
    "A step needs `charge_light = on` and `charge_light = off`."
    "Correct the conditions, or delete the step."

    NeverVisible "task/never-visible" Error
    "The dependencies of the task can never hold, so no walkthrough begins. Its steps are not reported."
    "A task needs `power = on` and `power = off`."
    "Correct the dependencies of the task."

    NoOutcome "path/no-outcome" Warning
    "A walkthrough that begins without answers ends without a visible SOLUTION, IDP or END. `example` has the answers, and `levels` the affected levels."
    "An observation has the answers `yes` and `no`, but only `no` leads to a solution."
    "Add an outcome for these answers, or an END without conditions as the last step."

    DuplicateName "observation/duplicate-name" Warning
    "Two observations of a task have the same name. `facts.together` says whether a walkthrough can show both."
    "Two observations are named `charge_light`; the second answer replaces the first."
    "Rename one of them, and update the conditions that read it."

    Unused "observation/unused" Info
    "Nothing in the account reads the variable of the observation, and no answer manages a task."
    "An observation asks for `serial`, and no condition reads `serial`."
    "Delete the observation, or read its answer. If the answer is only meant for people, suppress this finding."

    UnusedAnswer "observation/unused-answer" Info
    "Conditions distinguish other answers of the observation, but treat this one as if the question had not been answered."
    "A condition reads `charge_light = off`, but none names the answer `steady`."
    "Add steps for this answer, or keep it if nothing follows from it."

    DuplicateText "observation/duplicate-text" Warning
    "Two answers of an observation have the same text, in the source or in a translation."
    "The answers `off` and `none` both show \"The lamp is off\"."
    "Give each answer its own text, or merge the answers."

    SingleAnswer "observation/single-answer" Info
    "The observation has one answer, so there is nothing to choose."
    "The only answer of an observation is `ok`."
    "Add the missing answers, or replace the observation with an information step."

    AlwaysShown "linked/always-shown" Warning
    "An answer manages a task, but the dependencies of the task and of its wiring step do not read the variable of the observation. The task is shown for every answer."
    "The answer `battery` manages a task without dependencies, so the task is also shown after the answer `screen`."
    "Make the task depend on the answer with a condition such as `components.1204.part = battery`, in its `dependency_shorthand` or its `dependencies`."

    Cycle "subtask/cycle" Error
    "Following the subtask steps leads back to the task. `related` lists the steps of the cycle. Each cycle is reported once. If several cycles share a subtask step, only the shortest is reported."
    "Task A has a subtask step to B, and B has one to A."
    "Delete one of the subtask steps."

    SubtaskUnpublished "subtask/unpublished" Warning
    "A published step refers to a task that is not published."
    "A step refers to a task with `published` 0."
    "Publish the task, or unpublish the step until the task is published."

    SubtaskLevels "subtask/levels" Warning
    "Some levels may see the task but not the subtask. `levels` lists them. The severity is ERROR if no level may see both."
    "A task is for users and technicians, but its subtask is only for technicians."
    "Give the subtask the same roles as the task."

    TooDeep "subtask/too-deep" Warning
    "Subtasks are nested deeper than 8 levels."
    "A chain of nine subtask steps leads from one task to the next."
    "Make the chain of subtasks shorter."

    TranslationMissing "translation/missing" Warning
    "The task or step is not translated into the language, or some of its texts are not. `facts.fields` lists the missing fields."
    "A step has a German title but no German body."
    "Add the missing fields. Automatic translation skips partial translations: to have one completed, delete it first."

    TranslationOutdated "translation/outdated" Warning
    "The source has changed since it was translated. The translation is not locked."
    "The title was changed after it was translated into German."
    "Run automatic translation, or update the translation yourself."

    TranslationLockedOutdated "translation/locked-outdated" Info
    "The source has changed since it was translated. The translation is locked, so automatic translation does not update it."
    "The title was changed after a person translated it into German."
    "Update the translation, or save it again if it is still correct."

    TranslationAnswers "translation/answers" Warning
    "The translated question lacks answer keys of the source, or has additional ones."
    "The answers are `on` and `off`, but the German question only has `on`."
    "Translate each answer under the key that it has in the source."

    UnknownLanguage "translation/unknown-language" Warning
    "The language tag of a translation has a subtag that the IANA Language Subtag Registry does not list. Private-use tags, such as `x-simple`, are not reported."
    "A step is translated into `german`, but the tag of German is `de`."
    "Use the registered tag, or a private-use tag (`x-…`)."

    NoSteps "task/no-steps" Warning
    "The task has no published step."
    "A task was created, but no step was added."
    "Add steps, or publish the existing ones."

    NoContent "step/no-content" Info
    "An information step has neither a body nor instructions."
    "An information step only has a title."
    "Write a body or instructions, or delete the step."

    UnknownPublished "step/unknown-published" Info
    "The step has a `published` value other than 0 and 1, so it is not visible."
    "A step has `published` 2."
    "Set `published` to 0 or 1."

    TooLarge "analysis/too-large" Info
    "The guide exceeds 10,000 steps, 20,000 conditions, 8 levels of subtasks, 100 languages, a million keys of variables, or the size limit of a message. Anything beyond the limit was not checked. Unless only the number of languages is exceeded, rules about walkthroughs were not checked either."
    "A guide has 100 subtask steps to a task of 200 steps."
    "Split the guide into smaller guides."
}

impl Rule {
    /// Whether every finding depends on other guides of the account. A finding of
    /// [`Self::UnknownVariable`] does so only if other guides can set the variable.
    pub fn needs_account(self) -> bool {
        matches!(self, Self::SetElsewhere | Self::Unused | Self::UnusedAnswer)
    }

    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.text().id == id)
    }
}
