"""A mechanism whose answers do not tell the count it was asked for."""


class NotEstimableError(ValueError):
    """No unbiased estimate of the devices in a cell can be made from these answers.

    The mechanism itself is sound: it answers, its tallies have their law and its claims hold. They only do not tell
    what was asked.

    Parameters
    ----------
    mechanism : str
        Which one.
    reason : str
        Why, as a sentence.
    """

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(mechanism, reason)
        self.mechanism = mechanism
        self.reason = reason

    def __str__(self) -> str:
        """Mechanism and reason in one sentence."""
        return f"{self.mechanism} cannot be estimated: {self.reason}"
