//! Settings: one number of a model, named in text, given another value. This is how the numbers of an extracted model
//! become parameters to be fitted, and how a parameter gets a value.
//!
//! | text | sets |
//! |---|---|
//! | `NAME` or `$NAME` | the value of the parameter `$NAME`, which the model uses or defines |
//! | `demand(E)`, `demand(E,k)` | host demand of phase k of entry E; phase 1 without k |
//! | `demand(T.A)` | host demand of activity A of task T |
//! | `think_time(T)` | think time of customers T |
//! | `multiplicity(T)` | threads of task T or servers of processor T; `task:T` and `processor:T` tell them apart |
//! | `speed_factor(P)` | speed of processor P |
//! | `calls(E->F)`, `calls(E->F,k)` | mean number of calls from phase k of entry E to entry F; phase 1 without k |

use super::{Activity, Model, Number, Parameter, ParameterValue, number::is_name};

/// A setting that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{setting}\": {reason}")]
pub struct SettingError {
    /// The text that names the number.
    pub setting: String,
    /// What is wrong, or what was expected.
    pub reason: String,
}

const FORMS: &str = "expected a parameter's name, demand(ENTRY), demand(ENTRY,PHASE), demand(TASK.ACTIVITY), think_time(TASK), \
                     multiplicity(NAME), speed_factor(PROCESSOR) or calls(FROM->TO)";

impl Model {
    /// Gives the number named by `setting` the value `value`.
    ///
    /// # Errors
    /// [`SettingError`] when the text names no number of the model, or a parameter is set to another parameter.
    pub fn set(&mut self, setting: &str, value: Number) -> Result<(), SettingError> {
        let number = match setting.trim().split_once('(') {
            None => return self.set_parameter(setting, &value).map_err(|reason| error(setting, reason)),
            Some((kind, rest)) => match rest.strip_suffix(')') {
                Some(argument) => self.number(kind.trim(), argument.trim()),
                None => Err("the closing parenthesis is missing".into()),
            },
        };
        *number.map_err(|reason| error(setting, reason))? = value;
        Ok(())
    }

    fn set_parameter(&mut self, setting: &str, value: &Number) -> Result<(), String> {
        let name = setting.trim().trim_start_matches('$');
        if !is_name(name) {
            return Err(FORMS.into());
        }
        let value = ParameterValue::Number(value.literal().ok_or("a parameter's value is a number, not another parameter")?);
        if let Some(definition) = self.parameters.iter_mut().find(|p| p.name == name) {
            definition.value = value;
        } else if self.free_parameters().iter().any(|used| used == name) {
            // Before the definitions that may use it.
            self.parameters.insert(0, Parameter { name: name.to_owned(), value });
        } else {
            return Err("the model has no such parameter".into());
        }
        Ok(())
    }

    fn number(&mut self, kind: &str, argument: &str) -> Result<&mut Number, String> {
        match kind {
            "demand" => self.demand(argument),
            "think_time" => {
                let task = self.tasks.iter_mut().find(|t| t.name == argument).ok_or_else(|| missing("task", argument))?;
                Ok(&mut task.think_time)
            }
            "multiplicity" => self.multiplicity(argument),
            "speed_factor" => {
                let processor = self.processors.iter_mut().find(|p| p.name == argument);
                Ok(&mut processor.ok_or_else(|| missing("processor", argument))?.speed_factor)
            }
            "calls" => self.calls(argument),
            _ => Err(FORMS.into()),
        }
    }

    fn demand(&mut self, argument: &str) -> Result<&mut Number, String> {
        let (name, phase) = name_and_phase(argument)?;
        if self.entry(name).is_none()
            && let Some((task, activity)) = argument.split_once('.')
        {
            let task = self.tasks.iter_mut().find(|t| t.name == task).ok_or_else(|| missing("task", task))?;
            let activity = task.activities.iter_mut().find(|a| a.name == activity).ok_or_else(|| missing("activity", activity))?;
            return Ok(&mut activity.host_demand);
        }
        Ok(&mut self.phase_mut(name, phase)?.host_demand)
    }

    fn multiplicity(&mut self, argument: &str) -> Result<&mut Number, String> {
        let (kind, name) = argument.split_once(':').unwrap_or(("", argument));
        if kind != "processor"
            && let Some(task) = self.tasks.iter_mut().find(|t| t.name == name)
        {
            return Ok(&mut task.multiplicity);
        }
        let processor = self.processors.iter_mut().find(|p| kind != "task" && p.name == name);
        processor.map(|p| &mut p.multiplicity).ok_or_else(|| missing("task or processor", argument))
    }

    fn calls(&mut self, argument: &str) -> Result<&mut Number, String> {
        let (pair, phase) = name_and_phase(argument)?;
        let (from, to) = pair.split_once("->").ok_or("expected calls(FROM->TO)")?;
        let (from, to) = (from.trim(), to.trim());
        let call = self.phase_mut(from, phase)?.calls.iter_mut().find(|c| c.dest == to);
        call.map(|c| &mut c.mean).ok_or_else(|| format!("phase {phase} of entry \"{from}\" does not call \"{to}\""))
    }

