//! Executions as trees: what every kind of trace is turned into before it is profiled.
//!
//! An execution is (operation, start, end); its parent is the execution that called it. A [`CallTree`] holds those of one
//! recording in an order in which every parent comes before its children, so that no depth of nesting needs recursion.
//! Asynchronous calls and executions without a parent each start a trace of their own (Rohr et al., Section 6.2).
//!
//! | made from | by |
//! |---|---|
//! | parents known while building | [`CallTree::push`] |
//! | records with a depth, in order of entry (Kieker's `eoi`, `ess`; call paths) | [`CallTree::from_depths`] |
//! | records with own and parent's number, in any order (spans) | [`CallTree::from_links`] |
//! | entry and exit events of one thread | [`CallStack`] |
//! | interactions | [`super::call_trees`] |

use std::collections::HashMap;

use crate::trace::{Time, diagnostics::Diagnostics, names::Names};

/// How an execution was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallForm {
    /// The caller waited for it.
    #[default]
    Sync,
    /// The caller did not: it starts a trace of its own.
    Async,
}

/// One execution of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Number of its operation ([`CallTree::operation`]).
    pub operation: u32,
    /// Its caller (index into [`CallTree::executions`], below its own).
    pub parent: Option<usize>,
    /// How it was called.
    pub form: CallForm,
    /// Start and end, ticks; `None` where they are not known: then it is part of the tree's shape, but not observed.
    pub times: Option<[Time; 2]>,
}

/// The executions of one recording, parents before children.
#[derive(Clone, Debug)]
pub struct CallTree {
    operations: Names,
    executions: Vec<Execution>,
    weight: f64,
}

/// An execution that cannot be put into a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallTreeError {
    /// Its parent was not put in before.
    #[error("execution {index} names execution {parent} as its parent, expected one before it")]
    UnknownParent {
        /// Its own index.
        index: usize,
        /// The parent's.
        parent: usize,
    },
    /// It ends an operation that did not begin.
    #[error("an exit at {time}, expected one after each entry only")]
    ExitWithoutEntry {
        /// When.
        time: Time,
    },
}

/// An execution by its depth, in order of entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtDepth<'a> {
    /// Executions on the stack below it: 0 for a root.
    pub depth: usize,
    /// Its operation.
    pub operation: &'a str,
    /// Start and end, ticks.
    pub times: Option<[Time; 2]>,
}

/// An execution by its own number and its parent's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linked<'a> {
    /// Its own number, unique in the recording.
    pub id: u64,
    /// Its parent's.
    pub parent: Option<u64>,
    /// Its operation.
    pub operation: &'a str,
    /// How it was called.
    pub form: CallForm,
    /// Start and end, ticks.
    pub times: Option<[Time; 2]>,
}

impl Default for CallTree {
    fn default() -> Self {
        Self { operations: Names::default(), executions: Vec::new(), weight: 1.0 }
    }
}

impl CallTree {
    /// An empty tree that stands for `weight` recordings (> 0; anything else counts as 1).
    pub fn with_weight(weight: f64) -> Self {
        Self { weight: if weight.is_finite() && weight > 0.0 { weight } else { 1.0 }, ..Self::default() }
    }

    /// How many recordings it stands for.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The executions, parents before children.
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// Names of the operations.
    pub fn operations(&self) -> &Names {
        &self.operations
    }

    /// The name of the operation of execution `index`.
    pub fn operation(&self, index: usize) -> &str {
        self.executions.get(index).map_or("", |e| self.operations.name(e.operation))
    }

    /// Appends an execution and returns its index.
    ///
    /// # Errors
    /// [`CallTreeError::UnknownParent`].
    pub fn push(
        &mut self,
        parent: Option<usize>,
        operation: &str,
        form: CallForm,
        times: Option<[Time; 2]>,
    ) -> Result<usize, CallTreeError> {
        let index = self.executions.len();
        if let Some(parent) = parent.filter(|parent| *parent >= index) {
            return Err(CallTreeError::UnknownParent { index, parent });
        }
        let operation = self.operations.intern(operation);
        self.executions.push(Execution { operation, parent, form, times });
        Ok(index)
    }

