//! Games built only on what every user of the crate can use.