    fn phase_mut(&mut self, entry: &str, phase: u8) -> Result<&mut Activity, String> {
        let mut entries = self.tasks.iter_mut().flat_map(|t| &mut t.entries);
        let entry = entries.find(|e| e.name == entry).ok_or_else(|| missing("entry", entry))?;
        if let Some(start) = &entry.start_activity {
            return Err(format!("entry \"{}\" has no phases: its work is the activity graph that starts with \"{start}\"", entry.name));
        }
        let name = &entry.name;
        let found = entry.phases.iter_mut().find(|p| p.phase == phase);
        found.map(|p| &mut p.activity).ok_or_else(|| format!("entry \"{name}\" has no phase {phase}"))
    }
}

fn error(setting: &str, reason: String) -> SettingError {
    SettingError { setting: setting.to_owned(), reason }
}

fn missing(what: &str, name: &str) -> String {
    format!("the model has no {what} \"{name}\"")
}

/// `NAME` or `NAME,PHASE`.
fn name_and_phase(argument: &str) -> Result<(&str, u8), String> {
    match argument.rsplit_once(',') {
        None => Ok((argument, 1)),
        Some((name, phase)) => match phase.trim() {
            "1" => Ok((name.trim(), 1)),
            "2" => Ok((name.trim(), 2)),
            "3" => Ok((name.trim(), 3)),
            _ => Err("a phase is 1, 2 or 3".into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Call, CallKind, Entry, Phase, Processor, Task};

    fn model() -> Model {
        let mut web = Task::new("Web", "CPU");
        let mut get = Entry::new("get");
        let mut work = Activity::new("get_ph1", 0.1);
        work.calls.push(Call { kind: CallKind::Sync, dest: "read".into(), mean: Number::Value(1.0) });
        get.phases.push(Phase { phase: 1, activity: work });
        web.entries.push(get);
        web.activities.push(Activity::new("log", 0.2));
        web.think_time = Number::Parameter("z".into());
        let mut graph = Entry::new("graph");
        graph.start_activity = Some("log".into());
        web.entries.push(graph);
        Model { processors: vec![Processor::new("CPU")], tasks: vec![web], ..Model::default() }
    }

    fn check(setting: &str, read: impl Fn(&Model) -> Number) {
        let mut model = model();
        let value = Number::Parameter("x".into());
        model.set(setting, value.clone()).expect(setting);
        assert_eq!(read(&model), value, "{setting}");
    }

    fn refused(setting: &str, value: Number, reason: &str) {
        let error = model().set(setting, value).expect_err(setting);
        assert!(error.to_string().contains(reason), "{error}");
    }

    #[test]
    fn numbers_are_set() {
        check("demand(get)", |m| m.tasks[0].entries[0].phases[0].activity.host_demand.clone());
        check("demand(get,1)", |m| m.tasks[0].entries[0].phases[0].activity.host_demand.clone());
        check("demand(Web.log)", |m| m.tasks[0].activities[0].host_demand.clone());
        check("think_time(Web)", |m| m.tasks[0].think_time.clone());
        check("multiplicity(Web)", |m| m.tasks[0].multiplicity.clone());
        check("multiplicity(processor:CPU)", |m| m.processors[0].multiplicity.clone());
        check("multiplicity(CPU)", |m| m.processors[0].multiplicity.clone());
        check("speed_factor(CPU)", |m| m.processors[0].speed_factor.clone());
        check("calls(get -> read)", |m| m.tasks[0].entries[0].phases[0].activity.calls[0].mean.clone());
    }

    #[test]
    fn a_parameter_gets_a_value_and_then_another() {
        let mut model = model();
        model.set("$z", Number::Value(5.0)).unwrap();
        model.set("z", Number::Value(7.0)).unwrap();
        assert_eq!(model.parameters, [Parameter { name: "z".into(), value: ParameterValue::Number(7.0) }]);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let one = || Number::Value(1.0);
        refused("y", one(), "no such parameter");
        refused("z", Number::Parameter("y".into()), "a number, not another parameter");
        refused("", one(), "expected a parameter's name");
        refused("speed(CPU)", one(), "expected a parameter's name");
        refused("demand(get", one(), "closing parenthesis");
        refused("demand(put)", one(), "no entry \"put\"");
        refused("demand(get,2)", one(), "no phase 2");
        refused("demand(get,4)", one(), "1, 2 or 3");
        refused("demand(graph)", one(), "activity graph that starts with \"log\"");
        refused("demand(Web.run)", one(), "no activity \"run\"");
        refused("demand(Db.run)", one(), "no task \"Db\"");
        refused("think_time(Db)", one(), "no task \"Db\"");
        refused("multiplicity(task:CPU)", one(), "no task or processor");
        refused("speed_factor(Web)", one(), "no processor \"Web\"");
        refused("calls(get)", one(), "expected calls(FROM->TO)");
        refused("calls(get->write)", one(), "does not call \"write\"");
    }
}
