//! Who acts in a trace.

use super::names::Names;

/// Sequential units: processes, or their threads where the log tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Names: `Server`, or `Server@7` for thread 7.
    pub names: Names,
    /// Names of the processes.
    pub processes: Names,
    /// The process of each unit, shape `(n_units,)`.
    pub process_of: Vec<u32>,
}

impl Units {
    /// The unit of a thread of a process; of the process itself when `thread` is empty.
    pub fn intern(&mut self, process: &str, thread: &str) -> u32 {
        let unit = if thread.is_empty() { self.names.intern(process) } else { self.names.intern(&format!("{process}@{thread}")) };
        if unit as usize == self.process_of.len() {
            let process = self.processes.intern(process);
            self.process_of.push(process);
        }
        unit
    }
}
