//! Plain reads of thousands of keys or members, of which most are looked at once and dropped. In process nothing is copied.

use super::Scope;
use crate::command::{Read, Reply};
use crate::engine::{KeyList, MemberCursor};
use crate::error::Result;
use crate::tx::decode::with_family;
use bytes::Bytes;
use emberkeep_schema::{Codec, Family, Key, Partition, Set, Text};

/// What [`VisitText`](crate::engine::VisitText) is, in a future that moves between threads.
type SendVisitText<'a> = dyn FnMut(usize, Result<Option<&[u8]>>) + Send + 'a;

impl<P: Partition> Scope<P> {
    /// Lends the text at each of these keys to `visit`, with the place of the key, in any order; `None` = the key is
    /// absent. Each is that of some moment after the call, as with [`Scope::get_each`]. `visit` must not use the store: in
    /// process it runs under the locks of the keys.
    pub async fn visit_each<F, C>(
        &self,
        keys: impl IntoIterator<Item = Key<F>>,
        mut visit: impl FnMut(usize, Result<Option<&[u8]>>) + Send,
    ) -> Result<()>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        let (layout, mut list) = (self.caller.store.layout, KeyList::default());
        keys.into_iter().for_each(|key| list.push(|out| key.render(layout, &self.partition, out)));
        let mut visit =
            |place: usize, text: Result<Option<&[u8]>>| visit(place, text.map_err(with_family::<F>));
        self.visit_list(&list, &mut visit).await
    }

    async fn visit_list(&self, keys: &KeyList, visit: &mut SendVisitText<'_>) -> Result<()> {
        let engine = &self.caller.store.engine;
        if let Some(visited) = engine.visit_local(keys, visit) {
            return engine.wait_durable(visited?).await;
        }
        let reads = keys.iter().map(|key| (Bytes::copy_from_slice(key), Read::Get)).collect();
        for (place, reply) in engine.read_many(reads).await?.into_iter().enumerate() {
            match reply.checked(keys.at(place), &Read::Get) {
                Ok(Reply::Blob(text)) => visit(place, Ok(Some(&text))),
                Ok(_) => visit(place, Ok(None)),
                Err(error) => visit(place, Err(error)),
            }
        }
        Ok(())
    }

    /// Lends one page of about `count` members of a set to `visit`, as [`Scope::members`] returns them; the bytes of one
    /// that the family cannot decode are the error. Returns the cursor of the next page. `visit` must not use the store.
    pub async fn visit_members<F, M>(
        &self,
        key: &Key<F>,
        from: Option<MemberCursor>,
        count: usize,
        mut visit: impl FnMut(Result<M::Value, &[u8]>) + Send,
    ) -> Result<Option<MemberCursor>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let (raw, engine) = (self.raw(key), &self.caller.store.engine);
        let mut visit = |member: &[u8]| visit(M::decode(member).map_err(|_| member));
        if let Some(visited) = engine.visit_members_local(&raw, from.clone(), count, &mut visit) {
            let (next, lsn) = visited.map_err(with_family::<F>)?;
            engine.wait_durable(lsn).await?;
            return Ok(next);
        }
        let page = engine.scan_members(&raw, from, count).await.map_err(with_family::<F>)?;
        page.members.iter().for_each(|member| visit(member));
        Ok(page.next)
    }
}
