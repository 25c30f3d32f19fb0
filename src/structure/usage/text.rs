//! The usage model as text.

use std::fmt::Write as _;

use super::{
    model::{BehaviourClass, StepCount, UsageModel},
    think::ThinkLaw,
};

/// Steps that are rarer in a class are not shown: a sum of probabilities.
const LEAST_COUNT: f64 = 0.005;

/// Steps shown of a class, the most frequent first.
const MOST_TRANSITIONS: usize = 30;

impl ThinkLaw {
    /// The law in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Constant { mean_s } => format!("constant {mean_s:.4} s"),
            Self::Exponential { mean_s } => format!("exponential, mean {mean_s:.4} s"),
            Self::Gamma { shape, scale_s } => format!("gamma, shape {shape:.4}, scale {scale_s:.4} s"),
            Self::LogNormal { mu, sigma } => format!("log-normal, mu {mu:.4}, sigma {sigma:.4}"),
            Self::Normal { location_s, scale_s, .. } => format!("normal without negative part, {location_s:.4} s ± {scale_s:.4} s"),
        }
    }
}

/// A count that classes may share, hence a sum of probabilities: whole, or to two digits.
fn rounded(count: f64) -> String {
    if (count - count.round()).abs() < 0.005 { format!("{count:.0}") } else { format!("{count:.2}") }
}

impl UsageModel {
    /// The usage model as text: sessions, intensity, classes with their transitions and think times, what to review.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let Self { n_sessions, n_requests, span_s, session_rate, mean_active, peak_active, window_s, .. } = self;
        let _ = writeln!(text, "{n_sessions} sessions with {n_requests} requests in {span_s:.1} s: {session_rate:.4} sessions/s");
        let _ = writeln!(text, "active: mean {mean_active:.2}, at most {peak_active:.2} (means over {window_s} s)");
        let _ = writeln!(
            text,
            "requests a session: mean {:.3}, sd {:.3}, at most {}",
            self.lengths.mean_s, self.lengths.sd_s, self.lengths.max_s
        );
        if let Some(think) = &self.think {
            let (c2, median) = (think.cv * think.cv, think.median_s);
            let _ = writeln!(text, "think time: mean {:.4} s, c² {c2:.3}, median {median:.4} s, 95 % {:.4} s", think.mean_s, think.p95_s);
        }
        for class in &self.classes {
            self.write_class(&mut text, class);
        }
        for guard in &self.guard_candidates {
            let (support, n) = (100.0 * guard.support, guard.n_sessions);
            let _ = writeln!(text, "\nto review: {} comes after {} in {support:.1} % of {n} sessions", guard.service, guard.requires);
        }
        text
    }

    fn write_class(&self, text: &mut String, class: &BehaviourClass) {
        let BehaviourClass { behaviour, share, n_sessions, mean_length, mean_duration_s, .. } = class;
        let _ = writeln!(
            text,
            "\nclass {}: {:.2} % of sessions ({n_sessions:.1}), {mean_length:.3} requests in {mean_duration_s:.2} s",
            behaviour.name,
            100.0 * share
        );
        if let Some((law, distance)) = behaviour.think.zip(class.think_distance) {
            let _ = writeln!(text, "  think time {} (distance {distance:.3})", law.describe());
        }
        let requests: f64 = class.visits.iter().sum();
        let visited = || self.services.iter().enumerate().filter(|(i, _)| class.visits[*i] > 0.0);
        let width = visited().map(|(_, service)| service.chars().count()).max().unwrap_or(0).max("service".len());
        let _ = writeln!(text, "  {:<width$} {:>8} {:>10} {:>8} {:>8}", "service", "mix", "visits", "first", "exit");
        for (i, service) in visited() {
            // As seen, as are the steps below; those of the chain are smoothed.
            let mut exits = class.steps.iter().filter(|step| step.to.is_none());
            let exit = exits.find(|step| step.from.as_ref() == Some(service)).map_or(0.0, |step| step.share);
            let (visits, first) = (class.visits[i], behaviour.start[i]);
            let mix = format!("{:.2} %", 100.0 * visits / requests);
            let _ = writeln!(text, "  {service:<width$} {mix:>8} {visits:>10.4} {first:>8.4} {exit:>8.4}");
        }
        let mut steps: Vec<&StepCount> = class.steps.iter().filter(|step| step.count >= LEAST_COUNT).collect();
        steps.sort_by(|a, b| b.count.total_cmp(&a.count));
        for StepCount { from, to, count, share } in steps.iter().take(MOST_TRANSITIONS) {
            let (from, to) = (from.as_deref().unwrap_or("(start)"), to.as_deref().unwrap_or("(exit)"));
            let _ = writeln!(text, "  {from} → {to}: {share:.4} ({} times)", rounded(*count));
        }
        if let Some(more) = steps.len().checked_sub(MOST_TRANSITIONS).filter(|more| *more > 0) {
            let _ = writeln!(text, "  … and {more} rarer steps");
        }
        if !class.order.holds {
            let (p, w) = (class.order.p_value, class.order.effect_size);
            let _ = writeln!(text, "  warning: the next service depends on more than the present one (p = {p:.2e}, effect {w:.2})");
        }
    }
}
