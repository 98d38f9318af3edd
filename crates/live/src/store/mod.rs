//! What is kept in the database file.

pub mod tokens;
