//! A profile as it is shown: its report, the tree of calls, and the contexts, within bounds.

use serde::{Deserialize, Serialize};

use super::{
    CallBounds, Calls, ContextReport, DrawOptions, Level, Metric, OnlyChildren, OperatorOptions, Profile, ProfileReport, draw_calls,
};

/// What is shown of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewOptions {
    /// The time that is looked at.
    pub metric: Metric,
    /// The finest level of contexts.
    pub by: Level,
    /// Most levels of calls.
    pub depth: usize,
    /// Calls, contexts and operations with a smaller part of all time are left out.
    pub least_share: f64,
    /// When contexts are told apart.
    pub operators: OperatorOptions,
}

impl Default for ViewOptions {
    fn default() -> Self {
        let CallBounds { depth, least_share } = CallBounds::default();
        Self { metric: Metric::default(), by: Level::Stack, depth, least_share, operators: OperatorOptions::default() }
    }
}

/// A profile as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileView {
    /// Levels, operations with their leaves, sibling calls.
    #[serde(flatten)]
    pub report: ProfileReport,
    /// Who calls whom, in preorder.
    pub calls: Vec<Calls>,
    /// The calling-context tree, coarser contexts first.
    pub contexts: Vec<ContextReport>,
    #[serde(skip)]
    drawn: String,
    #[serde(skip)]
    least_share: f64,
}

impl Profile {
    /// What `options` want to be shown.
    pub fn view(&self, options: &ViewOptions) -> ProfileView {
        let ViewOptions { metric, by, depth, least_share, operators } = *options;
        let tree = self.context_tree(metric);
        let draw = DrawOptions { level: by, least_share, only_children: OnlyChildren::Skip, ..DrawOptions::default() };
        ProfileView {
            report: self.report(metric, &operators),
            calls: self.calls(metric, &CallBounds { depth, least_share }),
            contexts: tree.report(by, least_share),
            drawn: tree.draw(&draw),
            least_share,
        }
    }
}

impl ProfileView {
    /// As text: what each level explains, calls, contexts, operations with the leaves of their timing models.
    pub fn to_text(&self) -> String {
        let what = match self.report.metric {
            Metric::Response => "response times",
            Metric::SelfTime => "self times",
        };
        let sections = [
            format!("{what} of {}", self.report.head()),
            format!("\ncalls, by their part of all time\n{}", draw_calls(&self.calls)),
            format!("\ncontexts of operations, by their part of all time\n{}", self.drawn),
            format!("\noperations, with contexts that differ\n{}", self.report.operations_to_text(self.least_share)),
            self.report.sibling_calls_to_text(),
        ];
        sections.concat()
    }
}
