//! What makes a model unusable, or doubtful, named element by element.

use super::Model;

/// How bad a [`Defect`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The model cannot be solved.
    Error,
    /// The model can be solved, but something in it is probably not meant.
    Warning,
}

/// Something wrong in a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{element}: {kind}")]
pub struct Defect {
    /// The element as a person would say it: `task "Web"`, `entry "get"`.
    pub element: String,
    /// What is wrong.
    pub kind: DefectKind,
}

/// What can be wrong in a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DefectKind {
    /// The model has no processors, no tasks or no load.
    #[error("the model is empty: {0}")]
    Empty(&'static str),
}

impl DefectKind {
    /// Whether the defect prevents a solution.
    pub fn severity(&self) -> Severity {
        Severity::Error
    }
}

impl Model {
    /// All defects of the model, errors and warnings, in file order.
    pub fn validate(&self) -> Vec<Defect> {
        Vec::new()
    }

    /// The model itself, or its errors (warnings do not count).
    ///
    /// # Errors
    /// Every [`Defect`] of [`Severity::Error`].
    pub fn validated(self) -> Result<Self, Vec<Defect>> {
        let errors: Vec<Defect> = self.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }
}
