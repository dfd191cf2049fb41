//! The table of rules. ListRules, the findings and docs/analysis.md are made from it. An id never
//! changes its meaning, and the id of a removed rule is never reused.

/// Part of fingerprints. Raise it whenever the same guide may get different findings.
pub const RULES_VERSION: u32 = 8;

/// With the numbers of the API.
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
    /// The severity, unless a request sets another one.
    pub severity: Severity,
    /// When there is a finding.
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
    "A target of `=` or `!=` equals no value that the variable can have."
    "A step needs `charge_light = of`, but the answers are `on` and `off`."
    "Compare with a key of the observations that set the variable."

    NotComparable "condition/not-comparable" Warning
    "`>` or `<` compares with a target that is not numeric, or reads a variable without a numeric answer."
    "A step needs `beeps > many`."
    "Compare with a number, and give the answers numeric keys; or use `=`."

    SeveralBounds "condition/several-bounds" Warning
    "`>` or `<` has several targets. It holds if it holds for one of them, so the others change nothing."
    "A step needs `beeps > 2, 5`, which means the same as `beeps > 2`."
    "Keep one target, or write a condition for each bound."

    AnsweredLater "condition/answered-later" Warning
    "Every observation of the guide that sets the variable comes after the step or task that reads it, and no observation elsewhere sets it."
    "The first step needs `charge_light = off`; the third step asks for `charge_light`."
    "Move the observation before the reader, or read another variable."

    SelfRead "condition/self" Error
    "An observation's own condition reads the variable that only this observation sets."
    "The observation `charge_light` is shown only if `charge_light = off`."
    "Remove the condition, or read the variable of an earlier observation."

    SetElsewhere "condition/set-elsewhere" Info
    "Only observations of other guides set the variable. `related` names up to 20 of them."
    "A step needs `components.1204.damage = liquid`; only another guide asks for `damage`."
    "Make sure that the other guide always comes first, or ask in this guide, too."

    AlwaysHolds "condition/always-holds" Info
    "The dependencies of a step or task hold in every walkthrough that reaches it."
    "A step needs `charge_light != blinking`, and `blinking` is no longer an answer."
    "Remove the dependencies, or correct them if they were meant to differ."

    Unreachable "step/unreachable" Error
    "No walkthrough sees the step. `related` lists conditions that cannot hold together, if some were found. If an END without conditions comes before the step, `hint` names it."
    "A step needs `charge_light = on` and `charge_light = off`."
    "Correct the conditions, or delete the step."

    NeverVisible "task/never-visible" Error
    "No walkthrough begins, as the task's own dependencies cannot hold. Its steps are not reported."
    "A task needs `power = on` and `power = off`."
    "Correct the dependencies of the task."

    NoOutcome "path/no-outcome" Warning
    "A walkthrough that begins with nothing answered ends without a visible SOLUTION, IDP or END. `example` has its answers, `levels` says for whom."
    "An observation has the answers `yes` and `no`, and only a solution for `no` follows."
    "Add an outcome for these answers, or an END without conditions as the last step."

    DuplicateName "observation/duplicate-name" Warning
    "Two observations of one task set the same name. `facts.together` says whether one walkthrough sees both."
    "Two observations are named `charge_light`; the second answer replaces the first."
    "Rename one of them, with the conditions that read it."

    Unused "observation/unused" Info
    "Nothing in the account reads the variable of the observation, and none of its values manages a task."
    "An observation asks for `serial`, and no condition reads `serial`."
    "Delete the observation, or read its answer. If the answer is only meant for people, suppress this finding."

    UnusedAnswer "observation/unused-answer" Info
    "Conditions distinguish other answers of the observation. For this one, each has the same outcome as if nothing was answered."
    "Conditions read `charge_light = off`, and none names the answer `steady`."
    "Add what follows from the answer, or leave it as it is if nothing does."

    DuplicateText "observation/duplicate-text" Warning
    "Two answers of an observation show the same text, in the source or in a language."
    "The answers `off` and `none` both show \"The lamp is off\"."
    "Give each answer a text of its own, or merge them."

    SingleAnswer "observation/single-answer" Info
    "The observation has one answer, so there is nothing to choose."
    "An observation has only the answer `ok`."
    "Add the missing answers, or replace the step by an information step."

    AlwaysShown "linked/always-shown" Warning
    "An answer manages a task, and neither the dependencies of the task nor those of its wiring step read the variable of the observation: the task is shown whatever is answered."
    "The answer `battery` manages a task without dependencies, so whoever answers `screen` sees it, too."
    "Have the task of the answer depend on the answer: by a condition such as `components.1204.part = battery`, as its `dependency_shorthand` or in its `dependencies`."

    Cycle "subtask/cycle" Error
    "Following subtask steps leads back to the task. `related` lists the steps of the cycle. Each cycle is reported once; of several cycles through one subtask step, the shortest is reported."
    "Task A has a subtask step to B, and B has one to A."
    "Delete one of the subtask steps."

    SubtaskUnpublished "subtask/unpublished" Warning
    "A published step refers to a task that is not published."
    "A step refers to a task with `published` 0."
    "Publish the task, or unpublish the step until the task is published."

    SubtaskLevels "subtask/levels" Warning
    "Levels that may see the task may not see the subtask; `levels` lists them. An ERROR if the two have no level in common."
    "The task is for users and technicians, its subtask only for technicians."
    "Give the subtask the roles of the task."

    TooDeep "subtask/too-deep" Warning
    "Subtasks are nested deeper than 8 levels."
    "A chain of nine subtask steps leads from task to task."
    "Make the chain of subtasks shorter."

    TranslationMissing "translation/missing" Warning
    "The task or step has no translation into the language, or one without a text that the source has; `facts.fields` lists what is missing."
    "A step has a German title and no German body."
    "Add the fields to the translation. Automatic translation only adds a language that the task or step lacks completely: delete a partial translation to have it made again."

    TranslationOutdated "translation/outdated" Warning
    "An unlocked translation was made from a source that has changed since."
    "The title was changed after it was translated into German."
    "Have it translated again, or translate it yourself."

    TranslationLockedOutdated "translation/locked-outdated" Info
    "A locked translation was made from a source that has changed since. Automatic translation will not change it."
    "A person translated the title into German, and later the source was changed."
    "Check the translation and write it again."

    TranslationAnswers "translation/answers" Warning
    "The translated question lacks keys of the source, or has others."
    "The answers are `on` and `off`, and the German question has only `on`."
    "Translate each answer under the key of the source."

    UnknownLanguage "translation/unknown-language" Warning
    "The language of a translation is not registered: its tag has a subtag that the IANA Language Subtag Registry does not have. Tags for private use, such as `x-simple`, are not reported."
    "A step is translated into `german`; the tag of German is `de`."
    "Write the translation under the registered tag, or under one for private use (`x-…`)."

    NoSteps "task/no-steps" Warning
    "The task has no step, or none that is published."
    "A task was created and nothing was added."
    "Add steps, or publish those that are ready."

    NoContent "step/no-content" Info
    "An information step has neither a body nor instructions."
    "An information step has a title only."
    "Write a body or instructions, or delete the step."

    UnknownPublished "step/unknown-published" Info
    "`published` of a step is neither 0 nor 1. Such a step is not visible."
    "A step has `published` 2."
    "Set `published` to 0 or 1."

    TooLarge "analysis/too-large" Info
    "The guide exceeds 10,000 steps, 20,000 conditions, 8 levels of subtasks, 100 languages, a million keys of variables or the bytes of a message. What is beyond the limit was not checked. Rules about walkthroughs were not checked either, unless only the languages are too many."
    "A guide has 100 subtask steps to a task of 200 steps."
    "Divide the guide into smaller ones."
}

impl Rule {
    /// Whether each finding depends on other guides of the account. Findings of
    /// [`Self::UnknownVariable`] do so only for names that other guides can set.
    pub fn needs_account(self) -> bool {
        matches!(self, Self::SetElsewhere | Self::Unused | Self::UnusedAnswer)
    }

    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.text().id == id)
    }
}
