"""The ε that a mechanism's paper states, for comparison with the exact one."""

from dataclasses import dataclass

from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.mechanism import LocalMechanism
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.unary_encoding import RandomizedResponse
from mechanisms.privacy.sampling_privacy_claims import (
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)


@dataclass(frozen=True, slots=True)
class Printed:
    """The privacy leakage ε that a paper states for a mechanism.

    Parameters
    ----------
    epsilon : float
        ε as published; infinite where the paper's formula divides by zero.
    equation : str
        The equation of the paper.
    note : str
        What the equation leaves out.
    """

    epsilon: float
    equation: str
    note: str


def printed_by_paper(mechanism: LocalMechanism) -> Printed | None:
    """Return the leakage that the mechanism's paper states; None where the paper states none."""
    match mechanism:
        case SamplingPrivacy():
            epsilon = printed_multi_value_leakage(sampling=mechanism.sampling, blanks=mechanism.blanks[1:])
            note = (
                "round two alone, over the cells only: it leaves out the dummy 0 that devices outside answer, and "
                "an observer who links a device's two answers"
            )
            return Printed(epsilon, "SP eq 29", note)
        case BinarySamplingPrivacy():
            epsilon = printed_binary_leakage(sampling=mechanism.sampling, blank_zero=mechanism.faces[0])
            note = (
                "round two alone, of one question: asked about every cell a move changes two answers, and it leaves "
                "out an observer who links a device's two answers"
            )
            return Printed(epsilon, "SP eqs 18-25", note)
        case RandomizedResponse():
            epsilon = printed_randomized_response_leakage(
                first_coin=mechanism.first_coin, second_coin=mechanism.second_coin
            )
            note = "the answer Yes to one question: it leaves out the answer No, and that every cell is asked about"
            return Printed(epsilon, "SP eq 30", note)
        case _:
            return None
