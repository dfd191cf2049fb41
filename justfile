# List the recipes
default:
    @just --list

# Start a server on an SQLite file, with the account in the metadata of calls
run *OPTIONS:
    cargo run -- serve {{ OPTIONS }}

# Run all tests but slow ones, or those whose names contain FILTER
test *FILTER:
    cargo test --locked -- {{ FILTER }}

# Measure the speed of calls; `just bench --against BINARY` compares two builds
bench *OPTIONS:
    cargo bench --locked --bench performance -- {{ OPTIONS }}

# Write the generated pages again
docs:
    cargo run --locked --example reference > docs/reference.md
    cargo run --locked --example analysis > docs/analysis.md
    cargo run --locked --example configuration

# Run what every change must pass
ci:
    .ci/run

# Run the long checks, or these STEPS of them
nightly *STEPS:
    .ci/nightly {{ STEPS }}
