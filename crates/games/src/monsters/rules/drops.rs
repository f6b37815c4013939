//! When a friendly monster drops an item. A hit postpones the next drop.

use crate::monsters::model::DropTimer;

/// When the next drop is due: one period after the last drop or the last hit, whichever is later.
pub fn next_drop_ms(timer: &DropTimer) -> i64 {
    // A hit in the same millisecond as the drop gives the same result either way.
    let since = timer.last_hit_at_ms.max(timer.last_drop_at_ms);
    // A period of 0, which only an external service writes, must not cause endless drops.
    since.saturating_add(timer.drop_period_ms.max(1))
}

/// Advances the timer if a drop is due; `true` if it was. Missed drops are not made up for: after an hour
/// without a call, a monster drops once.
pub fn drop_if_due(timer: &mut DropTimer, now_ms: i64) -> bool {
    let due = next_drop_ms(timer) <= now_ms;
    if due {
        timer.last_drop_at_ms = now_ms;
    }
    due
}

/// Records a hit. A hit that is reported late does not move the time of the last hit back.
pub fn record_hit(timer: &mut DropTimer, now_ms: i64) {
    timer.last_hit_at_ms = timer.last_hit_at_ms.max(now_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Field;
    use proptest::prelude::*;

    fn timer(drop_period_ms: i64, last_drop_at_ms: i64, last_hit_at_ms: i64) -> DropTimer {
        DropTimer {
            weapon_attack: 30,
            max_hp: 5_000,
            last_drop_at_ms,
            last_hit_at_ms,
            ..DropTimer::new(9_300_061, Field::default().into(), drop_period_ms)
        }
    }

    #[test]
    fn a_hit_since_the_last_drop_puts_the_next_one_off() {
        assert_eq!(next_drop_ms(&timer(100, 1_000, 0)), 1_100);
        assert_eq!(next_drop_ms(&timer(100, 1_000, 1_060)), 1_160);
        assert_eq!(next_drop_ms(&timer(100, 1_000, 1_000)), 1_100);
        assert_eq!(next_drop_ms(&timer(100, 1_000, 940)), 1_100);
    }

    #[test]
    fn a_drop_comes_once_and_not_early() {
        let mut timer = timer(100, 1_000, 0);
        assert!(!drop_if_due(&mut timer, 1_099));
        assert!(drop_if_due(&mut timer, 1_100));
        assert!(!drop_if_due(&mut timer, 1_100));
        assert_eq!((timer.last_drop_at_ms, next_drop_ms(&timer)), (1_100, 1_200));
    }

    #[test]
    fn missed_drops_are_not_made_up_for() {
        let mut timer = timer(100, 1_000, 0);
        assert!(drop_if_due(&mut timer, 9_000));
        assert_eq!(next_drop_ms(&timer), 9_100);
    }

    #[test]
    fn a_late_report_does_not_move_the_last_hit_back() {
        let mut timer = timer(100, 1_000, 1_050);
        record_hit(&mut timer, 1_040);
        assert_eq!(timer.last_hit_at_ms, 1_050);
        record_hit(&mut timer, 1_051);
        assert_eq!(timer.last_hit_at_ms, 1_051);
    }

    proptest! {
        #[test]
        fn whatever_is_stored_there_is_a_next_drop_in_the_future(period: i64, drop: i64, hit: i64, now in 0i64..1 << 48) {
            let mut timer = timer(period, drop, hit);
            if drop_if_due(&mut timer, now) {
                prop_assert!(next_drop_ms(&timer) > now);
            }
        }

        #[test]
        fn drops_are_at_least_a_period_apart(period in 1i64..500, acts in prop::collection::vec((1i64..200, any::<bool>()), 1..100)) {
            let mut timer = timer(period, 1_000, 0);
            let (mut now, mut last) = (1_000, 1_000);
            for (pause, hit) in acts {
                now += pause;
                if hit {
                    record_hit(&mut timer, now);
                } else if drop_if_due(&mut timer, now) {
                    prop_assert!(now - last >= period);
                    prop_assert!(timer.last_hit_at_ms == 0 || now - timer.last_hit_at_ms >= period);
                    last = now;
                }
            }
        }
    }
}
