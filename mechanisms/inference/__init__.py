"""Inference of a device's cell from its reports, success of the best guess, and the effect of forged reports."""

# A name imported as itself is exported.
from mechanisms.inference.bayes_success import guess_success as guess_success
from mechanisms.inference.bayes_success import sampled_guess_success as sampled_guess_success
from mechanisms.inference.bayes_success import sampled_posterior as sampled_posterior
from mechanisms.inference.direct_encoding import OwnValueLaw as OwnValueLaw
from mechanisms.inference.dropout import dropped_others_success as dropped_others_success
from mechanisms.inference.dropout import released_twice_success as released_twice_success
from mechanisms.inference.known_others import OwnReportMasses as OwnReportMasses
from mechanisms.inference.known_others import difference_log_ratio as difference_log_ratio
from mechanisms.inference.known_others import own_reports_guess_success as own_reports_guess_success
from mechanisms.inference.likelihood import best_guess as best_guess
from mechanisms.inference.likelihood import guess_cells as guess_cells
from mechanisms.inference.likelihood import log_likelihood as log_likelihood
from mechanisms.inference.likelihood import posterior as posterior
from mechanisms.inference.likelihood import repeated_log_likelihood as repeated_log_likelihood
from mechanisms.inference.likelihood import report_law as report_law
from mechanisms.inference.poisoning import candidate_reports as candidate_reports
from mechanisms.inference.poisoning import contribution as contribution
from mechanisms.inference.poisoning import crafted_encodings as crafted_encodings
from mechanisms.inference.poisoning import forged_reports as forged_reports
from mechanisms.inference.report_law import NoLikelihoodError as NoLikelihoodError
from mechanisms.inference.report_law import ReportLaw as ReportLaw
