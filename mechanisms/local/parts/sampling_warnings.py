"""What the Sampling Privacy paper advises against, said before it is used."""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.parameter import ParameterWarning


def sampling_warnings(*, sampling: float, blank_zero: float, blanks: ArrayLike) -> list[str]:
    """Return a sentence for each thing in these parameters that the paper, or its own mathematics, advises against.

    Parameters
    ----------
    sampling : float
        π_s.
    blank_zero : float
        π_0.
    blanks : (values,) float
        The probabilities of the other blank faces.
    """
    sentences = []
    if sampling >= 0.5:
        sentences.append(f"sampling: the paper asks for less than 1/2 (SP sec 3.1), got {sampling:g}.")
    if blank_zero == 0.0:
        sentences.append(
            "blank_zero: with π_0 = 0 an answer 0 in round one says that the device is sampled and will tell the "
            "truth, and in round two that it is outside every cell."
        )
    if np.min(blanks) == 0.0:
        sentences.append(
            "blank: a value that no blank face says is answered in round two by its own devices only, which tells "
            "with certainty."
        )
    return sentences


def warn(sentences: list[str], *, stacklevel: int) -> None:
    """Warn with each sentence, at the caller so many frames above this one's."""
    for sentence in sentences:
        warnings.warn(sentence, ParameterWarning, stacklevel=stacklevel + 1)
