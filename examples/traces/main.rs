//! Large traces for measuring speed, written as fast as bytes can be: shapes of real systems, not runs of a model.
//!
//! ```text
//! cargo run --release --example traces -- same --n 10000000 > log.csv
//! cargo run --release --example traces -- otlp --n 10000000 --services 100 > spans.jsonl
//! cargo run --release --example traces -- kieker --n 2032573 > kieker.dat
//! cargo run --release --example traces -- angio --n 1000000 --services 100 > angio.csv
//! cargo run --release --example traces -- event-trace --n 1000000 > events.csv
//! ```
//!
//! Traces depend on the arguments and `--seed` alone. For traces of a model use `layerfit simulate --trace`; `benches/extract.rs`
//! measures what reading these costs.

mod forms;

use std::io;

use forms::{Asked, FORMS};

fn asked() -> Result<Asked, String> {
    let forms = FORMS.map(|(name, _)| name).join("|");
    let usage = format!("usage: traces {forms} [--n N] [--services N] [--seed N]");
    let mut arguments = std::env::args().skip(1);
    let mut asked = Asked { form: arguments.next().ok_or_else(|| usage.clone())?, n: 1_000_000, services: 20, seed: 1 };
    while let Some(name) = arguments.next() {
        let value: u64 = arguments.next().and_then(|v| v.parse().ok()).ok_or_else(|| format!("{name} needs a whole number\n{usage}"))?;
        match name.as_str() {
            "--n" => asked.n = value,
            "--services" => asked.services = value.max(2),
            "--seed" => asked.seed = value,
            _ => return Err(format!("{name} is not known\n{usage}")),
        }
    }
    Ok(asked)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    forms::write(&asked()?, vec![Box::new(io::stdout())])?;
    Ok(())
}
