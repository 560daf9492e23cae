"""Inference of a device's cell from its reports, success of the best guess, and the effect of forged reports."""

from mechanisms.inference.bayes_success import guess_success, sampled_guess_success, sampled_posterior
from mechanisms.inference.direct_encoding import OwnValueLaw
from mechanisms.inference.dropout import dropped_others_success, released_twice_success
from mechanisms.inference.known_others import OwnReportMasses, difference_log_ratio, own_reports_guess_success
from mechanisms.inference.likelihood import (
    best_guess,
    guess_cells,
    log_likelihood,
    posterior,
    repeated_log_likelihood,
    report_law,
)
from mechanisms.inference.poisoning import candidate_reports, contribution, crafted_encodings, forged_reports
from mechanisms.inference.report_law import NoLikelihoodError, ReportLaw

__all__ = [
    "NoLikelihoodError",
    "OwnReportMasses",
    "OwnValueLaw",
    "ReportLaw",
    "best_guess",
    "candidate_reports",
    "contribution",
    "crafted_encodings",
    "difference_log_ratio",
    "dropped_others_success",
    "forged_reports",
    "guess_cells",
    "guess_success",
    "log_likelihood",
    "own_reports_guess_success",
    "posterior",
    "released_twice_success",
    "repeated_log_likelihood",
    "report_law",
    "sampled_guess_success",
    "sampled_posterior",
]
