//! The life of a call, in the order in which the layers of a stack have it: deadline, retry, breaker,
//! limit, attempt timeout. What to do next is decided by the session, the budget and the breaker alone.

use std::time::{Duration, SystemTime};

use abate_core::budget::Grant;
use abate_core::deadline::Deadline;
use abate_core::outcome::{Fault, Outcome};
use abate_core::safety::Safety;
use abate_core::session::{Bounds, Decision, Retry, Session, StopReason, Traits};
use http::StatusCode;

use super::calls::{Call, Held, Place, State};
use super::state::World;
use crate::law::nanos;
use crate::queue::{Event, Kind};
use crate::trace::{Ending, What};

/// Calls that may be repeated: what is simulated is a storm, not a duplicate.
const TRAITS: Traits = Traits { safety: Safety::Repeatable, replayable: true, nested: false };

impl World<'_> {
    /// A client begins a call; a server, for a request that it was sent.
    pub(super) fn begin(&mut self, group: usize, client: u32, parent: Option<(u32, u32)>) {
        let number = self.calls.next();
        let process = self.process_of(group, client);
        let conduct = &self.model.groups[group].conduct;
        self.calls.push(Call {
            session: Session::new(&conduct.policy, Deadline::NEVER, self.instant),
            state: State::Turn,
            limited: false,
            place: Place::Elsewhere,
            jobs: 0,
            group: u16::try_from(group).unwrap_or(u16::MAX),
            client,
            process,
            attempt: 0,
            tag: 0,
            sent: 0,
            held: None,
            parent,
        });
        if self.model.groups[group].counts {
            self.tally.began();
        }
        self.note(number, 0, What::Began);
        self.attempt(number, None);
    }

    /// An attempt, from the breaker down.
    fn attempt(&mut self, number: u32, grant: Option<Grant>) {
        let now = self.instant;
        let Some(call) = self.calls.get(number) else { return };
        let process = &mut self.processes[call.process as usize];
        let Ok(leave) = process.guard.admit(self.now, now) else {
            self.tally.bin.refused_by_breaker += 1;
            drop(grant);
            return self.refused(number, Ending::BreakerOpen);
        };
        self.calls.hold(number, Held { leave, grant });
        if self.takes_place(number) {
            self.send(number);
        }
    }

    /// Whether a call need not wait for its turn under the limit; if it must, it does now.
    fn takes_place(&mut self, number: u32) -> bool {
        let now = self.instant;
        let Some(call) = self.calls.get(number) else { return false };
        let Some(limit) = &mut self.processes[call.process as usize].limit else { return true };
        call.limited = limit.try_acquire();
        if call.limited {
            self.tally.note_use();
            return true;
        }
        let conduct = &self.model.groups[usize::from(call.group)].conduct;
        let deadline = if conduct.deadline { call.session.deadline() } else { Deadline::NEVER };
        let end = Deadline::after(now, limit.wait).earlier(deadline);
        if end.has_passed(now) {
            self.leave(number);
            return false;
        }
        call.tag += 1;
        call.state = State::Queued;
        limit.wait(number, call.tag);
        let (tag, end) = (call.tag, end.instant().map_or(u64::MAX, |end| self.moment(end)));
        self.plan(end, Kind::Timer, number, tag);
        false
    }

    fn send(&mut self, number: u32) {
        let now = self.instant;
        let Some(call) = self.calls.get(number) else { return };
        let conduct = &self.model.groups[usize::from(call.group)].conduct;
        let process = &mut self.processes[call.process as usize];
        call.session.sent(process.payer.budget(), now);
        if call.attempt == 0 {
            process.payer.count_call(self.now);
        }
        call.attempt += 1;
        call.tag += 1;
        call.state = State::Sent;
        call.sent = self.now;
        call.place = Place::Elsewhere;
        let (attempt, tag, group) = (call.attempt, call.tag, usize::from(call.group));
        let mut end = Deadline::NEVER;
        if conduct.attempt_timeout {
            end = Deadline::after(now, conduct.policy.attempt_timeout());
        }
        if conduct.deadline {
            end = end.earlier(call.session.deadline());
        }
        if let Some(grant) = self.calls.take_grant(number) {
            grant.sent();
        }
        if let Some(end) = end.instant() {
            let end = self.moment(end);
            self.plan(end, Kind::Timer, number, tag);
        }
        if self.model.groups[group].server == self.model.watched {
            self.tally.sent(attempt);
        }
        self.note(number, attempt, What::Sent);
        self.dispatch(number, attempt);
    }

    /// The answer to an attempt is there, if somebody still waits for it.
    pub(super) fn answered(&mut self, number: u32, attempt: u32, status: u16) {
        let Some(call) = self.calls.get(number) else { return };
        if call.state != State::Sent || call.attempt != attempt {
            return;
        }
        self.note(number, attempt, What::Answered { status });
        self.came_to(number, Some(status));
    }

    pub(super) fn on_timer(&mut self, number: u32, tag: u32) {
        let Some(call) = self.calls.get(number) else { return };
        if call.tag % Event::TAGS != tag {
            return;
        }
        match call.state {
            State::Turn => self.send(number),
            State::Queued => self.leave(number),
            State::Sent => {
                let conduct = &self.model.groups[usize::from(call.group)].conduct;
                let timeout = nanos(conduct.policy.attempt_timeout());
                let (attempt, waited) = (call.attempt, self.now - call.sent);
                self.give_up(number);
                if conduct.attempt_timeout && waited >= timeout {
                    self.note(number, attempt, What::TimedOut);
                    self.came_to(number, None);
                } else {
                    self.cut(number);
                }
            }
            State::Pausing | State::Slot => self.take_slot(number),
            State::Ended => {}
        }
    }

    /// An attempt that was sent has come to an answer, or had none in time.
    fn came_to(&mut self, number: u32, status: Option<u16>) {
        let now = self.instant;
        let leave = self.calls.release(number).leave;
        let Some(call) = self.calls.get(number) else { return };
        let server = self.model.groups[usize::from(call.group)].server;
        let outcome = match status.map(StatusCode::from_u16) {
            Some(Ok(status)) => {
                let headers = &self.servers[server].headers[usize::from(status.is_server_error())];
                Outcome::Response { status, headers }
            }
            _ => Outcome::Fault(Fault::Ambiguous),
        };
        let conduct = &self.model.groups[usize::from(call.group)].conduct;
        let process = &mut self.processes[call.process as usize];
        if let Some(leave) = leave {
            let sent = self.base + Duration::from_nanos(call.sent);
            process.guard.record(leave, &outcome, (sent, now), self.now);
        }
        let bounds = Bounds {
            policy: &conduct.policy,
            budget: process.payer.budget(),
            streams: &process.streams,
        };
        // Servers here give hints in seconds, so the wall clock is asked by none.
        let wall = || SystemTime::UNIX_EPOCH;
        let decision = call.session.decide(bounds, TRAITS, &outcome, now, wall);
        let limited = std::mem::take(&mut call.limited);
        match decision {
            Decision::Done => {
                process.payer.earn(self.now);
                self.end(number, Ending::Success);
            }
            Decision::Stop(stop) => {
                if matches!(stop.reason, StopReason::Budget | StopReason::Pace) {
                    self.tally.bin.denied_by_budget += 1;
                }
                self.end(number, Ending::Stopped(stop.reason));
            }
            Decision::Retry(retry) => {
                if process.payer.withdraw(self.now) {
                    self.pause(number, retry);
                } else {
                    self.tally.bin.denied_by_budget += 1;
                    self.end(number, Ending::Unpaid);
                }
            }
        }
        if limited {
            self.free_place(number);
        }
    }

    fn pause(&mut self, number: u32, retry: Retry) {
        let at = self.now.saturating_add(nanos(retry.after));
        self.calls.hold(number, Held { leave: None, grant: retry.grant });
        self.wait(number, State::Pausing, at);
    }

    /// The wait before a retry is over: its slot comes next.
    fn take_slot(&mut self, number: u32) {
        let now = self.instant;
        let Held { grant, .. } = self.calls.release(number);
        let Some(call) = self.calls.get(number) else { return };
        let left = call.session.deadline().remaining(now);
        let Some(mut grant) = grant else { return self.repeat_with(number, None) };
        match grant.slot(now, left) {
            Ok(Duration::ZERO) => self.repeat_with(number, Some(grant)),
            Ok(wait) => {
                self.calls.hold(number, Held { leave: None, grant: Some(grant) });
                self.wait(number, State::Slot, self.now.saturating_add(nanos(wait)));
            }
            Err(denied) => {
                drop(grant);
                self.tally.bin.denied_by_budget += 1;
                self.end(number, Ending::Stopped(denied.into()));
            }
        }
    }

    fn repeat_with(&mut self, number: u32, grant: Option<Grant>) {
        let now = self.instant;
        let Some(call) = self.calls.get(number) else { return };
        if call.session.has_time(now) {
            self.attempt(number, grant);
        } else {
            drop(grant);
            self.end(number, Ending::Stopped(StopReason::Deadline));
        }
    }

    fn wait(&mut self, number: u32, state: State, until: u64) {
        let Some(call) = self.calls.get(number) else { return };
        call.state = state;
        call.tag += 1;
        let tag = call.tag;
        // As in a layer, which does not go to a timer for a moment that has come.
        let kind = if until <= self.now { Kind::Next } else { Kind::Timer };
        self.plan(until, kind, number, tag);
    }

    /// A layer of ours has refused an attempt, or the deadline came while it waited for its turn.
    fn refused(&mut self, number: u32, ending: Ending) {
        drop(self.calls.release(number));
        self.end(number, ending);
    }

    /// The deadline ends a call whose attempt is under way.
    fn cut(&mut self, number: u32) {
        let now = self.instant;
        let Held { leave, grant } = self.calls.release(number);
        drop(grant);
        let Some(call) = self.calls.get(number) else { return };
        let limited = std::mem::take(&mut call.limited);
        if let Some(leave) = leave {
            let sent = self.base + Duration::from_nanos(call.sent);
            let guard = &mut self.processes[call.process as usize].guard;
            guard.cut(leave, (sent, now), self.now);
        }
        self.end(number, Ending::Deadline);
        if limited {
            self.free_place(number);
        }
    }

    fn end(&mut self, number: u32, ending: Ending) {
        let Some(call) = self.calls.get(number) else { return };
        call.state = State::Ended;
        call.tag += 1;
        let (attempt, parent) = (call.attempt, call.parent);
        let (group, client, began) = (usize::from(call.group), call.client, call.session.started());
        let began = self.moment(began);
        if self.model.groups[group].counts {
            self.tally.ended(ending, attempt, self.now - began);
        }
        self.note(number, attempt, What::Ended(ending));
        match parent {
            Some((parent, attempt)) => {
                let status = if ending == Ending::Success { 200 } else { 503 };
                self.finish(parent, attempt, status);
            }
            None => self.plan_after(group, client, began),
        }
    }

    /// Gives the place of a call under its process's limit to the first that waits for one.
    fn free_place(&mut self, number: u32) {
        self.tally.in_use = self.tally.in_use.saturating_sub(1);
        let Some(process) = self.calls.get(number).map(|call| call.process) else { return };
        let Some(limit) = &mut self.processes[process as usize].limit else { return };
        while let Some((number, tag)) = limit.first_waiting() {
            if let Some(call) = self.calls.get(number)
                && call.state == State::Queued
                && call.tag == tag
            {
                call.limited = true;
                call.state = State::Turn;
                call.tag += 1;
                self.tally.note_use();
                self.queue.push(Event::new(self.now, Kind::Timer, number, call.tag));
                return;
            }
        }
        limit.release();
    }

    /// A call does not wait any longer for its turn.
    fn leave(&mut self, number: u32) {
        let now = self.instant;
        let Some(call) = self.calls.get(number) else { return };
        let conduct = &self.model.groups[usize::from(call.group)].conduct;
        if conduct.deadline && call.session.deadline().has_passed(now) {
            self.refused(number, Ending::Deadline);
        } else {
            self.tally.bin.refused_by_limit += 1;
            self.refused(number, Ending::LimitReached);
        }
    }
}
