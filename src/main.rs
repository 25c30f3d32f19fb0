//! The `layerfit` command.

fn main() -> std::process::ExitCode {
    layerfit::cli::main()
}
