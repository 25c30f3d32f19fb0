//! The sections before the entries, and what all sections share: names, numbers, observations.

use std::collections::{HashMap, HashSet};

use super::{activities::read_activities, entries::read_entries};
use crate::model::{
    Declared, Entry, Expression, Fan, Group, HalfWidth, Model, Number, Observation, Observed, Opaque, Parameter, ParameterValue, Places,
    Pragma, Processor, ProcessorScheduling, Task, TaskScheduling,
    lexer::{Cursor, SyntaxError, Token, shortened, value_of},
    spex::{Collection, read_collection, read_parameters},
};

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

/// The model read so far, and where its elements are.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) model: Model,
    /// Processors by name.
    processors: HashMap<&'a str, usize>,
    /// Activities by task and name.
    pub(super) activities: HashMap<(usize, &'a str), usize>,
    /// Tasks by name.
    pub(super) tasks: HashMap<&'a str, usize>,
    /// Entries by name: task, then entry in it.
    pub(super) entries: HashMap<&'a str, (usize, usize)>,
    /// Observations of entries whose phase is known only when all phases are.
    pub(super) phased: Vec<PhasedObservation>,
    /// Where elements are declared.
    pub(super) places: Places,
    /// Entries where tasks list them.
    listed: Vec<(&'a str, usize)>,
    /// Lines of which there may be one: letter, task of an activity, name of the entry or activity.
    lines: HashSet<(&'a str, Option<usize>, &'a str)>,
    expression_prefix: String,
    n_expressions: usize,
}

/// An observation of an entry, of one phase if the key had a digit.
pub(super) struct PhasedObservation {
    pub(super) entry: String,
    pub(super) phase: u8,
    pub(super) observation: Observation,
}

/// An observation as it is written.
pub(super) struct Observing<'a> {
    /// The key without its phase.
    pub(super) key: &'a str,
    /// The phase, 0 for none.
    pub(super) phase: u8,
    pub(super) variable: String,
    pub(super) half_width: Option<HalfWidth>,
}

/// Reads a whole file.
pub(super) fn read_model(text: &str) -> Result<(Model, Places)> {
    let mut prefix = "_".to_owned();
    while text.contains(&format!("${prefix}")) {
        prefix.push('x');
    }
    let mut reader = Reader {
        cursor: Cursor::new(text),
        model: Model::default(),
        processors: HashMap::new(),
        activities: HashMap::new(),
        tasks: HashMap::new(),
        entries: HashMap::new(),
        phased: Vec::new(),
        places: Places::default(),
        listed: Vec::new(),
        lines: HashSet::new(),
        expression_prefix: prefix,
        n_expressions: 0,
    };
    read_parameters(&mut reader.cursor, &mut reader.model.parameters)?;
    reader.cursor.open_list();
    reader.read_sections()?;
    let pragmas = reader.cursor.pragmas().iter().map(|line| {
        let (param, value) = line.split_once('=').unwrap_or((line, ""));
        Pragma { param: param.trim().to_owned(), value: value.trim().to_owned() }
    });
    reader.model.solver_params.pragmas = pragmas.collect();
    Ok((reader.model.in_file_order(), reader.places))
}

impl<'a> Reader<'a> {
    fn read_sections(&mut self) -> Result<()> {
        if self.accept_name("G")? {
            self.read_general()?;
        }
        self.expect_name("P", "the processors' section \"P\"")?;
        self.read_list(Self::read_processor)?;
        if self.accept_name("U")? {
            self.read_list(Self::read_group)?;
        }
        self.expect_name("T", "the tasks' section \"T\"")?;
        self.read_tasks()?;
        self.expect_name("E", "the entries' section \"E\"")?;
        self.read_list(read_entries)?;
        self.finish_entries();
        for (entry, start) in std::mem::take(&mut self.listed) {
            self.places.add_first(Declared::Entry(entry.to_owned()), start);
        }
        while self.accept_name("A")? {
            read_activities(self)?;
        }
        for (letter, kind, element) in
            [("R", Collection::Results, "results-collection"), ("C", Collection::Convergence, "convergence-collection")]
        {
            if self.accept_name(letter)? {
                self.skip_count()?;
                let items = read_collection(&mut self.cursor, kind)?;
                self.expect_end_of_list("an expression or \"-1\"")?;
                self.model.opaque.push(Opaque { element: element.into(), text: items.join("\n") });
            }
        }
        self.cursor.expect_end("a section \"A\", \"R\" or \"C\", or the end")
    }

