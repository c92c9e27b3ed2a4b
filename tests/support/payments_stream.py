"""A small stream of payments, in which the past of customers tells the future."""

import numpy as np


def payments(n, seed=0, n_customers=40):
    """Rows as dicts, and their labels: some customers are robbed, and then for a while."""
    random = np.random.default_rng(seed)
    days = np.cumsum(random.exponential(0.01, n))
    rows, labels, robbed = [], [], set()
    for day in days.tolist():
        who = int(random.integers(n_customers))
        robbed = {other for other in robbed if random.random() > 0.003} | ({who} if random.random() < 0.02 else set())
        home = who % 5
        abroad = random.random() < (0.6 if who in robbed else 0.1)
        rows.append(
            {
                "customer": f"c{who}",
                "day": day,
                "amount": float(random.normal(50 + who, 9)),
                "country": f"k{random.integers(5) if abroad else home}",
            }
        )
        labels.append("fraud" if who in robbed and random.random() < 0.8 else "ok")
    return rows, np.array(labels)
