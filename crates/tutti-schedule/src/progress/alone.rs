//! The messages of steps with a single send or a single receive.
//!
//! Most steps of most schedules have one of each. As long as no message is in a queue, such a
//! message is stored at its rank, where its peer finds it without looking up their queue.

use super::queues::Kind;
use super::{At, Side, Store, Walk};
use tutti_units::ids::RankId;

impl<S: Store> Walk<'_, S> {
    /// Returns whether the only send or receive of a step can bypass the queues: then the messages
    /// that it may match are at their ranks.
    #[inline]
    pub(super) fn without_queues(&self) -> bool {
        self.queues.is_empty() && self.traffic.buffering == 0
    }

    /// Posts the only send of a step; returns how many sends complete.
    #[inline]
    pub(super) fn post_only_send(&mut self, send: Side) -> Result<u32, S::Error> {
        if self.meet_recv(send)? {
            return Ok(1);
        }
        self.ranks[send.at.rank.index()].send = Some(send.message);
        self.alone += 1;
        self.unexpected(send.message.peer, 1);
        Ok(0)
    }

    /// Posts the only receive of a step; returns how many receives complete.
    #[inline]
    pub(super) fn post_only_recv(&mut self, recv: Side) -> Result<u32, S::Error> {
        if self.meet_send(recv)? {
            return Ok(1);
        }
        self.ranks[recv.at.rank.index()].recv = Some(recv.message);
        self.alone += 1;
        Ok(0)
    }

    /// Matches a send with the only receive of a step; returns whether it does.
    #[inline]
    pub(super) fn meet_recv(&mut self, send: Side) -> Result<bool, S::Error> {
        let rank = send.message.peer;
        let state = &mut self.ranks[rank.index()];
        let matching = state.recv.take_if(|recv| recv.peer == send.at.rank);
        let Some(message) = matching else { return Ok(false) };
        self.alone -= 1;
        let at = At { rank, step: state.at };
        self.store.transfer(send, Side { at, message })?;
        self.close(rank)?;
        Ok(true)
    }

    /// Matches a receive with the only send of a step; returns whether it does.
    #[inline]
    pub(super) fn meet_send(&mut self, recv: Side) -> Result<bool, S::Error> {
        let rank = recv.message.peer;
        let state = &mut self.ranks[rank.index()];
        let matching = state.send.take_if(|send| send.peer == recv.at.rank);
        let Some(message) = matching else { return Ok(false) };
        self.alone -= 1;
        self.waiting[recv.at.rank.index()] -= 1;
        let at = At { rank, step: state.at };
        self.store.transfer(Side { at, message }, recv)?;
        self.close(rank)?;
        Ok(true)
    }

    /// Moves all pending messages to the queues.
    #[cold]
    pub(super) fn queue_all(&mut self) {
        for (rank, state) in (0..).map(RankId).zip(&mut self.ranks) {
            let send = state.send.take().map(|send| ((send.peer, rank), Kind::Send, send));
            let recv = state.recv.take().map(|recv| ((rank, recv.peer), Kind::Recv, recv));
            for (pair, kind, message) in send.into_iter().chain(recv) {
                let place = self.queues.pairs.find(pair);
                let queue = *self.queues.pairs.at(place);
                self.queues.append(place, queue, kind, message);
            }
        }
        self.alone = 0;
    }
}
