//! Second-price trades between a faster and a slower kind: whoever gains most from faster devices buys them
//! with slower ones, from whoever gains least. Nobody ends with less than before, by its own speedup.

/// What a user holds of the two kinds, and how much faster it is on the faster one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Holding {
    /// Speed on a fast device over speed on a slow one.
    pub(super) speedup: f64,
    /// Fast devices.
    pub(super) fast: f64,
    /// Slow devices.
    pub(super) slow: f64,
    /// Devices of both kinds that its jobs can use at once.
    pub(super) most: f64,
}

impl Holding {
    /// Fast devices that may change hands before this user has more than it can use, at `more` devices for each.
    fn room(&self, more: f64) -> f64 {
        if more > 0.0 { (self.most - self.fast - self.slow).max(0.0) / more } else { f64::INFINITY }
    }
}

/// Buyers by falling speedup, each until it has no slow devices left; sellers by rising speedup, each until it
/// has no fast ones; both at most until they have all that they can use. A buyer pays the speedup of the next in line, so that boasting does not pay.
pub(super) fn trade(users: &mut [Holding]) {
    let mut order: Vec<usize> = (0..users.len()).collect();
    order.sort_by(|a, b| users[*b].speedup.total_cmp(&users[*a].speedup).then(a.cmp(b)));
    let (mut buyer, mut seller) = (0, order.len().saturating_sub(1));
    while buyer < seller && users[order[buyer]].speedup > users[order[seller]].speedup {
        let price = users[order[buyer + 1]].speedup;
        let (buys, sells) = (users[order[buyer]], users[order[seller]]);
        // At a price of zero nobody but the buyer can use fast devices at all.
        let affordable = if price > 0.0 { buys.slow / price } else { f64::INFINITY };
        let (wanted, offered) =
            (affordable.min(buys.room(1.0 - price)), sells.fast.min(sells.room(price - 1.0)));
        let bought = wanted.min(offered);
        users[order[buyer]].fast += bought;
        users[order[buyer]].slow -= bought * price;
        users[order[seller]].fast -= bought;
        users[order[seller]].slow += bought * price;
        if offered <= wanted {
            seller -= 1;
        } else {
            buyer += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_users_trade_as_in_the_worked_example() {
        let user = |part, speedup| Holding { speedup, fast: part, slow: part, most: 9.0 };
        let mut users = [user(0.33, 4.0), user(0.33, 6.0), user(0.34, 8.0)];
        trade(&mut users);
        let near = |held: [f64; 3], expected: [f64; 3]| {
            assert!(held.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4), "{held:?}");
        };
        near(users.map(|user| user.slow), [1.0, 0.0, 0.0]);
        near(users.map(|user| user.fast), [0.1908, 0.4125, 0.3967]);
    }

    #[test]
    fn equals_do_not_trade_and_nobody_trades_alone() {
        let user = Holding { speedup: 2.0, fast: 1.0, slow: 3.0, most: 9.0 };
        let mut users = [user; 3];
        trade(&mut users);
        assert_eq!(users, [user; 3]);
        trade(&mut []);
        let mut one = [user];
        trade(&mut one);
        assert_eq!(one, [user]);
    }

    fn users() -> impl Strategy<Value = Vec<Holding>> {
        let speedup = prop_oneof![1 => Just(0.0), 1 => Just(1.0), 1 => Just(1e6), 6 => 0.1f64..20.0];
        let user = (speedup, 0.0f64..10.0, 0.0f64..10.0, prop_oneof![Just(0.0), Just(1e9), 0.0f64..20.0]);
        let user = user.prop_map(|(speedup, fast, slow, room)| Holding {
            speedup,
            fast,
            slow,
            most: fast + slow + room,
        });
        prop::collection::vec(user, 0..12)
    }

    proptest! {
        #[test]
        fn nobody_loses_and_no_device_is_lost(before in users()) {
            let mut after = before.clone();
            trade(&mut after);
            let worth = |user: &Holding| user.fast * user.speedup + user.slow;
            for (old, new) in before.iter().zip(&after) {
                prop_assert!(worth(new) >= worth(old) * (1.0 - 1e-9), "{:?} {:?}", old, new);
                prop_assert!(new.fast >= -1e-9 && new.slow >= -1e-9, "{:?}", new);
                prop_assert!(new.fast + new.slow <= new.most * (1.0 + 1e-9), "{:?}", new);
            }
            for held in [|user: &Holding| user.fast, |user: &Holding| user.slow] {
                let sum = |users: &[Holding]| users.iter().map(held).sum::<f64>();
                prop_assert!((sum(&before) - sum(&after)).abs() < 1e-9 * (1.0 + sum(&before)));
            }
        }

        /// Who reports more than is true pays what others ask, and never ends better by its true speedup.
        #[test]
        fn boasting_as_the_highest_bidder_does_not_pay(mut users in users(), boast in 1.0f64..5.0) {
            prop_assume!(users.len() > 1);
            let top = (0..users.len()).max_by(|a, b| users[*a].speedup.total_cmp(&users[*b].speedup)).unwrap();
            let (truth, mut honest) = (users[top].speedup, users.clone());
            trade(&mut honest);
            users[top].speedup *= boast;
            trade(&mut users);
            let worth = |user: &Holding| user.fast * truth + user.slow;
            prop_assert!(worth(&users[top]) <= worth(&honest[top]) * (1.0 + 1e-9) + 1e-9);
        }
    }
}
