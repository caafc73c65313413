"""What a line of the table is, and how it is measured: heap and rdmacc in turns, round by round, each
first in every other round, so that a slow moment of the machine meets both."""

import statistics
import subprocess
from dataclasses import dataclass, field

from sandbox import Failure


@dataclass
class Sample:
    """One round of one side: a rate, or a time."""
    value: float = 0.0
    note: str = ""  # a remark, such as a statement's time limit that was met
    refused: str = ""  # an error: there is no value
    rows: list = None  # what was printed, where both sides have to print the same
    counts: dict = field(default_factory=dict)  # what is added up over the rounds, such as retries
    last: bool = False  # further rounds would cost much and tell nothing


class Skipped(Exception):
    """A line cannot be measured on this machine; why."""


@dataclass
class Result:
    group: str
    name: str
    unit: str
    target: float
    heap: list = field(default_factory=list)
    rdmacc: list = field(default_factory=list)
    ratios: list = field(default_factory=list)
    ratio: float = None
    verdict: str = ""
    notes: list = field(default_factory=list)


class Line:
    """A line knows group, name, unit and target, and measures one round of one side."""
    group = name = unit = ""
    target = 1.0
    by_time = False  # the smaller value is the faster one
    at_most = False  # the target is of rdmacc's value itself, and not of the ratio

    def sample(self, side, turn):
        raise NotImplementedError

    def measure(self, sides, rounds, progress):
        result = Result(self.group, self.name, self.unit, self.target)
        counts = {}
        try:
            for turn in range(rounds):
                samples = {}
                for side in sides if turn % 2 == 0 else sides[::-1]:
                    progress(f"{self.group}: {self.name}, {side.name}, round {turn + 1} of {rounds}",
                             self)
                    samples[side.name] = self.sample(side, turn)
                self._add(result, samples, counts)
                if result.verdict or any(sample.last for sample in samples.values()):
                    break
        except Skipped as why:
            result.verdict, result.notes = "skipped", [str(why)]
            return result
        except (Failure, subprocess.SubprocessError) as failure:
            result.verdict = "refused"
            result.notes.append(str(failure).replace("\n", " ")[-200:])
        self._judge(result, counts)
        return result

    def _add(self, result, samples, counts):
        for name, sample in samples.items():
            for what, count in sample.counts.items():
                counts.setdefault(what, {"heap": 0, "rdmacc": 0})[name] += count
            if sample.refused:
                result.verdict = "refused"
                result.notes.append(("" if name == "rdmacc" else "heap: ") + sample.refused)
            elif sample.note:
                result.notes.append(f"{name}: {sample.note}")
        heap, rdmacc = samples["heap"], samples["rdmacc"]
        if result.verdict:
            return
        result.heap.append(heap.value)
        result.rdmacc.append(rdmacc.value)
        faster = (heap.value, rdmacc.value) if self.by_time else (rdmacc.value, heap.value)
        result.ratios.append(faster[0] / faster[1] if faster[1] else 0.0)
        if heap.rows != rdmacc.rows:
            result.verdict = "differs"
            result.notes.append(difference(heap.rows, rdmacc.rows))

    def _judge(self, result, counts):
        for what, both in counts.items():
            if any(both.values()):
                result.notes.append(f"{what} {both['heap']:,} / {both['rdmacc']:,}")
        result.notes = list(dict.fromkeys(result.notes))
        if not result.ratios:
            return
        result.ratio = statistics.median(result.ratios)
        if not result.verdict:
            met = (statistics.median(result.rdmacc) <= self.target if self.at_most
                   else result.ratio >= self.target)
            result.verdict = "pass" if met else "short"


def difference(heap, rdmacc):
    for row in range(max(len(heap), len(rdmacc))):
        pair = [rows[row] if row < len(rows) else "nothing" for rows in (heap, rdmacc)]
        if pair[0] != pair[1]:
            return f"results differ: heap {pair[0][:60]!r}, rdmacc {pair[1][:60]!r}"
    return ""
