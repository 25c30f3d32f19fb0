//! Processors and their groups.

use super::{Compiler, FAIR_QUANTUM, NEGLIGIBLE_QUANTUM, index, task_element};
use crate::{
    model::{self, ProcessorScheduling},
    solve::{
        SolveError,
        bind::{Count, unusable},
        simulate::network::{Discipline, Group, Processor},
    },
};

impl Compiler<'_> {
    pub(super) fn processor(&mut self, p: usize, processor: &model::Processor) -> Result<(), SolveError> {
        let element = format!("processor \"{}\"", processor.name);
        let servers = self.binder.count(&processor.multiplicity, &element, "multiplicity")?;
        let quantum = self.binder.amount(&processor.quantum, &element, "quantum")?;
        let (sum, number) = self.slices[p];
        let mean_slice = if number > 0.0 { sum / number } else { 1.0 };
        let discipline = match processor.scheduling {
            _ if servers == Count::Infinite => Discipline::Infinite,
            ProcessorScheduling::Inf => Discipline::Infinite,
            ProcessorScheduling::Fcfs => Discipline::Fifo,
            ProcessorScheduling::Hol => Discipline::HeadOfLine,
            ProcessorScheduling::Pri => Discipline::Preemptive,
            ProcessorScheduling::Rand => Discipline::Random,
            ProcessorScheduling::Lcfs => Discipline::Lifo,
            ProcessorScheduling::Ps | ProcessorScheduling::Rr if quantum == 0.0 => Discipline::Sharing,
            ProcessorScheduling::Ps | ProcessorScheduling::Rr if quantum < NEGLIGIBLE_QUANTUM * mean_slice => {
                let part = quantum / mean_slice;
                self.network
                    .notes
                    .push(format!("{element}: its quantum is {part:.1e} of a mean slice and is taken in the limit, as true sharing"));
                Discipline::Sharing
            }
            ProcessorScheduling::Ps | ProcessorScheduling::Rr => Discipline::RoundRobin(quantum),
            ProcessorScheduling::Cfs => self.fair(processor, &element, if quantum == 0.0 { FAIR_QUANTUM * mean_slice } else { quantum })?,
        };
        for _ in 0..self.processor_copies[p] {
            let discipline = discipline.clone();
            self.network.processors.push(Processor { origin: index(p), servers, discipline });
        }
        Ok(())
    }

    pub(super) fn fair(&self, processor: &model::Processor, element: &str, quantum: f64) -> Result<Discipline, SolveError> {
        let copies = self.processor_copies.get(self.network.origins.processors.iter().position(|p| p.0 == processor.name).unwrap_or(0));
        let mut groups = Vec::new();
        for group in &processor.groups {
            let share = self.binder.positive(&group.share, &format!("group \"{}\"", group.name), "share")?;
            let member = |t: &&(usize, &model::Task)| t.1.processor == processor.name && t.1.group.as_ref() == Some(&group.name);
            let tasks: Vec<_> = self.model.tasks.iter().enumerate().collect();
            let n_tasks: u32 = tasks.iter().filter(member).map(|(t, _)| self.placements[*t].copies / copies.copied().unwrap_or(1)).sum();
            groups.push(Group { share, cap: group.cap, n_tasks: n_tasks as usize });
        }
        let sum: f64 = groups.iter().map(|g| g.share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(unusable(element, format!("the shares of its groups sum to {sum}, expected at most 1")));
        }
        Ok(Discipline::Fair { quantum, groups })
    }

    /// Group on processor `p` and number in the group.
    pub(super) fn group(&self, p: usize, t: usize, task: &model::Task) -> Result<(u32, u32), SolveError> {
        let processor = &self.model.processors[p];
        if processor.scheduling != ProcessorScheduling::Cfs {
            return Ok((0, 0));
        }
        let group = task.group.as_ref().and_then(|name| processor.groups.iter().position(|g| &g.name == name));
        let group = group.ok_or_else(|| unusable(task_element(task), format!("it needs a group of processor \"{}\"", processor.name)))?;
        let copies_of = |t: usize| self.placements[t].copies / self.processor_copies[p];
        let before: u32 = (0..t).filter(|&other| self.shares_group(other, task)).map(copies_of).sum();
        let here = index(self.network.tasks.len()) - self.placements[t].first_task;
        Ok((index(group), before + here % copies_of(t)))
    }

    pub(super) fn shares_group(&self, other: usize, task: &model::Task) -> bool {
        let other = &self.model.tasks[other];
        other.processor == task.processor && other.group == task.group
    }
}
