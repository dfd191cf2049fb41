//! Assertions about the violations and resources of errors.

use tonic::Code;
use tonic_types::PreconditionViolation;

use crate::kit::failure::Failure;

impl Failure {
    /// The violations of its PreconditionFailure.
    pub fn of_preconditions(&self) -> &[PreconditionViolation] {
        let failure = self.details.precondition_failure();
        failure.map_or(&[], |failure| &failure.violations)
    }

    /// The description of the violation at this field; empty if there is none.
    pub fn description_of(&self, field: &str) -> &str {
        let found = self.of_fields().iter().find(|it| it.field == field);
        found.map_or("", |violation| &violation.description)
    }

    /// The type and subject of every violation of its PreconditionFailure.
    pub fn preconditions(&self) -> Vec<(&str, &str)> {
        let violations = self.of_preconditions().iter();
        violations.map(|it| (&*it.r#type, &*it.subject)).collect()
    }

    /// Asserts INVALID_ARGUMENT with exactly these violations, in any order, each with a
    /// description. The error has the reason of its first violation.
    #[track_caller]
    pub fn violates(&self, expected: &[(&str, &str)]) -> &Self {
        let first = self.violations().first().map_or("", |first| first.1);
        self.is(Code::InvalidArgument, first);
        let mut found = self.violations();
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{self:?}");
        self.describes_its_violations()
    }

    /// Asserts that each violation says what is wrong.
    #[track_caller]
    pub fn describes_its_violations(&self) -> &Self {
        for violation in self.of_fields() {
            assert!(!violation.description.is_empty(), "{violation:?}");
        }
        for violation in self.of_preconditions() {
            assert!(!violation.description.is_empty(), "{violation:?}");
        }
        self
    }

    /// Asserts NOT_FOUND of this task.
    #[track_caller]
    pub fn is_task_not_found(&self, guid: &str) -> &Self {
        self.is_not_found("TASK_NOT_FOUND", "expertise.v1.Task", guid)
    }

    /// Asserts NOT_FOUND of this step.
    #[track_caller]
    pub fn is_step_not_found(&self, guid: &str) -> &Self {
        self.is_not_found("STEP_NOT_FOUND", "expertise.v1.Step", guid)
    }

    /// Asserts NOT_FOUND of this role.
    #[track_caller]
    pub fn is_role_not_found(&self, id: i64) -> &Self {
        self.is_not_found("ROLE_NOT_FOUND", "expertise.v1.Role", &id.to_string())
    }

    #[track_caller]
    fn is_not_found(&self, reason: &str, resource_type: &str, name: &str) -> &Self {
        self.is(Code::NotFound, reason);
        let resource = self.details.resource_info();
        let resource = resource.map(|it| (&*it.resource_type, &*it.resource_name));
        assert_eq!(resource, Some((resource_type, name)), "{self:?}");
        self
    }

    /// Asserts FAILED_PRECONDITION with a PreconditionFailure that says why.
    #[track_caller]
    pub fn is_precondition(&self, reason: &str) -> &Self {
        self.is(Code::FailedPrecondition, reason);
        assert!(!self.preconditions().is_empty(), "{self:?}");
        self
    }
}
