//! Single rules, one at a time.
