//! The dataset end to end: from files to a folder and back.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod corpus;
mod folder;
mod links;
mod local;
mod privacy;
mod sources;
mod support;
mod tables;