    /// `"comment" [convergence iterations [print] [relaxation]] -1`, then observations.
    fn read_general(&mut self) -> Result<()> {
        let Token::Text(comment) = self.cursor.peek()?.token else {
            return Err(self.cursor.unexpected("a comment in quotes"));
        };
        self.cursor.next()?;
        self.model.name = comment.replace('\\', "");
        self.model.solver_params.comment.clone_from(&self.model.name);
        let mut numbers = Vec::new();
        while !self.at_end_of_list()? {
            numbers.push(self.number()?);
        }
        let params = &mut self.model.solver_params;
        let mut numbers = numbers.into_iter();
        params.conv_val = numbers.next();
        params.it_limit = numbers.next();
        let (third, fourth) = (numbers.next(), numbers.next());
        // With one number after the iterations, a relaxation below 1 is told from a print interval.
        match (third, fourth) {
            (Some(only), None) if only.literal().is_some_and(|v| v.fract() != 0.0) => params.underrelax_coeff = Some(only),
            (third, fourth) => (params.print_int, params.underrelax_coeff) = (third, fourth),
        }
        if numbers.next().is_some() || (params.conv_val.is_some() && params.it_limit.is_none()) {
            return Err(self.cursor.error_here("expected convergence, iterations, print interval and relaxation, then \"-1\""));
        }
        self.expect_end_of_list("\"-1\"")?;
        self.read_observations(&Observed::Solution)
    }

    /// A count, then items up to `-1`.
    fn read_list(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.skip_count()?;
        while !self.at_end_of_list()? {
            item(self)?;
        }
        self.expect_end_of_list("\"-1\"")
    }

    fn read_processor(&mut self) -> Result<()> {
        self.expect_name("p", "a processor \"p\" or \"-1\"")?;
        let start = self.cursor.peek()?.start;
        let name = self.name("a processor's name")?;
        self.places.add(Declared::Processor(name.to_owned()), start);
        let mut processor = Processor::new(name);
        let (scheduling, has_quantum) = match self.letter()? {
            "f" => (ProcessorScheduling::Fcfs, false),
            "i" => (ProcessorScheduling::Inf, false),
            "r" => (ProcessorScheduling::Rand, false),
            "h" => (ProcessorScheduling::Hol, false),
            "p" => (ProcessorScheduling::Pri, false),
            "c" => (ProcessorScheduling::Cfs, true),
            "s" => (ProcessorScheduling::Ps, true),
            _ => return Err(self.cursor.unexpected("a scheduling: f, i, r, h, p, c or s")),
        };
        self.cursor.next()?;
        processor.scheduling = scheduling;
        if has_quantum {
            processor.quantum = self.number()?;
        }
        loop {
            match self.letter()? {
                "i" => {
                    self.cursor.next()?;
                    processor.multiplicity = Number::Value(f64::INFINITY);
                }
                "m" => processor.multiplicity = self.lettered_number()?,
                "r" => processor.replication = self.lettered_number()?,
                "R" => processor.speed_factor = self.lettered_number()?,
                _ => break,
            }
        }
        self.read_observations(&Observed::Processor(processor.name.clone()))?;
        self.processors.entry(name).or_insert(self.model.processors.len());
        self.model.processors.push(processor);
        Ok(())
    }

    fn read_group(&mut self) -> Result<()> {
        self.expect_name("g", "a group \"g\" or \"-1\"")?;
        let start = self.cursor.peek()?.start;
        let name = self.name("a group's name")?.to_owned();
        self.places.add(Declared::Group(name.clone()), start);
        let share = self.number()?;
        let cap = self.accept_name("c")?;
        let start = self.cursor.peek()?.start;
        let processor = self.name("the group's processor")?;
        self.read_observations(&Observed::Group(name.clone()))?;
        let at = self.processors.get(processor).copied();
        let Some(processor) = at.and_then(|at| self.model.processors.get_mut(at)) else {
            return Err(unknown("processor", processor, start));
        };
        processor.groups.push(Group { name, share, cap });
        Ok(())
    }

