"""Inference of a device's cell from its reports, success of the best guess, and the effect of forged reports."""

from mechanisms.inference.bayes_success import guess_success, protocol_matrix, sampled_guess_success, sampled_posterior
from mechanisms.inference.dropout import dropped_others_success, dropped_target_success
from mechanisms.inference.known_others import (
    OwnReportMasses,
    difference_guess_success,
    difference_log_ratio,
    known_others_guess_success,
    known_others_log_likelihood,
    own_reports_guess_success,
)
from mechanisms.inference.likelihood import log_likelihood, report_law
from mechanisms.inference.longitudinal import (
    SimulatedSuccess,
    repeated_guess_success,
    repeated_log_likelihood,
    simulated_guess_success,
)
from mechanisms.inference.poisoning import (
    Inflation,
    candidate_reports,
    contribution,
    crafted_encodings,
    forged_reports,
    inflation,
)
from mechanisms.inference.posterior import best_guess, guess_cells, posterior
from mechanisms.inference.report_law import NoLikelihoodError, ReportLaw
from mechanisms.parameter import ParameterError

__all__ = [
    "Inflation",
    "NoLikelihoodError",
    "OwnReportMasses",
    "ParameterError",
    "ReportLaw",
    "SimulatedSuccess",
    "best_guess",
    "candidate_reports",
    "contribution",
    "crafted_encodings",
    "difference_guess_success",
    "difference_log_ratio",
    "dropped_others_success",
    "dropped_target_success",
    "forged_reports",
    "guess_cells",
    "guess_success",
    "inflation",
    "known_others_guess_success",
    "known_others_log_likelihood",
    "log_likelihood",
    "own_reports_guess_success",
    "posterior",
    "protocol_matrix",
    "repeated_guess_success",
    "repeated_log_likelihood",
    "report_law",
    "sampled_guess_success",
    "sampled_posterior",
    "simulated_guess_success",
]
