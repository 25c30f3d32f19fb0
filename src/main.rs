//! The `layerfit` command.

/// An extraction allocates and frees for every event.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    layerfit::cli::main()
}
