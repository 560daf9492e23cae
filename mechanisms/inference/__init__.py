"""What a coalition can infer from a device's reports, how often its best guess is right, and what forgers can move."""

from mechanisms.inference.dropped import dropped_others_success, dropped_target_success
from mechanisms.inference.forged_reports import candidate_reports, contribution, forged_reports
from mechanisms.inference.inflation import Inflation, crafted_encodings, inflation
from mechanisms.inference.known_others import (
    OwnReportMasses,
    difference_guess_success,
    difference_log_ratio,
    known_others_guess_success,
    known_others_log_likelihood,
    own_reports_guess_success,
)
from mechanisms.inference.likelihood import log_likelihood, report_law
from mechanisms.inference.no_likelihood import NoLikelihoodError
from mechanisms.inference.posterior import best_guess, guess_cells, posterior
from mechanisms.inference.repeated import repeated_guess_success, repeated_log_likelihood
from mechanisms.inference.report_law import ReportLaw
from mechanisms.inference.sampled_devices import sampled_guess_success, sampled_posterior
from mechanisms.inference.simulated import SimulatedSuccess, simulated_guess_success
from mechanisms.inference.success import guess_success, protocol_matrix
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
