//! Arguments that say what is estimated, and how precisely.

use super::{Failure, input::each_once};
use crate::{
    fit::{Estimated, Prior, Transform},
    model::Number,
};

/// What `--estimate`, `--bounds`, `--prior` and `--log` say together.
pub(super) fn all_estimated(
    estimates: &[String],
    ranges: &[String],
    priors: &[String],
    logs: &[String],
) -> Result<Vec<Estimated>, Failure> {
    let mut estimate = estimates.iter().map(|text| estimated(text)).collect::<Result<Vec<_>, _>>()?;
    let all_bounds = ranges.iter().map(|text| bounds(text)).collect::<Result<Vec<_>, _>>()?;
    each_once("--bounds", ranges, all_bounds.iter().map(|(name, ..)| name.as_str()))?;
    for (text, (name, min, max)) in ranges.iter().zip(all_bounds) {
        let target = estimated_mut(&mut estimate, &name, &format!("--bounds {text}"))?;
        (target.min, target.max) = (min, max);
    }
    let all_priors = priors.iter().map(|text| prior(text)).collect::<Result<Vec<_>, _>>()?;
    each_once("--prior", priors, all_priors.iter().map(|(name, _)| name.as_str()))?;
    for (text, (name, prior)) in priors.iter().zip(all_priors) {
        estimated_mut(&mut estimate, &name, &format!("--prior {text}"))?.prior = Some(prior);
    }
    for name in logs {
        let name = parameter_name(name).ok_or_else(|| Failure::input_text(format!("--log {name}: expected a parameter's name")))?;
        estimated_mut(&mut estimate, &name, &format!("--log {name}"))?.transform = Transform::Log;
    }
    Ok(estimate)
}

/// `NAME` or `NAME=START`.
pub(super) fn estimated(text: &str) -> Result<Estimated, Failure> {
    let form = || Failure::input_text(format!("--estimate {text}: expected NAME or NAME=START with a number, as in dbD=0.1"));
    let (name, start) = text.split_once('=').map_or((text, None), |(name, start)| (name, Some(start)));
    let name = parameter_name(name).ok_or_else(form)?;
    let start = start.map(|s| finite(s).ok_or_else(form)).transpose()?;
    Ok(Estimated { start, ..Estimated::new(name) })
}

/// The parameter called `name` among those to be estimated, for `argument`.
fn estimated_mut<'a>(estimate: &'a mut [Estimated], name: &str, argument: &str) -> Result<&'a mut Estimated, Failure> {
    let missing = || Failure::with_hint(format!("{argument}: {name} is not estimated"), format!("add --estimate {name}"));
    estimate.iter_mut().find(|e| e.name == name).ok_or_else(missing)
}

/// `NAME=MIN..MAX`, of which one end may be left out.
pub(super) fn bounds(text: &str) -> Result<(String, Option<f64>, Option<f64>), Failure> {
    let form = || Failure::input_text(format!("--bounds {text}: expected NAME=MIN..MAX, NAME=MIN.. or NAME=..MAX, as in dbD=0..0.5"));
    let (name, range) = text.split_once('=').ok_or_else(form)?;
    let (min, max) = range.split_once("..").ok_or_else(form)?;
    let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { finite(text).map(Some).ok_or_else(form) };
    let (min, max) = (end(min)?, end(max)?);
    if min.is_none() && max.is_none() {
        return Err(form());
    }
    Ok((parameter_name(name).ok_or_else(form)?, min, max))
}

/// `NAME=LEAST,LIKELY,MOST`.
fn prior(text: &str) -> Result<(String, Prior), Failure> {
    let form = || Failure::input_text(format!("--prior {text}: expected NAME=LEAST,LIKELY,MOST with numbers, as in dbD=0.05,0.1,0.3"));
    let (name, range) = text.split_once('=').ok_or_else(form)?;
    let numbers: Vec<f64> = range.split(',').map(|n| finite(n).ok_or_else(form)).collect::<Result<_, _>>()?;
    let [min, most_likely, max] = numbers[..] else { return Err(form()) };
    Ok((parameter_name(name).ok_or_else(form)?, Prior { min, most_likely, max }))
}

/// A parameter's name, with its `$` or without.
pub(super) fn parameter_name(text: &str) -> Option<String> {
    let name = text.trim().trim_start_matches('$');
    Number::parse(&format!("${name}"))?.parameter().map(str::to_owned)
}

/// A finite number.
pub(super) fn finite(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// The precision in `--solver-error[=PRECISION]`.
pub(super) fn precision(text: &str) -> Result<f64, String> {
    finite(text).filter(|p| *p > 0.0).ok_or_else(|| "expected a relative half-width above 0, as in 0.01".to_owned())
}
