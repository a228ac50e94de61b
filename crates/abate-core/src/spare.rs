//! What was given back while nobody waited for it.
//!
//! A fair queue has to lock itself to give something to whoever waits longest. While nobody waits,
//! which is nearly always, there is no need to ask it: what comes back is laid beside the queue, and
//! taken from there by the next.

use crate::sync::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// One that is free, in the upper half of the word; one who waits, in the lower. They share it so that
/// nobody can begin to wait between the look at one half and the change of the other.
const FREE: u64 = 1 << 32;

/// Things without names (permits) that lie beside a queue.
///
/// # Examples
///
/// ```
/// use abate_core::spare::Spare;
///
/// let spare = Spare::default();
/// assert_eq!(spare.put(), 0);
/// assert!(spare.take());
/// assert!(!spare.take());
///
/// spare.begin_to_wait();
/// assert_eq!(spare.put(), 1, "to be given to the queue");
/// spare.end_waiting();
/// ```
#[derive(Debug, Default)]
pub struct Spare(AtomicU64);

impl Spare {
    /// Takes one, if there is one and nobody waits.
    #[inline]
    #[must_use]
    pub fn take(&self) -> bool {
        // Relaxed: only what the exchange finds counts.
        let word = self.0.load(Relaxed);
        // Acquire: what was done before it was put back is seen.
        is_free(word)
            && (self.0.compare_exchange(word, word - FREE, Acquire, Relaxed).is_ok()
                || self.take_contended())
    }

    #[cold]
    fn take_contended(&self) -> bool {
        // Acquire: as above. Relaxed: as above.
        let took = |word| is_free(word).then(|| word - FREE);
        self.0.fetch_update(Acquire, Relaxed, took).is_ok()
    }

    /// Puts one back; so many are to be given to the queue, since someone waits.
    #[inline]
    #[must_use = "they would be lost"]
    pub fn put(&self) -> u32 {
        // Release: whoever takes it sees what was done before. Acquire: for the queue's sake, if it
        // is handed on.
        let word = self.0.fetch_add(FREE, AcqRel);
        if word as u32 == 0 { 0 } else { self.drain() }
    }

    /// One more waits in the queue, which is to be given all there is: [`drain`](Self::drain) it, and
    /// [`end_waiting`](Self::end_waiting) in any case.
    pub fn begin_to_wait(&self) {
        // AcqRel: a link in the chain from who puts to who drains.
        self.0.fetch_add(1, AcqRel);
    }

    /// One fewer waits.
    pub fn end_waiting(&self) {
        // AcqRel: as above.
        self.0.fetch_sub(1, AcqRel);
    }

    /// Takes all there is.
    #[cold]
    #[must_use = "they would be lost"]
    pub fn drain(&self) -> u32 {
        let drained = |word: u64| Some(u64::from(word as u32));
        // AcqRel: as above.
        let word = self.0.fetch_update(AcqRel, Relaxed, drained).unwrap_or_else(|word| word);
        (word / FREE) as u32
    }

    /// How many there are.
    #[must_use]
    pub fn free(&self) -> u32 {
        // Relaxed: a figure to look at.
        (self.0.load(Relaxed) / FREE) as u32
    }
}

const fn is_free(word: u64) -> bool {
    word >= FREE && word as u32 == 0
}

#[cfg(all(test, loom))]
mod loom {
    use std::sync::Arc;

    use ::loom::thread::spawn;

    use super::Spare;
    use crate::sync::{AtomicU64, model};
    use std::sync::atomic::Ordering::{AcqRel, Acquire};

    /// One permit in use, and a queue that is a mere number.
    #[derive(Default)]
    struct Rig {
        spare: Spare,
        queue: AtomicU64,
    }

    impl Rig {
        fn give_back(&self) {
            self.queue.fetch_add(u64::from(self.spare.put()), AcqRel);
        }

        /// Whether there is one for whoever begins to wait now, or has begun to.
        fn wait(&self) {
            self.spare.begin_to_wait();
            self.queue.fetch_add(u64::from(self.spare.drain()), AcqRel);
        }
    }

    #[test]
    fn who_waits_gets_what_comes_back() {
        model("spare: wait and give back", 3, || {
            let rig = Arc::new(Rig::default());
            let other = Arc::clone(&rig);
            let gives_back = spawn(move || other.give_back());
            rig.wait();
            gives_back.join().unwrap();
            assert_eq!(rig.queue.load(Acquire), 1);
            assert_eq!(rig.spare.free(), 0);
        });
    }

    #[test]
    fn what_comes_back_is_had_once() {
        model("spare: two take, one waits", 3, || {
            let rig = Arc::new(Rig::default());
            let threads = [(); 2].map(|()| {
                let rig = Arc::clone(&rig);
                spawn(move || {
                    let took = rig.spare.take();
                    if !took {
                        rig.give_back();
                    }
                    took
                })
            });
            rig.wait();
            rig.spare.end_waiting();
            let took = threads.map(|thread| thread.join().unwrap());
            let took = took.into_iter().filter(|took| *took).count() as u64;
            // Who took none has given one back.
            let left = rig.queue.load(Acquire) + u64::from(rig.spare.free());
            assert_eq!(left + took, 2 - took);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Spare;

    #[test]
    fn nobody_takes_what_others_wait_for() {
        let spare = Spare::default();
        assert_eq!((spare.put(), spare.put(), spare.free()), (0, 0, 2));
        spare.begin_to_wait();
        assert!(!spare.take());
        assert_eq!(spare.drain(), 2);
        assert_eq!((spare.put(), spare.free()), (1, 0));
        spare.end_waiting();
        assert_eq!(spare.put(), 0);
        assert!(spare.take());
        assert!(!spare.take());
    }
}
