"""A mechanism whose reports cannot be weighed."""


class NoLikelihoodError(NotImplementedError):
    """Nobody has said how likely these reports are from each truth, so no best guess can be made from them.

    Parameters
    ----------
    mechanism : str
        Which one.
    reason : str
        What is missing, as a sentence.
    """

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(mechanism, reason)
        self.mechanism = mechanism
        self.reason = reason

    def __str__(self) -> str:
        """Mechanism and reason in one sentence."""
        return f"{self.mechanism} has no likelihood: {self.reason}"