    fn read_tasks(&mut self) -> Result<()> {
        let mut fans = Vec::new();
        self.read_list(|reader| match reader.letter()? {
            "t" => reader.read_task(),
            direction @ ("I" | "O") => {
                reader.cursor.next()?;
                let start = reader.cursor.peek()?.start;
                let (from, to) = (reader.name("the calling task")?, reader.name("the called task")?);
                fans.push((direction == "I", from, to, reader.number()?, start));
                Ok(())
            }
            _ => Err(reader.cursor.unexpected("a task \"t\", a fan \"I\" or \"O\", or \"-1\"")),
        })?;
        for (is_fan_in, from, to, value, start) in fans {
            let (owner, other) = if is_fan_in { (to, from) } else { (from, to) };
            if !self.tasks.contains_key(other) {
                return Err(unknown("task", other, start));
            }
            let Some(task) = self.tasks.get(owner).and_then(|i| self.model.tasks.get_mut(*i)) else {
                return Err(unknown("task", owner, start));
            };
            let fan = Fan { task: other.to_owned(), value };
            if is_fan_in { task.fan_in.push(fan) } else { task.fan_out.push(fan) }
        }
        Ok(())
    }

    fn read_task(&mut self) -> Result<()> {
        self.cursor.next()?;
        let start = self.cursor.peek()?.start;
        let name = self.name("a task's name")?;
        self.places.add(Declared::Task(name.to_owned()), start);
        let scheduling = match self.letter()? {
            "r" => TaskScheduling::Ref,
            "b" => TaskScheduling::Burst,
            "u" => TaskScheduling::Uniform,
            "n" | "f" => TaskScheduling::Fcfs,
            "i" => TaskScheduling::Inf,
            "h" => TaskScheduling::Hol,
            "p" => TaskScheduling::Pri,
            "P" => TaskScheduling::Poll,
            "S" => TaskScheduling::Semaphore,
            "W" => TaskScheduling::RwLock,
            _ => return Err(self.cursor.unexpected("a scheduling: r, b, u, n, f, i, h, p, P, S or W")),
        };
        self.cursor.next()?;
        let mut task = Task { scheduling, ..Task::new(name, "") };
        let at = self.model.tasks.len();
        while !self.at_end_of_list()? {
            let start = self.cursor.peek()?.start;
            let entry = self.name("an entry's name or \"-1\"")?;
            self.list_entry(entry, start);
            self.entries.entry(entry).or_insert((at, task.entries.len()));
            task.entries.push(Entry::new(entry));
        }
        if task.entries.is_empty() {
            return Err(self.cursor.unexpected("an entry's name"));
        }
        self.expect_end_of_list("\"-1\"")?;
        let start = self.cursor.peek()?.start;
        let processor = self.name("the task's processor")?;
        if !self.processors.contains_key(processor) {
            return Err(unknown("processor", processor, start));
        }
        processor.clone_into(&mut task.processor);
        self.read_task_options(&mut task)?;
        self.read_observations(&Observed::Task(name.to_owned()))?;
        self.tasks.entry(name).or_insert(at);
        self.model.tasks.push(task);
        Ok(())
    }

    /// A second entry of one name stands where it is listed; the first where it is described.
    fn list_entry(&mut self, entry: &'a str, start: usize) {
        if self.entries.contains_key(entry) {
            let first = self.listed.iter().find(|(name, _)| *name == entry).map_or(start, |(_, first)| *first);
            self.places.add_first(Declared::Entry(entry.to_owned()), first);
            self.places.add(Declared::Entry(entry.to_owned()), start);
        }
        self.listed.push((entry, start));
    }

    fn read_task_options(&mut self, task: &mut Task) -> Result<()> {
        loop {
            match self.cursor.peek()?.token {
                Token::Name("z") => task.think_time = self.lettered_number()?,
                Token::Name("q") => task.queue_length = self.lettered_number()?,
                Token::Name("T") => task.initial_tokens = Some(self.lettered_number()?),
                Token::Name("m") => task.multiplicity = self.lettered_number()?,
                Token::Name("r") => task.replication = self.lettered_number()?,
                Token::Name("i") => {
                    self.cursor.next()?;
                    task.multiplicity = Number::Value(f64::INFINITY);
                }
                Token::Name("g") => {
                    self.cursor.next()?;
                    task.group = Some(self.name("a group's name")?.to_owned());
                }
                Token::Number(_) | Token::Variable(_) | Token::Symbol("{") => task.priority = self.number()?,
                _ => return Ok(()),
            }
        }
    }

