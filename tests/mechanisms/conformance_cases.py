"""Every mechanism, small and in several settings: each must pass every check."""

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt

GOOD = {
    "no privacy": NoPrivacy(cells=3),
    "no privacy, one cell": NoPrivacy(cells=1),
    "randomized response": RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2),
    "randomized response, all truth": RandomizedResponse(cells=2, first_coin=1.0, second_coin=0.5),
    "randomized response, never a false Yes": RandomizedResponse(cells=2, first_coin=0.5, second_coin=0.0),
    "randomized response, one cell": RandomizedResponse(cells=1, first_coin=0.6, second_coin=0.9),
    "sampling": SamplingPrivacy(cells=3, sampling=0.45),
    "sampling, one cell": SamplingPrivacy(cells=1, sampling=0.2),
    "sampling, unequal blanks": SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05]),
    "sampling, no blank zero": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0),
    "sampling, all": SamplingPrivacy(cells=2, sampling=1.0),
    "sampling, many cells": SamplingPrivacy(cells=6, sampling=0.45),
    "binary sampling": BinarySamplingPrivacy(cells=3, sampling=0.45),
    "binary sampling, unequal": BinarySamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.6),
    "binary sampling, no blank zero": BinarySamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.0),
}

MORE = {
    KRandomizedResponse: [{"cells": 3, "epsilon": 1.2}, {"cells": 1, "epsilon": 3.0}],
    SymmetricUnary: [{"cells": 3, "epsilon": 1.2}],
    OptimisedUnary: [{"cells": 3, "epsilon": 1.2}],
    ThresholdHistogram: [{"cells": 3, "epsilon": 1.2}],
    LocalHashing: [{"cells": 3, "epsilon": 1.2}],
    SamplingPrivacy: [{"cells": 3, "sampling": 0.4, "refresh": 0.3}, {"cells": 2, "sampling": 0.3, "refresh": 1.0}],
    SubsetSelection: [{"cells": 3, "epsilon": 1.2}, {"cells": 6, "epsilon": 0.8}, {"cells": 1, "epsilon": 1.0}],
    HadamardResponse: [{"cells": 3, "epsilon": 1.2}],
    LongitudinalUnary: [{"cells": 3, "epsilon_permanent": 3.0, "epsilon_first": 1.0}],
    DistributedLaplace: [{"cells": 2, "epsilon": 1.0, "devices": 24}],
    Warner: [{"cells": 3, "truthful": 0.75}],
    SampledResponse: [{"cells": 3, "sampling": 0.6, "first_coin": 0.7, "second_coin": 0.3}],
    SamplingAndNoise: [{"cells": 3, "sampling": 0.4}],
    AnonymizedLocal: [
        {
            "cells": 2,
            "sampling_yes_one": 0.5,
            "sampling_yes_two": 0.3,
            "sampling_no": 0.7,
            "first_coin": 0.8,
            "second_coin": 0.7,
            "third_coin": 0.2,
        }
    ],
    AnonymizedDeniable: [
        {
            "cells": 2,
            "shift": 0.6,
            "yes_second": 0.6,
            "yes_third": 0.4,
            "no_second": 0.4,
            "no_third": 0.6,
            "onward": 0.6,
            "onward_yes": onward_yes,
        }
        for onward_yes in (0.0, 0.3)
    ],
    AnonymizedCancelling: [{"cells": 2, "shift": 0.3}],
    AnonymizedFirstAttempt: [{"cells": 2, "base": 0.3, "shift_yes": 0.2, "shift_no": 0.1}],
}
GOOD |= {
    f"{kind.__name__} {parameters}": kind(**parameters) for kind, settings in MORE.items() for parameters in settings
}
