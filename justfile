# `just check` is what continuous integration runs.
check:
    .ci/run

# Every test; installs what is missing.
test *ARGS:
    scripts/test {{ARGS}}

# The main job on real input.
demo:
    cargo run --release -- demo

# The OpenAPI document, from the code.
openapi:
    cargo run -- openapi > openapi/openapi.json

# Documentation, with warnings as errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

# Benchmarks, on demand.
bench *ARGS:
    cargo bench {{ARGS}}

# Record the PostgreSQL trials again (about 8 minutes on a quiet machine).
record-pgbench:
    examples/pgbench/record.sh
