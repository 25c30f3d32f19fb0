//! Designs, and what trials will tell, in words.

use std::fmt::{self, Write as _};

use super::{
    choose::Criterion,
    ground::label,
    identify::ExpectedFit,
    report::{Design, RankedMeasure, RankedPoint, Search},
    weak::{Cure, WeakDirection},
};
use crate::fit::report::digits::{four_digits, six_digits};

/// Most candidates and measures listed in words; JSON has all.
const MOST_LISTED: usize = 20;

impl Design {
    /// The design in words: the set, what it brings, what each candidate and each additional measure would bring; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_chosen(&mut text);
        let _ = self.write_widths(&mut text);
        let _ = self.write_points(&mut text);
        let _ = self.write_measures(&mut text);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn write_chosen(&self, text: &mut String) -> fmt::Result {
        let small = match &self.criterion {
            Criterion::D => "D-optimal: the least volume of the joint ellipsoid".to_owned(),
            Criterion::A => "A-optimal: the least mean square relative error".to_owned(),
            Criterion::C(target) => format!("c-optimal: the narrowest band of {} at {}", target.measure, at(&label(&target.at))),
        };
        writeln!(text, "{small}")?;
        if self.chosen.is_empty() {
            return writeln!(text, "no operating points were given to choose from");
        }
        let one = |c: &super::Chosen| {
            let length = c.candidate.length.map_or(String::new(), |l| format!(", length {}", four_digits(l)));
            let times = if c.times > 1 { format!(", {} times", c.times) } else { String::new() };
            format!("{}{length}{times}", at(&label(&c.candidate.controlled)))
        };
        let chosen: Vec<String> = self.chosen.iter().map(one).collect();
        writeln!(text, "run: {}", chosen.join("; "))?;
        let found = if self.search == Search::Exhaustive { "all sets were tried" } else { "found by exchanges" };
        let known = self.efficiency.filter(|_| self.search == Search::Exchange);
        let efficiency = known.map_or(String::new(), |e| format!(", at least {} % of the best possible", percent(e)));
        writeln!(text, "{found}{efficiency}")?;
        if let Some(cost) = self.total_cost {
            writeln!(text, "cost {}", four_digits(cost))?;
        }
        if self.rank.now < self.rank.of {
            writeln!(text, "the information sees {} of {} directions now, {} after", self.rank.now, self.rank.of, self.rank.after)?;
            self.unidentified_now.iter().try_for_each(|d| writeln!(text, "  not seen now: {d}"))?;
            self.unidentified_after.iter().try_for_each(|d| writeln!(text, "  not seen after: {d}"))?;
        }
        Ok(())
    }

    fn write_widths(&self, text: &mut String) -> fmt::Result {
        let mut table = vec![["", "value", "half-width now", "after"].map(str::to_owned).to_vec()];
        for (name, w) in &self.parameters {
            table.push(vec![name.clone(), six_digits(w.estimate), width(w.half_width_now), width(w.half_width_after)]);
        }
        if let Some(t) = &self.target {
            table.push(vec![t.measure.to_string(), six_digits(t.value), width(t.half_width_now), width(t.half_width_after)]);
        }
        if self.chosen.is_empty() {
            table.iter_mut().for_each(|row| row.truncate(3));
        }
        writeln!(text)?;
        write_table(text, &table)
    }

    fn write_points(&self, text: &mut String) -> fmt::Result {
        if self.candidates.is_empty() {
            return Ok(());
        }
        let costly = self.candidates.iter().any(|c| c.candidate.cost.is_some());
        writeln!(text, "\none trial there alone{}:", if costly { ", best gain for its cost first" } else { "" })?;
        let mut table = vec![self.header("operating point", costly)];
        for point in self.candidates.iter().take(MOST_LISTED) {
            table.push(self.point_row(point, costly));
        }
        write_table(text, &table)?;
        rest(text, self.candidates.len())
    }

    fn header(&self, first: &str, costly: bool) -> Vec<String> {
        let mut header = vec![first.to_owned(), "widths times".to_owned()];
        if costly {
            header.push("cost".into());
        }
        header.extend(self.parameters.keys().cloned());
        header.extend(self.target.iter().map(|t| t.measure.to_string()));
        header
    }

    fn point_row(&self, point: &RankedPoint, costly: bool) -> Vec<String> {
        let length = point.candidate.length.map_or(String::new(), |l| format!(" (length {})", four_digits(l)));
        let first = format!("{}{length}", at(&label(&point.candidate.controlled)));
        if let Some(reason) = &point.failure {
            return vec![first, format!("no solution: {reason}")];
        }
        let mut row = vec![first, ratio(point.width_ratio, point.rank, self.rank.now)];
        if costly {
            row.push(point.candidate.cost.map_or("1".into(), four_digits));
        }
        row.extend(point.half_widths.values().map(|w| width(*w)));
        row.extend(self.target.iter().map(|_| width(point.target_half_width)));
        row
    }

