"""Arithmetic that the chapters share: random draws, running means, sigmoid, softmax and products."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.kernel.jit import compiled
from devdan.kernel.network import Random


@compiled
def uniform(random: Random) -> float:
    """A draw from [0, 1), by SplitMix64."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@compiled
def normal(random: Random, variance: float) -> float:
    """A draw from N(0, variance), by Box and Muller."""
    radius = math.sqrt(-2.0 * variance * math.log(1.0 - uniform(random)))
    return radius * math.cos(2.0 * math.pi * uniform(random))


@compiled
def shuffle_order(random: Random, order: Integers) -> None:
    """Put a row in random order."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(random) * (i + 1))
        order[i], order[j] = order[j], order[i]


@compiled
def exponential(a: float) -> float:
    """e^a by scaling and squaring, with |a| clipped at 36: plain arithmetic, so that loops vectorise."""
    r = min(max(a, -36.0), 36.0) / 64.0
    r2 = r * r
    low = (1.0 + r) + (1 / 2 + r / 6) * r2
    high = (1 / 24 + r / 120) + (1 / 720 + r / 5040) * r2
    e = low + high * (r2 * r2)  # the first eight Taylor terms, paired so that few wait for each other
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@compiled
def sigmoid(a: Floats, length: int) -> None:
    """s(a) = 1 / (1 + exp(-a)), in place, accurate to about 4e-14."""
    for i in range(length):
        a[i] = 1.0 / (1.0 + exponential(-a[i]))


@compiled
def softmax(a: Floats, length: int, stride: int) -> None:
    """softmax(a) in place, for each row of a flat array; the largest value is subtracted so that nothing overflows."""
    rows = len(a) // stride
    for k in range(0, rows * stride, stride):
        largest = a[k]
        for o in range(k + 1, k + length):
            largest = max(largest, a[o])
        for o in range(k, k + length):
            a[o] -= largest
    for o in range((rows - 1) * stride + length):
        a[o] = exponential(a[o])
    for k in range(0, rows * stride, stride):
        total = 0.0
        for o in range(k, k + length):
            total += a[o]
        for o in range(k, k + length):
            a[o] /= total


@compiled
def add_product(x: Floats, W: Floats, y: Floats, n: int, r: int) -> None:
    """y += xW, four rows of W at a time, so that y is loaded and stored a quarter as often."""
    whole = n - n % 4
    for j in range(0, whole, 4):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(r):
            y[i] += x0 * W[j, i] + x1 * W[j + 1, i] + x2 * W[j + 2, i] + x3 * W[j + 3, i]
    for j in range(whole, n):
        x0 = x[j]
        for i in range(r):
            y[i] += x0 * W[j, i]


@compiled
def step_count(count: Floats, present: Floats, share: Floats, length: int) -> None:
    """Count the values that are present, and compute their shares in the mean."""
    for j in range(length):
        count[j] += present[j]
        share[j] = present[j] / max(count[j], 1.0)


@compiled
def step_mean(mean: Floats, square: Floats, share: Floats, value: Floats, length: int) -> None:
    """Update running means and mean squared deviations with one value; its share is 1 / count, or 0 to leave it out."""
    for j in range(length):
        step = value[j] - mean[j]
        mean[j] += share[j] * step
        square[j] += share[j] * (step * (value[j] - mean[j]) - square[j])
