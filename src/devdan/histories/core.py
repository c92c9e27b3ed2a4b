"""What is known of entities, row by row: the compiled part.

One *group* holds all entities of one kind, such as customers. An entity is a row of ``words``; row 0 is about all
entities together, towards which the others are drawn while little is known of them. Its parts, in order:

- ``HEAD`` words: the key, the clock at which the sums were last decayed, the time of the latest row, the rows so far,
  the clock of the latest label;
- for each horizon: the rows lately;
- for each class and horizon: the labels lately;
- for each column of numbers and horizon: weight, mean and sum of squared deviations;
- for each column of categories: ``KEPT`` values, each with its weight over the longest horizon.

A sum is decayed by exp(-Δ/horizon) when it is needed; those of labels only when another label comes, since what they
say does not fade while none is known. Until horizons are found, nothing decays: the clock of a group
begins when they are. A key is a hash of the entity in 53 bits, so that a float holds it; 0 is none. Of a million
entities, two share a key with a probability of 0.01 %. Nothing here allocates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.kernel.jit import compiled, entry

KEY, TOUCHED, LATEST, N_ROWS, LABELLED = range(5)
HEAD = 5
KEPT = 12  # values of a category column that are kept for each entity
MOMENTS = 3  # weight, mean, sum of squared deviations
DRAWN = 1.0  # rows or labels that the overall statistics weigh as much as
LEAST_SHARE = 0.01  # of a value among all, which is not taken for rarer
TINY = 1e-12
NOTHING = 1e-9  # less is what rounding leaves where all is taken away
LEAST_DEVIATION = 1e-6  # of the mean: less is rounding
ROUNDING = 1e-14  # likewise, of what is left of a sum when much of it is taken away

# Words of a group's integers.
ROOM, USED, HAND, N_EVICTED, SETTLED, N_GAPS, N_COME, N_CLASSES, N_UNNAMED = range(9)
INTEGERS = 9
# Words of a group's floats: when its clock began, or its first row came; the mean of the logarithms of gaps; until
# horizons are found, the time of the latest row, and the shortest step between two rows.
BEGAN, LOG_GAP, BEFORE_NOW, STEP = range(4)
FLOATS = 4
# Words about a column in a group: of how many values it was judged whether entities tell anything about them, how far
# they were from what was usual for their entity and for all, and why it is given up, or 0.
JUDGED, FROM_OWN, FROM_ALL, GIVEN_UP = range(4)
UNTOLD, RISING = 1.0, 2.0  # entities tell nothing of its values; it only ever rises

ENOUGH_GAPS, ENOUGH_ROWS = 1000, 20_000  # after which horizons are found
ENOUGH_VALUES, TELLING = 500, 0.98  # after which a column is judged: values must be that much nearer to the own mean
CANDIDATES = 24  # entities that are looked at to evict one
SPREAD = 2_654_435_769  # 2^32 by the golden ratio, so that they are far from each other

# Words of the clock, all floats. It leaps where a step is longer than the span of all rows before: BEFORE is how many
# rows before the latest leap were not late, SINCE how many have been since, and LANDED its end. BEHIND counts the late
# rows since, which came from LOW to HIGH.
NOW, N_TIMES, N_LATE, N_UNTIMED, N_FAR, FAR_IN_A_ROW, FIRST, BEFORE, SINCE, LANDED, BEHIND, LOW, HIGH = range(13)
CLOCK = 13
IN_A_ROW = 8  # rows far from the others that are believed if they follow each other
FEW = 4  # rows that may all be wrong
FAR, ENOUGH_TIMES = 30.0, 100  # times the span of all rows so far, once there are this many

SHORTEST = 2.0  # times the mean time between two rows of an entity, about the shortest horizon
STEPS = (1.0, 7.0, 30.0)  # from the shortest horizon to the others, where no unit of time is known

# Words about the labels that have come, by which columns are chosen: their number, that at which the present period
# ends, and how many came in it; and of each column, what its values were in this period and its bins.
LABELS, UNTIL, IN_PERIOD = range(3)
MEAN, SQUARES, CENTRE, WIDTH = range(4)
BINS = 8  # equally likely if the values were normally distributed
FAR_OUT, OUT, WITHIN = 1.150349380, 0.674489750, 0.318639364  # deviations from the centre at which bins end

RISES, FALLS, N_SEEN, LAST = range(4)  # of a column of numbers, to find one that only ever rises
FEWEST_RISING = 100


@entry
def clocks(clock: Floats, times: Floats, out: Floats, firsts: Floats) -> None:
    """The time of each row, and of the first one so far.

    Where it is missing, earlier than others or far in the future, it is the present. If rows that follow each other
    show that few times before them were far in the future, or the first ones far in the past, the clock is set anew.
    """
    for row in range(len(out)):
        time = times[row]
        clock[N_TIMES] += 1.0
        if math.isnan(time):
            clock[N_UNTIMED] += 1.0
        elif math.isnan(clock[NOW]):
            clock[NOW] = clock[FIRST] = clock[LANDED] = time
            clock[SINCE] = 1.0
        elif time < clock[NOW]:
            clock[N_LATE] += 1.0
            clock[FAR_IN_A_ROW] = 0.0
            _fall_behind(clock, time)
        else:
            span = clock[NOW] - clock[FIRST]
            far = clock[N_TIMES] > ENOUGH_TIMES and span > 0.0 and time - clock[NOW] > FAR * span
            if far and clock[FAR_IN_A_ROW] < IN_A_ROW - 1:
                clock[FAR_IN_A_ROW] += 1.0
                clock[N_FAR] += 1.0
            else:
                _advance(clock, time, span)
        out[row], firsts[row] = clock[NOW], clock[FIRST]


@compiled
def _advance(clock: Floats, time: float, span: float) -> None:
    if time - clock[NOW] > span:
        clock[BEFORE], clock[SINCE], clock[LANDED], clock[BEHIND] = clock[BEFORE] + clock[SINCE], 0.0, time, 0.0
    clock[SINCE] += 1.0
    clock[NOW] = time
    clock[FAR_IN_A_ROW] = 0.0
    if (
        clock[SINCE] == IN_A_ROW
        and clock[BEFORE] <= FEW
        and clock[LANDED] - clock[FIRST] > FAR * (time - clock[LANDED])
    ):
        clock[FIRST] = clock[LANDED]


@compiled
def _fall_behind(clock: Floats, time: float) -> None:
    """Count a late row; go back if so many of them agree that the few since the latest leap must be wrong."""
    clock[LOW] = min(clock[LOW], time) if clock[BEHIND] > 0.0 else time
    clock[HIGH] = max(clock[HIGH], time) if clock[BEHIND] > 0.0 else time
    clock[BEHIND] += 1.0
    if clock[BEHIND] < IN_A_ROW:
        return
    clock[BEHIND] = 0.0
    if clock[SINCE] <= FEW and clock[NOW] - clock[HIGH] > FAR * (clock[HIGH] - clock[LOW]):
        is_before_all = clock[LOW] < clock[FIRST]
        clock[NOW] = clock[LANDED] = clock[HIGH]
        clock[FIRST] = clock[LOW] if is_before_all else clock[FIRST]
        clock[BEFORE], clock[SINCE] = 0.0 if is_before_all else clock[BEFORE], float(IN_A_ROW)


@entry
def watch(numbers: Floats, watched: Floats, given_up: Integers, n_before: int) -> None:
    """Find the columns of numbers that only ever rise; ``given_up`` is the row from which on they are not used."""
    for row in range(len(numbers)):
        for k in range(numbers.shape[1]):
            value = numbers[row, k]
            if math.isnan(value) or watched[k, N_SEEN] == FEWEST_RISING:
                continue
            watched[k, RISES] += 1.0 if value > watched[k, LAST] else 0.0
            watched[k, FALLS] += 1.0 if value < watched[k, LAST] else 0.0
            watched[k, N_SEEN] += 1.0
            watched[k, LAST] = value
            n = watched[k, N_SEEN]
            if n == FEWEST_RISING:
                watched[k, LAST] = np.nan  # no longer needed
                if watched[k, FALLS] == 0.0 and 2.0 * watched[k, RISES] >= n:
                    given_up[k] = n_before + row


@entry
def come(
    integers: Integers,
    floats: Floats,
    horizons: Floats,
    ladder: Floats,
    words: Floats,
    index: Integers,
    judged: Floats,
    keys: Integers,
    times: Floats,
    numbers: Floats,
    values: Integers,
    given_up: Integers,
    n_before: int,
    out: Floats,
) -> int:
    """Write what was known of each row's entity before it, and add the row; returns how many rows were taken.

    It stops early where there is no more room: the caller makes some.
    """
    for row in range(len(keys)):
        slot = 0
        if keys[row] != 0:
            slot = _find(index, words, keys[row])
            if slot == 0:
                if integers[USED] == len(words) - 1 and integers[USED] < integers[ROOM]:
                    return row
                slot = _insert(integers, horizons, words, index, keys[row], _elapsed(integers, floats, times[row]))
        now = _elapsed(integers, floats, times[row])
        for k in range(numbers.shape[1]):
            if 0 <= given_up[k] <= n_before + row and judged[k, GIVEN_UP] != RISING:
                _give_up(integers, words, judged, k, len(horizons), numbers.shape[1], RISING)
        _touch(integers, horizons, words, judged, 0, now, numbers.shape[1])
        if slot > 0:
            _touch(integers, horizons, words, judged, slot, now, numbers.shape[1])
        _describe(integers, floats, horizons, words, judged, slot, times[row], numbers[row], values[row], out[row])
        _judge(integers, horizons, words, judged, slot, numbers[row], values[row])
        if slot > 0:
            _note_gap(integers, floats, words, slot, times[row])
            _add(integers, words, judged, slot, numbers[row], values[row], len(horizons))
            words[slot, LATEST] = times[row]
        else:
            integers[N_UNNAMED] += 1
        _add(integers, words, judged, 0, numbers[row], values[row], len(horizons))
        integers[N_COME] += 1
        if integers[SETTLED] == 0:
            step = times[row] - floats[BEFORE_NOW]
            if step > 0.0:
                floats[STEP] = step if floats[STEP] == 0.0 else min(floats[STEP], step)
            floats[BEFORE_NOW] = times[row]
        if integers[SETTLED] == 0 and (integers[N_GAPS] >= ENOUGH_GAPS or integers[N_COME] >= ENOUGH_ROWS):
            _settle(integers, floats, horizons, ladder, times[row])
    return len(keys)


@entry
def peek(
    integers: Integers,
    floats: Floats,
    horizons: Floats,
    words: Floats,
    index: Integers,
    judged: Floats,
    keys: Integers,
    times: Floats,
    numbers: Floats,
    values: Integers,
    scratch: Floats,
    out: Floats,
) -> None:
    """Write what :func:`come` would write of each row if it were the next; nothing changes but ``scratch``."""
    for row in range(len(keys)):
        slot = _find(index, words, keys[row]) if keys[row] != 0 else 0
        now = _elapsed(integers, floats, times[row])
        for k in range(words.shape[1]):
            scratch[0, k], scratch[1, k] = words[0, k], words[slot, k]
        for place in range(2):
            _touch(integers, horizons, scratch, judged, place, now, numbers.shape[1])
        known = 1 if slot > 0 else 0
        _describe(integers, floats, horizons, scratch, judged, known, times[row], numbers[row], values[row], out[row])


@entry
def label(
    integers: Integers,
    floats: Floats,
    horizons: Floats,
    words: Floats,
    index: Integers,
    keys: Integers,
    codes: Integers,
    now: float,
    at: Floats,
    sign: float,
) -> int:
    """Count labels that have come ``at`` some times, or count them no longer; returns how many rows were taken."""
    present = _elapsed(integers, floats, now)
    for row in range(len(keys)):
        slot = _find(index, words, keys[row]) if keys[row] != 0 else 0
        if slot == 0 and keys[row] != 0 and sign > 0.0:
            if integers[USED] == len(words) - 1 and integers[USED] < integers[ROOM]:
                return row
            slot = _insert(integers, horizons, words, index, keys[row], present)
        came = _elapsed(integers, floats, at[row])
        for which in range(2):
            place = slot if which == 1 else 0
            if which == 1 and slot == 0:
                continue
            elapsed = came - words[place, LABELLED]
            for h in range(len(horizons)):
                for each in range(integers[N_CLASSES] if elapsed > 0.0 else 0):
                    words[place, HEAD + len(horizons) * (1 + each) + h] *= _decay(elapsed, horizons[h])
                k = HEAD + len(horizons) * (1 + codes[row]) + h
                words[place, k] = max(words[place, k] + sign * _decay(-elapsed, horizons[h]), 0.0)
            words[place, LABELLED] = max(words[place, LABELLED], came)
        if sign < 0.0 and slot > 0:
            _remove_if_empty(integers, horizons, words, index, slot)
    return len(keys)


@entry
def withdraw(
    integers: Integers,
    floats: Floats,
    horizons: Floats,
    words: Floats,
    index: Integers,
    judged: Floats,
    keys: Integers,
    now: float,
    at: Floats,
    numbers: Floats,
    values: Integers,
) -> None:
    """Take rows out that have come ``at`` some times; an entity of which nothing is left is removed."""
    present = _elapsed(integers, floats, now)
    n_horizons = len(horizons)
    for row in range(len(keys)):
        slot = _find(index, words, keys[row]) if keys[row] != 0 else 0
        age = present - _elapsed(integers, floats, at[row])
        for which in range(2):
            place = slot if which == 1 else 0
            if which == 1 and slot == 0:
                continue
            _touch(integers, horizons, words, judged, place, present, numbers.shape[1])
            for h in range(n_horizons):
                weight = _decay(age, horizons[h])
                words[place, HEAD + h] = max(words[place, HEAD + h] - weight, 0.0)
                for k in range(numbers.shape[1]):
                    start = _number(integers, n_horizons, k, h)
                    if not math.isnan(numbers[row, k]) and judged[k, GIVEN_UP] == 0.0:
                        _unmeet(words, place, start, numbers[row, k], weight)
            for k in range(values.shape[1]):  # one that is given up holds no values
                start = _category(integers, n_horizons, numbers.shape[1], k)
                _uncount(words, place, start, values[row, k], _decay(age, horizons[n_horizons - 1]))
            words[place, N_ROWS] = max(words[place, N_ROWS] - 1.0, 0.0)
        if slot > 0:
            if words[slot, LATEST] == at[row]:
                words[slot, LATEST] = np.nan
            _remove_if_empty(integers, horizons, words, index, slot)


@entry
def tally(counters: Integers, sums: Floats, counts: Floats, features: Floats, codes: Integers) -> int:
    """Count rows by the bins of their histories and by their classes, up to the end of the period; returns how many."""
    for row in range(len(codes)):
        if counters[LABELS] == counters[UNTIL]:
            return row
        counters[LABELS] += 1
        counters[IN_PERIOD] += 1
        for k in range(len(sums)):
            value = features[row, k]
            if math.isnan(value):
                continue
            delta = value - sums[k, MEAN]
            sums[k, MEAN] += delta / counters[IN_PERIOD]
            sums[k, SQUARES] += delta * (value - sums[k, MEAN])
            counts[k, _bin(value - sums[k, CENTRE], sums[k, WIDTH]), codes[row]] += 1.0
    return len(codes)


@entry
def take_back(sums: Floats, counts: Floats, features: Floats, codes: Integers) -> None:
    """Count rows no longer, if they are in this period's counts."""
    for row in range(len(codes)):
        for k in range(len(sums)):
            value = features[row, k]
            if not math.isnan(value):
                place = _bin(value - sums[k, CENTRE], sums[k, WIDTH])
                counts[k, place, codes[row]] = max(counts[k, place, codes[row]] - 1.0, 0.0)


