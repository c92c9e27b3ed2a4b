"""Card payments, one in forty a fraud, whose kind changes half-way: raw as a table comes, and with columns prepared.

`python benchmarks/payments.py FILE.csv` writes the raw table of a seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from devdan.arrays import Floats, Integers

N_PAYMENTS, CHANGE, SHARE = 20_000, 10_000, 0.025
COUNTRIES = np.array(["DE", "FR", "IT", "ES", "PL", "NL", "AT", "US", "GB", "RO", "NG", "SG"])
CATEGORIES = np.array(
    ["groceries", "fuel", "restaurant", "travel", "electronics", "clothing", "jewellery", "gaming", "gift cards",
     "pharmacy", "furniture", "streaming"]
)  # fmt: skip
NOTES = np.array(["card present", "recurring order", "contactless", "paid online", "gift", "second attempt", ""])
N_CUSTOMERS, DAYS, FIRST_DAY = 1_500, 90, pd.Timestamp("2025-03-03")
# What makes a fraud, before and after the change: risky categories and countries, the amount, and hours of the day.
RISKY_CATEGORIES = (
    {"electronics": 2.2, "jewellery": 2.0, "travel": 1.0},
    {"gaming": 2.2, "gift cards": 2.2, "fuel": 1.0},
)
RISKY_COUNTRIES = ({"NG": 2.1, "RO": 1.7, "US": 0.8}, {"SG": 2.1, "GB": 1.4, "ES": 0.8})
BY_AMOUNT = (1.7, -1.4)  # times the log amount, standardised
RISKY_HOURS = ((0, 6, 1.5), (11, 15, 1.3))
ABROAD, ABROAD_AT_RISKY_HOUR, RISKY_CATEGORY_AND_AMOUNT = 0.6, 0.5, 0.75


def chance(logit: Floats) -> Floats:
    """The probability at log odds."""
    chance: Floats = 1.0 / (1.0 + np.exp(-logit))
    return chance


def balanced_to(score: Floats, share: float) -> Floats:
    """Probabilities whose log odds are a score and an offset, with this mean."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(score + middle).mean() < share else (low, middle)
    return chance(score + low)


def drawn(random: np.random.Generator, change: int = CHANGE) -> tuple[pd.DataFrame, Floats]:
    """Payments as they were, and the probability of fraud of each."""
    n = N_PAYMENTS
    customer = random.integers(N_CUSTOMERS, size=n)
    home = random.choice(len(COUNTRIES), size=N_CUSTOMERS, p=(share := 1 / np.arange(3, 15)) / share.sum())
    usual = random.normal(3.4, 0.7, size=N_CUSTOMERS)
    country = np.where(random.random(n) < 0.9, home[customer], random.integers(len(COUNTRIES), size=n))
    category = random.choice(len(CATEGORIES), size=n, p=(share := 1 / np.arange(4, 16)) / share.sum())
    log_amount = usual[customer] + 0.8 * random.normal(size=n) + 0.15 * (category % 4)
    busy = 0.25 + np.exp(-(((np.arange(24) - 14) / 5) ** 2))
    hours = 24 * random.integers(DAYS, size=n) + random.choice(24, size=n, p=busy / busy.sum())
    minutes = np.sort(60 * hours + random.integers(60, size=n))
    hour, amount = minutes // 60 % 24, (log_amount - log_amount.mean()) / log_amount.std()
    abroad, probability = country != home[customer], np.empty(n)
    for k, rows in enumerate((slice(0, change), slice(change, n))):
        if rows.start == rows.stop:
            continue
        first, last, of_hour = RISKY_HOURS[k]
        by_category = np.array([RISKY_CATEGORIES[k].get(name, 0.0) for name in CATEGORIES])[category]
        by_country = np.array([RISKY_COUNTRIES[k].get(name, 0.0) for name in COUNTRIES])[country]
        at_hour, by_amount = (hour >= first) & (hour < last), BY_AMOUNT[k] * amount
        score = by_category + by_country + by_amount + of_hour * at_hour + ABROAD * abroad
        score += ABROAD_AT_RISKY_HOUR * (abroad & at_hour) + RISKY_CATEGORY_AND_AMOUNT * by_amount * (by_category > 0)
        probability[rows] = balanced_to(score[rows], SHARE)
    frame = pd.DataFrame({
        "time": FIRST_DAY + pd.to_timedelta(minutes, unit="min"), "amount": np.exp(log_amount).round(2),
        "category": CATEGORIES[category], "country": COUNTRIES[country], "customer": customer,
    })  # fmt: skip
    return frame, probability


def clean(seed: int, change: int = CHANGE) -> tuple[pd.DataFrame, Integers, Floats]:
    """Prepared columns, 1 for a fraud, and the true probability of one; another kind of fraud from a row on."""
    random = np.random.default_rng(seed)
    payments, probability = drawn(random, change)
    y = (random.random(len(payments)) < probability).astype(int)
    time = payments["time"].dt
    payments.loc[random.random(len(payments)) < 0.03, "amount"] = np.nan
    columns = payments[["amount", "category", "country"]].assign(hour=time.hour, weekday=time.dayofweek)
    return columns, y, probability


def raw(seed: int) -> tuple[pd.DataFrame, Integers, Floats]:
    """The same payments as a table comes: amounts with signs and words, ids, notes, some categories in capitals."""
    columns, y, probability = clean(seed)
    payments, _ = drawn(np.random.default_rng(seed))
    random, n, amount = np.random.default_rng([seed, 1]), len(payments), columns["amount"]
    ways = random.choice(["{:.2f}", "€{:,.2f}", "see receipt"], size=n, p=[0.6, 0.38, 0.02])
    in_capitals = random.random(n) < 0.1
    frame = pd.DataFrame({
        "id": [f"P-{k:07}" for k in random.permutation(n)],
        "timestamp": payments["time"].dt.strftime("%Y-%m-%d %H:%M"),
        "amount": [None if np.isnan(value) else how.format(value) for how, value in zip(ways, amount, strict=True)],
        "merchant category": payments["category"].mask(in_capitals, payments["category"].str.upper()),
        "country": payments["country"],
        "note": random.choice(NOTES, size=n),
        "customer": [f"C{k:04}" for k in payments["customer"]],
    })  # fmt: skip
    return frame, y, probability


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    table, y, _ = raw(chosen.seed)
    table.assign(label=np.where(y == 1, "fraud", "ok")).to_csv(chosen.file, index=False)


if __name__ == "__main__":
    main()
