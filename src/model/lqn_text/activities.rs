//! An A section: the activities of a task, and how they follow one another.

use super::sections::{Reader, Result, unknown};
use crate::model::{
    Activity, Call, CallKind, CallOrder, Declared, Histogram, Number, Observed, Post, Pre, Precedence, Reply, Task, Weighted, lexer::Token,
};

/// Reads one section after its `A`.
pub(super) fn read_activities(reader: &mut Reader<'_>) -> Result<()> {
    let start = reader.cursor.peek()?.start;
    let name = reader.name("a task's name")?;
    let at = reader.tasks.get(name).copied().ok_or_else(|| unknown("task", name, start))?;
    while !reader.at_end_of_list()? && reader.cursor.peek()?.token != Token::Symbol(":") {
        reader.read_definition(at, name)?;
    }
    if reader.cursor.accept(":")? {
        reader.read_connection(at)?;
        while reader.cursor.accept(";")? {
            reader.read_connection(at)?;
        }
    }
    reader.expect_end_of_list("\";\", \"->\" or \"-1\"")
}

impl<'a> Reader<'a> {
    fn with_task(&mut self, at: usize, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.model.tasks.get_mut(at) {
            change(task);
        }
    }

    /// Changes the activity of that name, which is made where it is not there yet.
    fn with_activity(&mut self, at: usize, name: &'a str, change: impl FnOnce(&mut Activity)) {
        let Some(task) = self.model.tasks.get_mut(at) else {
            return;
        };
        let next = task.activities.len();
        let position = *self.activities.entry((at, name)).or_insert(next);
        if position == next {
            task.activities.push(Activity::new(name, 0.0));
        }
        if let Some(activity) = task.activities.get_mut(position) {
            change(activity);
        }
    }

    /// `s a 1.5`, `y a entry 2`, and the like.
    fn read_definition(&mut self, at: usize, task: &str) -> Result<()> {
        let letter = self.letter()?;
        if !matches!(letter, "s" | "c" | "Z" | "M" | "f" | "H" | "y" | "z") {
            return Err(self.cursor.unexpected("a line of an activity (s c Z M f H y z), \":\" or \"-1\""));
        }
        let start = self.cursor.peek()?.start;
        self.cursor.next()?;
        let name = self.name("an activity's name")?;
        self.places.add_first(Declared::Activity { task: task.to_owned(), activity: name.to_owned() }, start);
        if matches!(letter, "s" | "c" | "Z" | "M" | "f") {
            self.once(letter, Some(at), name, start)?;
        }
        let of = Observed::Activity { task: task.to_owned(), activity: name.to_owned() };
        match letter {
            "y" => return self.read_activity_call(at, CallKind::Sync, task, name),
            "z" => return self.read_activity_call(at, CallKind::Async, task, name),
            "H" => {
                let request = self.histogram_request()?;
                let mut further = None;
                self.with_activity(at, name, |activity| match activity.histogram {
                    None => activity.histogram = Some(request),
                    Some(_) => further = Some(Histogram { of, request }),
                });
                self.model.histograms.extend(further);
                return Ok(());
            }
            "f" => {
                let order = match self.count()? {
                    0 => CallOrder::Stochastic,
                    1 => CallOrder::Deterministic,
                    _ => return Err(self.cursor.error_here("expected 0 (stochastic) or 1 (deterministic)")),
                };
                self.with_activity(at, name, |activity| activity.call_order = order);
                return Ok(());
            }
            _ => {}
        }
        let number = if letter == "M" { Number::Value(self.literal()?) } else { self.number()? };
        self.with_activity(at, name, |activity| match letter {
            "s" => activity.host_demand = number,
            "c" => activity.host_demand_cvsq = number,
            "Z" => activity.think_time = number,
            _ => activity.max_service_time = number,
        });
        self.read_observations(&of)
    }

    fn read_activity_call(&mut self, at: usize, kind: CallKind, task: &str, name: &'a str) -> Result<()> {
        let (dest, _) = self.entry("the called entry's name")?;
        let mean = self.number()?;
        self.with_activity(at, name, |activity| activity.calls.push(Call { kind, dest: dest.to_owned(), mean }));
        let of = Observed::ActivityCall { task: task.to_owned(), activity: name.to_owned(), dest: dest.to_owned() };
        self.read_observations(&of)
    }

