//! Where the elements of a model stand in the file that it was read from, for what is said of them afterwards.

use std::collections::HashMap;

use super::{Defect, DefectKind};

/// An element that a file declares, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Declared {
    /// A processor.
    Processor(String),
    /// A group of a processor.
    Group(String),
    /// A task.
    Task(String),
    /// An entry.
    Entry(String),
    /// A phase of an entry.
    Phase(String, u8),
    /// An activity of a task's graph.
    Activity {
        /// Its task.
        task: String,
        /// Its own name.
        activity: String,
    },
}

/// Offsets in bytes at which elements are declared, in the order of the file; of several with one name all.
///
/// JSON is read without: its elements have no places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(HashMap<Declared, Vec<usize>>);

impl Places {
    pub(super) fn add(&mut self, declared: Declared, offset: usize) {
        self.0.entry(declared).or_default().push(offset);
    }

    /// Adds what has no place yet.
    pub(super) fn add_first(&mut self, declared: Declared, offset: usize) {
        self.0.entry(declared).or_insert_with(|| vec![offset]);
    }

    /// Line and column, from 1, of the element of each of `defects` in the `text` that these are of: of two with one name the second, of
    /// a phase that has no place of its own that of its entry; none where the file does not tell. The text is gone through once.
    pub fn of(&self, defects: &[Defect], text: &str) -> Vec<Option<(usize, usize)>> {
        let mut found = vec![None; defects.len()];
        let offsets = defects.iter().enumerate().filter_map(|(i, defect)| Some((self.offset(defect)?, i)));
        let mut offsets: Vec<(usize, usize)> = offsets.collect();
        offsets.sort_unstable();
        let (mut passed, mut line, mut column) = (0, 1, 1);
        for (offset, i) in offsets {
            let between = text.get(passed..offset).unwrap_or_default();
            if let Some(last) = between.rfind('\n') {
                line += between.bytes().filter(|b| *b == b'\n').count();
                column = 1 + between.get(last + 1..).unwrap_or_default().chars().count();
            } else {
                column += between.chars().count();
            }
            passed = offset;
            if let Some(found) = found.get_mut(i) {
                *found = Some((line, column));
            }
        }
        found
    }

    fn offset(&self, defect: &Defect) -> Option<usize> {
        let declared = defect.declared.as_ref()?;
        let entry = if let Declared::Phase(entry, _) = declared { Some(Declared::Entry(entry.clone())) } else { None };
        let offsets = self.0.get(declared).or_else(|| self.0.get(&entry?))?;
        let is_second = matches!(defect.kind, DefectKind::DuplicateName { .. });
        offsets.get(usize::from(is_second)).or_else(|| offsets.first()).copied()
    }
}
