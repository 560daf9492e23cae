"""Binary query mechanisms with a distribution of answers, one of each form, small enough to enumerate."""

from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt

LOCAL = {
    "sampling_yes_one": 0.4,
    "sampling_yes_two": 0.3,
    "sampling_no": 0.35,
    "first_coin": 0.8,
    "second_coin": 0.5,
    "third_coin": 0.2,
}
DENIABLE = {
    "shift": 0.2,
    "yes_second": 0.3,
    "yes_third": 0.3,
    "no_second": 0.3,
    "no_third": 0.4,
    "onward": 0.4,
}
QUESTIONS = {
    "warner": Warner(cells=3, truthful=0.7),
    "warner, liars, many cells": Warner(cells=130, truthful=0.2),
    "noise, two rates": SamplingAndNoise(cells=3, sampling=0.5, sampling_no=0.1),
    "value": SamplingAndNoise(cells=2, sampling=0.5, sampling_no=0.3, says="value"),
    "toy 2": SampledResponse(cells=3, sampling=0.6, first_coin=0.7, second_coin=0.4),
    "toy 2, two rates": SampledResponse(
        cells=1, sampling=0.6, sampling_no=0.3, first_coin=0.7, second_coin=0.4, estimator="best"
    ),
    "anonymized, yes": AnonymizedLocal(cells=3, **LOCAL, estimator="yes"),
    "anonymized, no": AnonymizedLocal(cells=3, **LOCAL, estimator="no"),
    "anonymized, silent": AnonymizedLocal(cells=1, **LOCAL, estimator="silent"),
    "anonymized, best": AnonymizedLocal(cells=3, **LOCAL),
    "anonymized, best, many cells": AnonymizedLocal(cells=130, **LOCAL, yes_share=0.05),
    "first attempt": AnonymizedFirstAttempt(cells=3, base=0.4, shift_yes=0.3, shift_no=0.1),
    "cancelling": AnonymizedCancelling(cells=3, shift=0.3),
    "cancelling, one cell": AnonymizedCancelling(cells=1, shift=0.45, stay=[0.05, 0.5, 0.0]),
    "deniable": AnonymizedDeniable(cells=2, **DENIABLE),
    "deniable, both ways": AnonymizedDeniable(cells=1, **{**DENIABLE, "shift": 0.7}, onward_yes=0.1),
}