    /// A tree from executions in order of entry with their depths. A depth with no execution one above it is counted as
    /// `depth_gap`, and its execution is a child of the deepest there is.
    pub fn from_depths<'a>(rows: impl IntoIterator<Item = AtDepth<'a>>, diagnostics: &mut Diagnostics) -> Self {
        let mut tree = Self::default();
        let mut open: Vec<usize> = Vec::new();
        for row in rows {
            if row.depth > open.len() {
                let message = "executions are nested by more than one level at once: what is between was not recorded";
                diagnostics.add("depth_gap", message, || format!("{} at depth {}", row.operation, row.depth));
            }
            open.truncate(row.depth);
            if let Ok(index) = tree.push(open.last().copied(), row.operation, CallForm::Sync, row.times) {
                open.push(index);
            }
        }
        tree
    }

    /// A tree from executions in any order that name their parents. One whose parent is not there is a root
    /// (`missing_parent`); repeated numbers (`repeated_id`) and executions in a circle of parents (`parent_circle`) are
    /// left out.
    pub fn from_links<'a>(rows: &[Linked<'a>], diagnostics: &mut Diagnostics) -> Self {
        let mut row_of: HashMap<u64, usize> = HashMap::with_capacity(rows.len());
        let mut kept = vec![true; rows.len()];
        for (index, row) in rows.iter().enumerate() {
            if *row_of.entry(row.id).or_insert(index) != index {
                kept[index] = false;
                diagnostics.add("repeated_id", "several executions have one number: the first is kept", || row.id.to_string());
            }
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
        let mut roots = Vec::new();
        for (index, row) in rows.iter().enumerate().filter(|(index, _)| kept[*index]) {
            match row.parent.map(|parent| (parent, row_of.get(&parent))) {
                None => roots.push(index),
                Some((_, Some(parent))) => children[*parent].push(index),
                Some((parent, None)) => {
                    let message = "executions whose parent is not in the recording: each starts a trace of its own";
                    diagnostics.add("missing_parent", message, || format!("{} (parent {parent})", row.operation));
                    roots.push(index);
                }
            }
        }
        let start = |row: &usize| rows[*row].times.map(|[start, _]| start);
        roots.sort_by_key(start);
        children.iter_mut().for_each(|children| children.sort_by_key(start));
        let mut tree = Self::default();
        let mut next: Vec<(usize, Option<usize>)> = roots.into_iter().rev().map(|root| (root, None)).collect();
        while let Some((index, parent)) = next.pop() {
            kept[index] = false;
            let row = &rows[index];
            if let Ok(at) = tree.push(parent, row.operation, row.form, row.times) {
                next.extend(children[index].iter().rev().map(|child| (*child, Some(at))));
            }
        }
        for row in rows.iter().zip(kept).filter(|(_, kept)| *kept).map(|(row, _)| row) {
            diagnostics.add("parent_circle", "executions that are their own ancestors were left out", || row.operation.to_owned());
        }
        tree
    }
}

/// A tree in the making from the entry and exit events of one thread.
#[derive(Clone, Debug, Default)]
pub struct CallStack {
    tree: CallTree,
    open: Vec<(usize, Time)>,
}

impl CallStack {
    /// An operation begins.
    pub fn enter(&mut self, operation: &str, time: Time) {
        let parent = self.open.last().map(|(index, _)| *index);
        if let Ok(index) = self.tree.push(parent, operation, CallForm::Sync, None) {
            self.open.push((index, time));
        }
    }

    /// The operation that began last and has not ended ends.
    ///
    /// # Errors
    /// [`CallTreeError::ExitWithoutEntry`].
    pub fn exit(&mut self, time: Time) -> Result<(), CallTreeError> {
        let (index, start) = self.open.pop().ok_or(CallTreeError::ExitWithoutEntry { time })?;
        self.tree.executions[index].times = Some([start, time]);
        Ok(())
    }

    /// Whether every operation that began has ended.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// The tree; executions that have not ended are without times.
    pub fn finish(self) -> CallTree {
        self.tree
    }
}
