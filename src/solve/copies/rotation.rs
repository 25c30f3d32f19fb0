//! Turns that leave a replicated model as it is.
//!
//! Copy `s` of a caller calls the copies `s O .. s O + O - 1 (mod R)` of a called task. When the caller's copies are shifted by `k`, these
//! shift by `k O`: the wiring stays the same where the shifts `σ` of all tasks obey
//!
//! ```text
//! σ_d ≡ σ_t O_td  (mod R_d)     for every task t that calls d
//! σ_t = h_t σ_p                 for every task t on processor p of several copies, h_t = R_t / R_p on each
//! ```

use super::Copies;

impl Copies {
    /// The shift of every task under the shortest turn that moves copies of a reference task; none where there is none.
    pub(in crate::solve) fn rotation(&self) -> Option<Vec<u32>> {
        let references = (0..self.tasks.len()).filter(|&t| self.single.tasks[t].scheduling.is_reference());
        let leader = references.max_by_key(|&t| self.tasks[t])?;
        (1..self.tasks[leader]).find_map(|shift| self.shifts(leader, shift))
    }

    /// The shifts that follow from that of one task.
    fn shifts(&self, leader: usize, shift: u32) -> Option<Vec<u32>> {
        let mut shifts: Vec<Option<u32>> = self.tasks.iter().map(|&copies| (copies == 1).then_some(0)).collect();
        shifts[leader] = Some(shift);
        loop {
            self.follow(&mut shifts)?;
            let Some(open) = shifts.iter().position(Option::is_none) else { break };
            let fits = |&shift: &u32| self.calls_of(open).all(|(d, out)| shifts[d].is_none_or(|known| self.image(shift, out, d) == known));
            shifts[open] = Some((0..self.tasks[open]).find(fits)?);
        }
        let shifts: Vec<u32> = shifts.into_iter().flatten().collect();
        self.turns_processors(&shifts).then_some(shifts)
    }

    /// Called tasks of `caller`, with its fan-out to them.
    fn calls_of(&self, caller: usize) -> impl Iterator<Item = (usize, u32)> {
        self.fans.iter().filter(move |((t, _), _)| *t == caller).map(|(&(_, d), &out)| (d, out))
    }

    /// The shift of task `called` that a shift of its caller makes.
    fn image(&self, shift: u32, fan_out: u32, called: usize) -> u32 {
        let copies = u64::from(self.tasks[called]);
        u32::try_from(u64::from(shift) * u64::from(fan_out) % copies).unwrap_or(0)
    }

    /// Sets the shifts of all that known ones lead to; none where they contradict each other.
    fn follow(&self, shifts: &mut [Option<u32>]) -> Option<()> {
        let mut is_new = true;
        while is_new {
            is_new = false;
            for (&(t, d), &out) in &self.fans {
                let Some(shift) = shifts[t] else { continue };
                let image = self.image(shift, out, d);
                match shifts[d] {
                    Some(known) if known != image => return None,
                    Some(_) => {}
                    None => {
                        shifts[d] = Some(image);
                        is_new = true;
                    }
                }
            }
        }
        Some(())
    }

    /// Whether the shifts take processors to processors.
    fn turns_processors(&self, shifts: &[u32]) -> bool {
        let several = self.single.processors.iter().zip(&self.processors).filter(|(_, copies)| **copies > 1);
        several.into_iter().all(|(processor, &copies)| {
            let of_task = |t: usize| {
                let each = self.tasks[t] / copies;
                shifts[t].is_multiple_of(each).then_some(shifts[t] / each)
            };
            let mut turns = (0..self.tasks.len()).filter(|&t| self.single.tasks[t].processor == processor.name).map(of_task);
            let first = turns.next().unwrap_or(Some(0));
            first.is_some() && turns.all(|turn| turn == first)
        })
    }
}