    /// `join -> fork`, or a join by itself.
    fn read_connection(&mut self, at: usize) -> Result<()> {
        let pre = self.read_join(at)?;
        let post = if self.cursor.accept("->")? { Some(self.read_fork(at)?) } else { None };
        // An activity by itself only says that it replies.
        if post.is_some() || !matches!(pre, Pre::Single(_)) {
            self.with_task(at, |t| t.precedences.push(Precedence { pre, post }));
        }
        Ok(())
    }

    fn read_join(&mut self, at: usize) -> Result<Pre> {
        let first = self.read_replying(at)?;
        let mut activities = vec![first];
        if self.cursor.accept("+")? {
            activities.push(self.read_replying(at)?);
            while self.cursor.accept("+")? {
                activities.push(self.read_replying(at)?);
            }
            return Ok(Pre::Or(activities));
        }
        while self.cursor.accept("&")? {
            activities.push(self.read_replying(at)?);
        }
        if activities.len() == 1 {
            return Ok(Pre::Single(activities.remove(0)));
        }
        let mut quorum = Number::Value(0.0);
        if self.cursor.accept("(")? {
            quorum = self.number()?;
            self.cursor.expect(")", "\")\" after the quorum")?;
        }
        Ok(Pre::And { activities, quorum })
    }

    /// An activity, with the entries it replies to in brackets.
    fn read_replying(&mut self, at: usize) -> Result<String> {
        let activity = self.activity(at)?;
        if self.cursor.accept("[")? {
            loop {
                let (entry, _) = self.entry("an entry's name")?;
                let reply = Reply { entry: entry.to_owned(), activity: activity.clone() };
                self.with_task(at, |t| t.replies.push(reply));
                if !self.cursor.accept(",")? {
                    break;
                }
            }
            self.cursor.expect("]", "a comma or \"]\"")?;
        }
        Ok(activity)
    }

    /// The name of an activity that was defined.
    fn activity(&mut self, at: usize) -> Result<String> {
        let start = self.cursor.peek()?.start;
        let name = self.name("an activity's name")?;
        if self.activities.contains_key(&(at, name)) { Ok(name.to_owned()) } else { Err(unknown("activity", name, start)) }
    }

    fn read_fork(&mut self, at: usize) -> Result<Post> {
        if self.cursor.peek()?.token == Token::Symbol("(") {
            let mut branches = vec![self.read_branch(at)?];
            while self.cursor.accept("+")? {
                branches.push(self.read_branch(at)?);
            }
            return Ok(Post::Or(branches));
        }
        let (count, activity) = self.read_loop_item(at)?;
        if let Some(value) = count {
            return self.read_loop(at, Weighted { activity, value });
        }
        let mut activities = vec![activity];
        while self.cursor.accept("&")? {
            activities.push(self.activity(at)?);
        }
        Ok(if activities.len() == 1 { Post::Single(activities.remove(0)) } else { Post::And(activities) })
    }

    /// `(probability) activity`.
    fn read_branch(&mut self, at: usize) -> Result<Weighted> {
        self.cursor.expect("(", "\"(\" and the branch's probability")?;
        let bracket = self.cursor.open_bracket();
        let value = self.number()?;
        self.cursor.close_bracket(bracket);
        self.cursor.expect(")", "\")\" after the probability")?;
        Ok(Weighted { activity: self.activity(at)?, value })
    }

    /// `count * activity`, or an activity alone.
    fn read_loop_item(&mut self, at: usize) -> Result<(Option<Number>, String)> {
        let start = self.cursor.peek()?;
        let count = match start.token {
            Token::Name(_) => return Ok((None, self.activity(at)?)),
            Token::Number(digits) => {
                let value = self.number()?;
                if !self.cursor.accept("*")? {
                    // Digits alone are an activity's name.
                    let known = self.activities.contains_key(&(at, digits));
                    return if known { Ok((None, digits.to_owned())) } else { Err(unknown("activity", digits, start.start)) };
                }
                value
            }
            _ => {
                let value = self.number()?;
                self.cursor.expect("*", "\"*\" after the count of a loop")?;
                value
            }
        };
        Ok((Some(count), self.activity(at)?))
    }

    /// The rest of a loop after its first body: bodies, and the end where it stands.
    fn read_loop(&mut self, at: usize, first: Weighted) -> Result<Post> {
        let mut bodies = vec![first];
        let mut end = None;
        while self.cursor.accept(",")? {
            match self.read_loop_item(at)? {
                (Some(value), activity) => bodies.push(Weighted { activity, value }),
                (None, activity) if end.is_none() => end = Some(activity),
                (None, _) => return Err(self.cursor.error_here("a loop ends with one activity")),
            }
        }
        Ok(Post::Loop { bodies, end })
    }
}