@compiled
def _bin(distance: float, width: float) -> int:
    side = abs(distance)
    beyond = (
        (1 if side > WITHIN * width else 0) + (1 if side > OUT * width else 0) + (1 if side > FAR_OUT * width else 0)
    )
    return BINS // 2 + beyond if distance > 0.0 else BINS // 2 - 1 - beyond


@entry
def hash_texts(content: Integers, ends: Integers, out: Integers) -> None:
    """A hash of each text, whose bytes are one after the other; never 0."""
    start = 0
    for k in range(len(ends)):
        found = np.uint64(14695981039346656037)
        for place in range(start, ends[k]):
            found = (found ^ np.uint64(content[place])) * np.uint64(1099511628211)
        out[k] = _mixed(found)
        start = ends[k]


@entry
def hash_numbers(values: Floats, out: Integers) -> None:
    """The hash of each number as its decimal text; 0 for one that is missing or not whole."""
    for k in range(len(values)):
        value = values[k]
        out[k] = 0
        if not abs(value) < 1e15 or value != math.floor(value):
            continue
        found = np.uint64(14695981039346656037)
        if value < 0.0:
            found = (found ^ np.uint64(45)) * np.uint64(1099511628211)
        rest = np.int64(abs(value))
        power = np.int64(1)
        while power <= rest // 10:
            power *= 10
        while power > 0:
            found = (found ^ np.uint64(48 + rest // power)) * np.uint64(1099511628211)
            rest = rest % power
            power //= 10
        out[k] = _mixed(found)


@entry
def hash_pairs(first: Integers, second: Integers, out: Integers) -> None:
    """The hash of each pair of hashes; 0 if one of them is."""
    for k in range(len(out)):
        out[k] = 0
        if first[k] != 0 and second[k] != 0:
            mixed = np.uint64(first[k]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second[k])
            out[k] = _mixed(mixed)


@entry
def reindex(words: Floats, n_used: int, index: Integers) -> int:
    """Fill an index, which is empty, with the keys of the entities; returns how many keys are there twice or 0."""
    bad = 0
    mask = len(index) - 1
    for slot in range(1, n_used + 1):
        key = np.int64(words[slot, KEY])
        if key == 0 or _find(index, words, key) > 0:
            bad += 1
            continue
        place = key & mask
        while index[place] != 0:
            place = (place + 1) & mask
        index[place] = slot
    return bad


# --- Finding and evicting -----------------------------------------------------------------------------------------


@compiled
def _mixed(found: Any) -> Any:
    found ^= found >> np.uint64(33)
    found *= np.uint64(0xFF51AFD7ED558CCD)
    found ^= found >> np.uint64(33)
    found *= np.uint64(0xC4CEB9FE1A85EC53)
    found ^= found >> np.uint64(33)
    key = np.int64(found >> np.uint64(11))  # as many bits as a float holds
    return key if key != 0 else np.int64(1)


@compiled
def _find(index: Integers, words: Floats, key: Any) -> Any:
    """The row of an entity, or 0."""
    mask = len(index) - 1
    place = key & mask
    while index[place] != 0:
        if words[index[place], KEY] == key:
            return index[place]
        place = (place + 1) & mask
    return 0


@compiled
def _insert(integers: Integers, horizons: Floats, words: Floats, index: Integers, key: int, now: float) -> Any:
    """A row for a new entity; if there is no room, that of the least informative one among some."""
    if integers[USED] < integers[ROOM]:
        integers[USED] += 1
        slot = integers[USED]
    else:
        slot = _least_informative(integers, horizons, words, now)
        _unindex(index, words, slot)
        integers[N_EVICTED] += 1
    words[slot] = 0.0
    words[slot, KEY] = key
    words[slot, TOUCHED] = now
    words[slot, LATEST] = np.nan
    mask = len(index) - 1
    place = key & mask
    while index[place] != 0:
        place = (place + 1) & mask
    index[place] = slot
    return slot


@compiled
def _least_informative(integers: Integers, horizons: Floats, words: Floats, now: float) -> int:
    """Of some entities in turn, the one with the least weight of rows and labels, or, if equal, unseen the longest."""
    n_horizons, best, least, oldest = len(horizons), 0, np.inf, np.inf
    for _ in range(min(CANDIDATES, integers[USED])):
        integers[HAND] = (integers[HAND] + 1) % SPREAD
        slot = integers[HAND] * SPREAD % integers[USED] + 1
        weight = words[slot, HEAD + n_horizons - 1] * _decay(now - words[slot, TOUCHED], horizons[n_horizons - 1])
        of_labels = _decay(now - words[slot, LABELLED], horizons[n_horizons - 1])
        for block in range(1, 1 + integers[N_CLASSES]):
            weight += words[slot, HEAD + block * n_horizons + n_horizons - 1] * of_labels
        latest = words[slot, LATEST]
        latest = -np.inf if math.isnan(latest) else latest
        if weight < least or (weight == least and latest < oldest):
            best, least, oldest = slot, weight, latest
    return best


@compiled
def _unindex(index: Integers, words: Floats, slot: int) -> None:
    """Remove an entity from the index; those after it move up."""
    mask = len(index) - 1
    place = np.int64(words[slot, KEY]) & mask
    while index[place] != slot:
        place = (place + 1) & mask
    following = (place + 1) & mask
    while index[following] != 0:
        home = np.int64(words[index[following], KEY]) & mask
        if ((following - home) & mask) >= ((following - place) & mask):
            index[place] = index[following]
            place = following
        following = (following + 1) & mask
    index[place] = 0


@compiled
def _remove_if_empty(integers: Integers, horizons: Floats, words: Floats, index: Integers, slot: int) -> None:
    """Remove an entity without rows and labels; the last one takes its place."""
    if words[slot, N_ROWS] > 0.0:
        return
    start = HEAD + len(horizons)
    for k in range(start, start + len(horizons) * integers[N_CLASSES]):
        if words[slot, k] > NOTHING:
            return
    _unindex(index, words, slot)
    last = integers[USED]
    if last != slot:
        mask = len(index) - 1
        place = np.int64(words[last, KEY]) & mask
        while index[place] != last:
            place = (place + 1) & mask
        index[place] = slot
        for k in range(words.shape[1]):
            words[slot, k] = words[last, k]
    words[last] = 0.0
    integers[USED] -= 1


# --- Horizons -----------------------------------------------------------------------------------------------------


@compiled
def _elapsed(integers: Integers, floats: Floats, time: float) -> Any:
    """The clock of a group: 0 until its horizons are found."""
    return time - floats[BEGAN] if integers[SETTLED] != 0 and time > floats[BEGAN] else 0.0


@compiled
def _note_gap(integers: Integers, floats: Floats, words: Floats, slot: int, time: float) -> None:
    """Count the time since the latest row of an entity among such times."""
    if math.isnan(words[slot, LATEST]) or math.isnan(time):
        return
    gap = max(time - words[slot, LATEST], 0.0)
    integers[N_GAPS] += 1
    floats[LOG_GAP] += (math.log(1.0 + gap) - floats[LOG_GAP]) / min(integers[N_GAPS], 10_000)


@compiled
def _settle(integers: Integers, floats: Floats, horizons: Floats, ladder: Floats, time: float) -> None:
    """Find the horizons: the shortest is near the mean time between two rows of an entity, or a step of the clock."""
    gap = (time - floats[BEGAN]) * integers[USED] / integers[N_COME]
    wanted = max(SHORTEST * gap, floats[STEP])
    if not wanted > 0.0:
        return
    first = 0
    while first < len(ladder) - len(horizons) and ladder[first] * ladder[first + 1] < wanted * wanted:
        first += 1
    for h in range(len(horizons)):
        if len(ladder) > 0:
            horizons[h] = ladder[first + h]
        else:
            longer = wanted * STEPS[h]
            power = math.floor(math.log10(longer))
            digit = math.ceil(longer / 10.0**power - 1e-9)
            horizons[h] = digit * 10.0**power if power >= 0 else digit / 10.0**-power
    floats[BEGAN] = time
    floats[BEFORE_NOW] = np.nan
    integers[SETTLED] = 1


@compiled
def _decay(elapsed: float, horizon: float) -> float:
    return math.exp(-elapsed / horizon) if elapsed > 0.0 else 1.0


# --- One entity ---------------------------------------------------------------------------------------------------


@compiled
def _number(integers: Integers, n_horizons: int, column: int, horizon: int) -> Any:
    """Where the moments of a column of numbers begin."""
    return HEAD + n_horizons * (1 + integers[N_CLASSES]) + MOMENTS * (column * n_horizons + horizon)


@compiled
def _category(integers: Integers, n_horizons: int, n_numbers: int, column: int) -> Any:
    """Where the values of a column of categories begin."""
    return _number(integers, n_horizons, n_numbers, 0) + 2 * KEPT * column


@compiled
def _touch(
    integers: Integers, horizons: Floats, words: Floats, judged: Floats, slot: int, now: float, n_numbers: int
) -> None:
    """Let the sums of an entity decay up to the present."""
    elapsed = now - words[slot, TOUCHED]
    if elapsed <= 0.0:
        return
    words[slot, TOUCHED] = now
    n_horizons = len(horizons)
    for h in range(n_horizons):
        factor = _decay(elapsed, horizons[h])
        words[slot, HEAD + h] *= factor
        for k in range(n_numbers):
            if judged[k, GIVEN_UP] == 0.0:
                start = _number(integers, n_horizons, k, h)
                words[slot, start] *= factor
                words[slot, start + 2] *= factor
        if h == n_horizons - 1:
            for k in range(n_numbers, len(judged)):
                if judged[k, GIVEN_UP] == 0.0:
                    start = _category(integers, n_horizons, n_numbers, k - n_numbers)
                    for place in range(KEPT):
                        words[slot, start + KEPT + place] *= factor


@compiled
def _add(
    integers: Integers, words: Floats, judged: Floats, slot: int, numbers: Floats, values: Integers, n_horizons: int
) -> None:
    """Add a row to an entity whose sums are of the present."""
    words[slot, N_ROWS] += 1.0
    for h in range(n_horizons):
        words[slot, HEAD + h] += 1.0
    for k in range(len(numbers)):
        if judged[k, GIVEN_UP] == 0.0 and not math.isnan(numbers[k]):
            for h in range(n_horizons):
                _meet(words, slot, _number(integers, n_horizons, k, h), numbers[k])
    for k in range(len(values)):
        if judged[len(numbers) + k, GIVEN_UP] == 0.0 and values[k] != 0:
            _count(words, slot, _category(integers, n_horizons, len(numbers), k), values[k])


@compiled
def _meet(words: Floats, slot: int, start: int, value: float) -> None:
    """Add a value to a weighted mean and variance."""
    words[slot, start] += 1.0
    delta = value - words[slot, start + 1]
    words[slot, start + 1] += delta / words[slot, start]
    words[slot, start + 2] += delta * (value - words[slot, start + 1])


@compiled
def _unmeet(words: Floats, slot: int, start: int, value: float, weight: float) -> None:
    """Take a value out of a weighted mean and variance."""
    left = words[slot, start] - weight
    if left <= TINY:
        for k in range(MOMENTS):
            words[slot, start + k] = 0.0
        return
    delta = value - words[slot, start + 1]
    words[slot, start] = left
    words[slot, start + 1] -= delta * (weight / left)
    squares = words[slot, start + 2] - weight * delta * (value - words[slot, start + 1])
    rounding = max(
        LEAST_DEVIATION**2 * left * max(words[slot, start + 1] ** 2, value * value),
        ROUNDING * weight / left * words[slot, start + 2],
    )
    words[slot, start + 2] = squares if squares > rounding else 0.0


@compiled
def _count(words: Floats, slot: int, start: int, value: int) -> None:
    """Add to the weight of a value; the one with the least weight makes room."""
    least = 0
    for place in range(KEPT):
        if words[slot, start + place] == value:
            words[slot, start + KEPT + place] += 1.0
            return
        if words[slot, start + KEPT + place] < words[slot, start + KEPT + least]:
            least = place
    words[slot, start + least] = value
    words[slot, start + KEPT + least] = 1.0


@compiled
def _uncount(words: Floats, slot: int, start: int, value: int, weight: float) -> None:
    """Take weight from a value, which goes if none is left."""
    for place in range(KEPT):
        if value != 0 and words[slot, start + place] == value:
            left = words[slot, start + KEPT + place] - weight
            words[slot, start + KEPT + place] = left if left > NOTHING else 0.0
            words[slot, start + place] = value if left > NOTHING else 0.0


@compiled
def _weight_of(words: Floats, slot: int, start: int, value: int) -> Any:
    for place in range(KEPT):
        if words[slot, start + place] == value:
            return words[slot, start + KEPT + place]
    return 0.0


@compiled
def _describe(
    integers: Integers,
    floats: Floats,
    horizons: Floats,
    words: Floats,
    judged: Floats,
    slot: int,
    time: float,
    numbers: Floats,
    values: Integers,
    out: Floats,
) -> None:
    """What is known of an entity, whose sums are of the present; of one without a row, or without a name, the usual."""
    n_horizons = len(horizons)
    latest = words[slot, LATEST] if slot > 0 else np.nan
    out[0] = floats[LOG_GAP] if math.isnan(latest) else math.log(1.0 + max(time - latest, 0.0))
    place = 1
    for h in range(n_horizons):
        out[place] = math.log(1.0 + words[slot, HEAD + h]) if slot > 0 else 0.0
        place += 1
    for code in range(1, integers[N_CLASSES]):
        for h in range(n_horizons):
            out[place] = _share(integers, words, slot, n_horizons, code, h)
            place += 1
    for k in range(len(numbers)):
        if judged[k, GIVEN_UP] != 0.0:
            for _ in range(2 * n_horizons + 1):
                out[place] = 0.0
                place += 1
            continue
        deviation = 0.0
        for h in range(n_horizons):
            start = _number(integers, n_horizons, k, h)
            usual, spread = words[0, start + 1], _variance(words, 0, start)
            weight = words[slot, start] if slot > 0 else 0.0
            mean, variance = usual, spread
            if weight > TINY:
                mean = (weight * words[slot, start + 1] + DRAWN * usual) / (weight + DRAWN)
                variance = (words[slot, start + 2] + DRAWN * spread) / (weight + DRAWN)
            deviation = math.sqrt(variance)
            known = not math.isnan(numbers[k]) and deviation > LEAST_DEVIATION * max(abs(mean), TINY)
            position = (numbers[k] - mean) / deviation if known else 0.0
            out[place] = mean
            out[place + 1] = math.copysign(math.log(1.0 + abs(position)), position)
            place += 2
        out[place] = deviation
        place += 1
    for k in range(len(values)):
        out[place] = out[place + 1] = 0.0
        if judged[len(numbers) + k, GIVEN_UP] == 0.0:
            if values[k] != 0:
                out[place] = _more_usual(integers, words, slot, n_horizons, len(numbers), k, values[k])
            if slot > 0:
                start = _category(integers, n_horizons, len(numbers), k)
                for each in range(KEPT):
                    out[place + 1] += min(words[slot, start + KEPT + each], 1.0)
        place += 2


@compiled
def _more_usual(
    integers: Integers, words: Floats, slot: int, n_horizons: int, n_numbers: int, column: int, value: int
) -> Any:
    """How much more usual a value is for an entity than for all, as a logarithm."""
    start, place = _category(integers, n_horizons, n_numbers, column), HEAD + n_horizons - 1
    overall = words[0, place]
    expected = LEAST_SHARE + (DRAWN * _weight_of(words, 0, start, value) / overall if overall > TINY else 0.0)
    n = words[slot, place] if slot > 0 else 0.0
    own = _weight_of(words, slot, start, value) if slot > 0 else 0.0
    return math.log((own + expected) / ((n + DRAWN) * expected))


@compiled
def _judge(
    integers: Integers, horizons: Floats, words: Floats, judged: Floats, slot: int, numbers: Floats, values: Integers
) -> None:
    """Give up a column about whose values entities tell nothing: they are as far from the usual one of their entity."""
    if slot == 0 or words[slot, N_ROWS] == 0.0:
        return
    n_horizons, n_numbers = len(horizons), len(numbers)
    for k in range(n_numbers + len(values)):
        if judged[k, JUDGED] == ENOUGH_VALUES or judged[k, GIVEN_UP] != 0.0:
            continue
        if k < n_numbers:
            if math.isnan(numbers[k]):
                continue
            start = _number(integers, n_horizons, k, n_horizons - 1)
            usual, weight = words[0, start + 1], words[slot, start]
            mean = (weight * words[slot, start + 1] + DRAWN * usual) / (weight + DRAWN)
            judged[k, FROM_OWN] += abs(numbers[k] - mean)
            judged[k, FROM_ALL] += abs(numbers[k] - usual)
        else:
            value = values[k - n_numbers]
            if value == 0:
                continue
            judged[k, FROM_OWN] -= _more_usual(integers, words, slot, n_horizons, n_numbers, k - n_numbers, value)
        judged[k, JUDGED] += 1.0
        if judged[k, JUDGED] == ENOUGH_VALUES and judged[k, FROM_OWN] >= TELLING * judged[k, FROM_ALL]:
            _give_up(integers, words, judged, k, n_horizons, n_numbers, UNTOLD)


@compiled
def _give_up(
    integers: Integers, words: Floats, judged: Floats, column: int, n_horizons: int, n_numbers: int, why: float
) -> None:
    """Keep nothing of a column any longer, and forget what was kept."""
    judged[column, GIVEN_UP] = why
    if column < n_numbers:
        start, size = _number(integers, n_horizons, column, 0), MOMENTS * n_horizons
    else:
        start, size = _category(integers, n_horizons, n_numbers, column - n_numbers), 2 * KEPT
    for slot in range(integers[USED] + 1):
        for k in range(start, start + size):
            words[slot, k] = 0.0


@compiled
def _share(integers: Integers, words: Floats, slot: int, n_horizons: int, code: int, h: int) -> Any:
    """The share of a class among the labels lately, drawn towards its overall share."""
    longest, total, overall = n_horizons - 1, 0.0, 0.0
    for each in range(integers[N_CLASSES]):
        block = HEAD + n_horizons * (1 + each)
        overall += words[0, block + longest]
        total += words[slot, block + h] if slot > 0 else 0.0
    block = HEAD + n_horizons * (1 + code)
    usual = words[0, block + longest] / overall if overall > TINY else 0.0
    own = words[slot, block + h] if slot > 0 else 0.0
    return (own + DRAWN * usual) / (total + DRAWN)


@compiled
def _variance(words: Floats, slot: int, start: int) -> Any:
    return words[slot, start + 2] / words[slot, start] if words[slot, start] > 0.0 else 0.0