    fn write_measures(&self, text: &mut String) -> fmt::Result {
        if self.additional_measures.is_empty() {
            return Ok(());
        }
        writeln!(text, "\none more measure, in all trials there are:")?;
        let mut table = vec![self.header("measure", false)];
        let row = |m: &RankedMeasure| {
            let mut row = vec![m.measure.to_string(), ratio(m.width_ratio, m.rank, self.rank.now)];
            row.extend(m.half_widths.values().map(|w| width(*w)));
            row.extend(self.target.iter().map(|_| width(m.target_half_width)));
            row
        };
        table.extend(self.additional_measures.iter().take(MOST_LISTED).map(row));
        write_table(text, &table)?;
        rest(text, self.additional_measures.len())
    }
}

impl ExpectedFit {
    /// What is to be expected in words; lines end in `\n`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let mut table = vec![["parameter", "value", "expected half-width", "relative"].map(str::to_owned).to_vec()];
        for (name, e) in &self.parameters {
            let relative = e.relative_half_width.map_or(String::new(), |r| format!("{} %", percent(r)));
            table.push(vec![name.clone(), six_digits(e.value), width(e.half_width), relative]);
        }
        write_table(text, &table)?;
        for (name, explanation) in self.parameters.iter().filter_map(|(n, e)| Some((n, e.explanation.as_ref()?))) {
            writeln!(text, "  {name}: {explanation}")?;
        }
        let condition = self.condition_number.map_or("infinite".into(), four_digits);
        let values: Vec<String> = self.singular_values.iter().map(|s| four_digits(*s)).collect();
        writeln!(
            text,
            "\n{} planned values; rank {} of {}, condition number {condition}; singular values {}",
            self.n_observations,
            self.rank,
            self.parameters.len(),
            values.join(", ")
        )?;
        text.push_str(&directions_in_words(&self.weak));
        self.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }
}

/// Weak directions in words, lines end in `\n`; empty without any.
pub(crate) fn directions_in_words(weak: &[WeakDirection]) -> String {
    let mut text = String::new();
    for direction in weak {
        // Writing to a string cannot fail.
        let _ = write_direction(&mut text, direction);
    }
    text
}

fn write_direction(text: &mut String, weak: &WeakDirection) -> fmt::Result {
    let parts: Vec<String> = weak.half_widths.iter().map(|(n, w)| format!("{n} {}", plus_minus(*w))).collect();
    let strength = match (weak.condition_index, weak.half_widths.len()) {
        (Some(index), _) => format!("hardly told apart (condition index {}): ", four_digits(index)),
        (None, 1) => "hardly determined: ".to_owned(),
        (None, _) => "not told apart: ".to_owned(),
    };
    writeln!(text, "{strength}{} ({})", weak.direction, parts.join(", "))?;
    for known in &weak.determined {
        let (value, half_width) = (six_digits(known.value), four_digits(known.half_width));
        writeln!(text, "  {} = {value} ± {half_width} is determined, the difference is not", known.combination)?;
    }
    let cure = |c: &Cure| {
        let what = match (&c.measure, &c.controlled) {
            (Some(measure), _) => measure.to_string(),
            (None, point) => format!("a trial at {}", at(&point.as_ref().map_or(String::new(), label))),
        };
        let left: Vec<String> = c.half_widths.iter().map(|(n, w)| format!("{n} {}", plus_minus(*w))).collect();
        format!("{what}: {}", left.join(", "))
    };
    for (what, cures) in [("measure in addition", &weak.measures), ("measure at another point", &weak.points)] {
        if !cures.is_empty() {
            writeln!(text, "  {what}:")?;
            cures.iter().try_for_each(|c| writeln!(text, "    {}", cure(c)))?;
        }
    }
    Ok(())
}

fn plus_minus(half_width: Option<f64>) -> String {
    half_width.map_or("not determined".into(), |w| format!("± {}", four_digits(w)))
}

fn width(half_width: Option<f64>) -> String {
    half_width.map_or("none".into(), four_digits)
}

fn ratio(ratio: Option<f64>, rank: usize, rank_now: usize) -> String {
    match ratio {
        Some(r) => four_digits(r),
        None if rank > rank_now => "settles".into(),
        None => "settles nothing".into(),
    }
}

fn percent(share: f64) -> String {
    four_digits(100.0 * share)
}

fn at(label: &str) -> String {
    if label.is_empty() { "the operating point of the trials".into() } else { label.to_owned() }
}

fn rest(text: &mut String, n: usize) -> fmt::Result {
    if n > MOST_LISTED { writeln!(text, "… and {} more", n - MOST_LISTED) } else { Ok(()) }
}

/// Columns as wide as their widest cell, the first to the left, the others to the right; rows may be shorter than the first.
pub(crate) fn write_table(text: &mut String, table: &[Vec<String>]) -> fmt::Result {
    let columns = table.first().map_or(0, Vec::len);
    let width = |c: usize| table.iter().filter(|r| r.len() == columns).filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    for row in table {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(c, (cell, width))| if c == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
            .collect();
        writeln!(text, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
