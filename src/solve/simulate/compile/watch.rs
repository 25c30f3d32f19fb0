//! Histograms and limits that the model asks for.

use super::Compiler;
use crate::{
    model::{HistogramRequest, Observed},
    solve::{
        SolveError,
        bind::unusable,
        simulate::network::{OriginJoin, Watch, Watched},
    },
};

/// Most bins of a histogram.
const BINS_LIMIT: u32 = 100_000;

impl Compiler<'_> {
    /// Collects what is asked for on phases, on activities and elsewhere.
    pub(super) fn watches(&mut self) -> Result<(), SolveError> {
        let model = self.model;
        let mut entry_origin = 0;
        let mut activity_origin = 0;
        for task in &model.tasks {
            for entry in &task.entries {
                for phase in &entry.phases {
                    let of = Watched::Phase { entry: entry_origin, phase: phase.phase };
                    self.watch_activity(of, &phase.activity)?;
                }
                entry_origin += 1;
            }
            for activity in &task.activities {
                self.watch_activity(Watched::Activity { activity: activity_origin }, activity)?;
                activity_origin += 1;
            }
        }
        for histogram in &model.histograms {
            match self.watched(&histogram.of) {
                Some(of) => self.watch_histogram(of, &histogram.request)?,
                None => self.network.notes.push("a histogram is asked for of what is not measured".into()),
            }
        }
        Ok(())
    }

    fn watch_activity(&mut self, of: Watched, activity: &crate::model::Activity) -> Result<(), SolveError> {
        let limit = self.binder.amount(&activity.max_service_time, &format!("activity \"{}\"", activity.name), "max-service-time")?;
        if limit > 0.0 {
            self.network.origins.watches.push(Watch { of, begin: limit, end: limit, bins: 0 });
        }
        activity.histogram.iter().try_for_each(|request| self.watch_histogram(of, request))
    }

    fn watch_histogram(&mut self, of: Watched, request: &HistogramRequest) -> Result<(), SolveError> {
        let HistogramRequest { min, max, bins } = *request;
        if !(min.is_finite() && max.is_finite() && min < max) || bins == 0 || bins > BINS_LIMIT {
            let reason = format!("it has {bins} bins from {min} to {max}, expected 1 to {BINS_LIMIT} bins between ascending ends");
            return Err(unusable("a histogram", reason));
        }
        self.network.origins.watches.push(Watch { of, begin: min, end: max, bins });
        Ok(())
    }

    fn watched(&self, of: &Observed) -> Option<Watched> {
        let origins = &self.network.origins;
        match of {
            Observed::Phase { entry, phase } if (1..=3).contains(phase) => {
                let entry = origins.entries.iter().position(|e| e.name == *entry)?;
                Some(Watched::Phase { entry, phase: *phase })
            }
            Observed::Activity { task, activity } => {
                let found = origins.activities.iter().position(|a| origins.tasks[a.task].name == *task && a.name == *activity)?;
                Some(Watched::Activity { activity: found })
            }
            Observed::Task(task) => origins.tasks.iter().position(|t| t.name == *task).map(|task| Watched::Holding { task }),
            Observed::Join { task, activity } => {
                let is_it = |j: &OriginJoin| j.is_timed && origins.tasks[j.task].name == *task && j.activities.first() == Some(activity);
                origins.joins.iter().position(is_it).map(|join| Watched::Join { join })
            }
            _ => None,
        }
    }
}
