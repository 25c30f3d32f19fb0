//! Rebuilds when a migration is added: the migrations are compiled into the program.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
