"""A seed's random choices, in the words of what draws them."""

import random


class Draw:
    def __init__(self, seed, several=False):
        self.random = random.Random(seed)
        self.several = several  # sessions: no numbers of sequences, which no order explains

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def number(self, first, last):
        return self.random.randint(first, last)

    def pick(self, choices):
        return self.random.choice(choices)

    def some(self, choices, least, most):
        """That many different ones, in any order."""
        choices = list(choices)
        count = min(len(choices), self.number(least, most))
        return self.random.sample(choices, count)

    def weighted(self, weights):
        """A key of {key: weight}."""
        return self.random.choices(list(weights), list(weights.values()))[0]
