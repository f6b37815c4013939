//! What a transaction may write when its scope acts as a service.

use crate::command::Write;
use crate::error::{Error, Result};
use bytes::Bytes;
use emberkeep_schema::{Coverage, Declaration, Grant, Service};

/// A service, and the operation that it runs. Checked at each write, before anything is buffered.
#[derive(Clone, Copy)]
pub(crate) struct Rights {
    service: &'static Service,
    grant: Option<&'static Grant>,
}

impl Rights {
    /// The rights of a service. A grant of another one adds nothing.
    pub(crate) fn new(service: &'static Service, grant: Option<&'static Grant>) -> Rights {
        Rights { service, grant: grant.filter(|grant| grant.service == service.name) }
    }

    fn coverage(&self, family: &Declaration) -> Option<Coverage> {
        if self.service.owns(family) {
            return Some(Coverage::Keys);
        }
        self.grant.and_then(|grant| grant.coverage(family))
    }

    /// Whether whole keys of the family may be written.
    pub(crate) fn covers(&self, family: &Declaration) -> bool {
        self.coverage(family) == Some(Coverage::Keys)
    }

    /// Refuses a write of a whole key unless the family may be written.
    pub(crate) fn check(&self, family: &'static Declaration) -> Result<()> {
        if self.covers(family) { Ok(()) } else { Err(self.forbidden(family, None)) }
    }

    /// Refuses a write that the rights do not cover: of a family, or of a field of its hashes.
    pub(super) fn check_write(&self, family: &'static Declaration, write: &Write) -> Result<()> {
        let Some(Coverage::Fields(allowed)) = self.coverage(family) else { return self.check(family) };
        let check = |field: &Bytes| match allowed.iter().any(|name| name.as_bytes() == field) {
            true => Ok(()),
            false => Err(self.forbidden(family, Some(field))),
        };
        match write {
            Write::HSet(pairs) => pairs.iter().try_for_each(|(field, _)| check(field)),
            Write::HIncrBy(field, _) => check(field),
            Write::HDel(fields) => fields.iter().try_for_each(check),
            _ => self.check(family),
        }
    }

    /// The refusal of a write to a raw key: nothing says which family it belongs to.
    #[cold]
    pub(super) fn refuse_raw_key(&self) -> Error {
        let problem = "a raw key may belong to any service; name its family (`Tx::raw_write_of`)";
        Error::invalid("raw write", format!("the scope acts as {}, and {problem}", self.service))
    }

    #[cold]
    fn forbidden(&self, family: &'static Declaration, field: Option<&Bytes>) -> Error {
        Error::Forbidden {
            service: self.service.name,
            family: family.name,
            owner: family.owner,
            field: field.map(|field| crate::error::show(field).into()),
        }
    }
}