    /// Takes a letter, then reads a number.
    fn lettered_number(&mut self) -> Result<Number> {
        self.cursor.next()?;
        self.number()
    }

    /// The next token if it is a name, not taken; empty otherwise.
    pub(super) fn letter(&mut self) -> Result<&'a str> {
        Ok(if let Token::Name(name) = self.cursor.peek()?.token { name } else { "" })
    }

    /// A number, a parameter, or an expression in braces.
    pub(super) fn number(&mut self) -> Result<Number> {
        match self.cursor.peek()?.token {
            Token::Variable(name) => {
                self.cursor.next()?;
                Ok(Number::Parameter(name.to_owned()))
            }
            Token::Symbol("{") => self.braced(),
            _ => self.literal().map(Number::Value),
        }
    }

    fn braced(&mut self) -> Result<Number> {
        self.cursor.next()?;
        let bracket = self.cursor.open_bracket();
        let expression = Expression::read(&mut self.cursor)?;
        self.cursor.close_bracket(bracket);
        self.cursor.expect("}", "an operator or \"}\"")?;
        if let Some(value) = expression.literal() {
            return Ok(Number::Value(value));
        }
        self.n_expressions += 1;
        let name = format!("{}{}", self.expression_prefix, self.n_expressions);
        let value = ParameterValue::Expression(expression.text().to_owned());
        self.model.parameters.push(Parameter { name: name.clone(), value });
        Ok(Number::Parameter(name))
    }

    /// A number where no parameter may stand.
    pub(super) fn literal(&mut self) -> Result<f64> {
        let value = match self.cursor.peek()?.token {
            Token::Number(number) => value_of(number).ok_or_else(|| self.cursor.error_here("the number is too large"))?,
            Token::Infinity => f64::INFINITY,
            _ => return Err(self.cursor.unexpected("a number, a $name or an expression in braces")),
        };
        self.cursor.next()?;
        Ok(value)
    }

    /// A whole number where no parameter may stand.
    pub(super) fn count(&mut self) -> Result<u32> {
        let Token::Number(number) = self.cursor.peek()?.token else {
            return Err(self.cursor.unexpected("a whole number"));
        };
        let count = number.parse().map_err(|_| self.cursor.unexpected("a whole number"))?;
        self.cursor.next()?;
        Ok(count)
    }

    fn skip_count(&mut self) -> Result<()> {
        self.count().map(|_| ())
    }

    /// A name of two characters or more, or of digits.
    pub(super) fn name(&mut self, expected: &str) -> Result<&'a str> {
        match self.cursor.peek()?.token {
            Token::Name(name) if name.len() > 1 => {
                self.cursor.next()?;
                Ok(name)
            }
            Token::Number(name) if name.bytes().all(|b| b.is_ascii_digit()) => {
                self.cursor.next()?;
                Ok(name)
            }
            Token::Name(_) => Err(self.cursor.unexpected(&format!("{expected}, of two characters or more"))),
            _ => Err(self.cursor.unexpected(expected)),
        }
    }

    /// Checks that the line at `start` is the first of its letter of an entry, or of an activity of `task`.
    pub(super) fn once(&mut self, letter: &'a str, task: Option<usize>, name: &'a str, start: usize) -> Result<()> {
        if self.lines.insert((letter, task, name)) {
            return Ok(());
        }
        let kind = if task.is_some() { "activity" } else { "entry" };
        Err(SyntaxError { offset: start, reason: format!("{kind} \"{name}\" has a line \"{letter}\" already") })
    }

    /// The name of a known entry, and where it is.
    pub(super) fn entry(&mut self, expected: &str) -> Result<(&'a str, (usize, usize))> {
        let start = self.cursor.peek()?.start;
        let name = self.name(expected)?;
        self.entries.get(name).map(|at| (name, *at)).ok_or_else(|| unknown("entry", name, start))
    }

    pub(super) fn accept_name(&mut self, name: &str) -> Result<bool> {
        let found = self.letter()? == name;
        if found {
            self.cursor.next()?;
        }
        Ok(found)
    }

    fn expect_name(&mut self, name: &str, expected: &str) -> Result<()> {
        if self.accept_name(name)? { Ok(()) } else { Err(self.cursor.unexpected(expected)) }
    }

    /// Whether a list ends here; the end of the input is an error.
    pub(super) fn at_end_of_list(&mut self) -> Result<bool> {
        match self.cursor.peek()?.token {
            Token::EndOfList => Ok(true),
            Token::End => Err(self.cursor.unexpected("\"-1\" at the end of the list")),
            _ => Ok(false),
        }
    }

    pub(super) fn expect_end_of_list(&mut self, expected: &str) -> Result<()> {
        if self.at_end_of_list()? {
            self.cursor.next()?;
            return Ok(());
        }
        Err(self.cursor.unexpected(expected))
    }

    /// `{%key[phase] [95|99] $v [$half_width]}` of an element whose phases, if any, are part of the measure's name.
    pub(super) fn read_observations(&mut self, of: &Observed) -> Result<()> {
        while let Some(Observing { key, phase, variable, half_width }) = self.observation()? {
            let measure = self.measure(of, key, phase)?;
            self.model.observations.push(Observation { of: of.clone(), measure, variable, half_width });
        }
        Ok(())
    }

    /// One observation, if there is one.
    pub(super) fn observation(&mut self) -> Result<Option<Observing<'a>>> {
        let Token::Key(key) = self.cursor.peek()?.token else {
            return Ok(None);
        };
        self.cursor.next()?;
        let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
        let phase = key.strip_prefix(name).and_then(|digit| digit.parse().ok()).unwrap_or(0);
        let level = match self.cursor.peek()?.token {
            Token::Number("95") => 95,
            Token::Number("99") => 99,
            Token::Variable(_) => 0,
            _ => return Err(self.cursor.unexpected("95, 99 or a $name")),
        };
        if level != 0 {
            self.cursor.next()?;
        }
        let variable = self.variable()?.ok_or_else(|| self.cursor.unexpected("a $name"))?;
        let half_width = self.variable()?.map(|variable| HalfWidth { level: if level == 0 { 95 } else { level }, variable });
        Ok(Some(Observing { key: name, phase, variable, half_width }))
    }

    fn variable(&mut self) -> Result<Option<String>> {
        let Token::Variable(name) = self.cursor.peek()?.token else {
            return Ok(None);
        };
        self.cursor.next()?;
        Ok(Some(name.to_owned()))
    }

    /// The LQNX attribute that a key stands for.
    pub(super) fn measure(&self, of: &Observed, key: &str, phase: u8) -> Result<String> {
        let is_solution = *of == Observed::Solution;
        let plain = match key {
            "i" if is_solution => "iterations",
            "time" if is_solution => "elapsed-time",
            "usr" if is_solution => "user-cpu-time",
            "sys" if is_solution => "system-cpu-time",
            "s" if is_solution => "step",
            "w" if is_solution => "wait",
            _ if is_solution => return Err(self.cursor.error_here(format!("the solution has no result \"%{key}\""))),
            "f" => "throughput",
            "fb" => "throughput-bound",
            "u" => "utilization",
            "pu" => "proc-utilization",
            "pw" => "proc-waiting",
            "s" => "service-time",
            "v" => "service-time-variance",
            "w" if matches!(of, Observed::Entry(_)) => "open-wait-time",
            "w" => "waiting",
            "wv" => "waiting-variance",
            "x" => "prob-exceed-max-service-time",
            _ => return Err(self.cursor.error_here(format!("only the solution has the result \"%{key}\""))),
        };
        let by_phase = matches!(plain, "utilization" | "proc-waiting" | "service-time" | "service-time-variance");
        let on_element = matches!(of, Observed::Task(_) | Observed::Entry(_));
        Ok(if phase > 0 && by_phase && on_element { format!("phase{phase}-{plain}") } else { plain.to_owned() })
    }
}

/// An error for a name that nothing has.
pub(super) fn unknown(kind: &str, name: &str, start: usize) -> SyntaxError {
    SyntaxError { offset: start, reason: format!("there is no {kind} \"{}\"", shortened(name)) }
}
