"""Paths guessed by a hidden Markov model: figures by enumeration, and sparse chains against all paths and reports."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from mechanisms.inference.likelihood import guess_success, log_likelihood, posterior, report_law
from mechanisms.inference.markov import Chain
from mechanisms.local import KRandomizedResponse, NoPrivacy, ParameterError

REPORTS = KRandomizedResponse(cells=2, epsilon=1.0)
MASSES = report_law(REPORTS).outcomes().masses


def staying(stays, steps, *, start=None, places=3):
    """Return the chain of a place that stays with a probability, or else goes to any other place alike."""
    moves = np.full((places, places), (1.0 - stays) / (places - 1))
    np.fill_diagonal(moves, stays)
    start = np.full(places, 1.0 / places) if start is None else start
    return Chain(start, [csr_array(moves)] * (steps - 1))


def random_chain(rng, places, steps):
    """Return a chain with another sparse matrix in each step, and a start with a zero."""
    moves = []
    for _ in range(steps - 1):
        matrix = rng.random((places, places)) * (rng.random((places, places)) < 0.6)
        matrix[np.arange(places), rng.integers(places, size=places)] += 0.1
        moves.append(csr_array(matrix / matrix.sum(axis=1, keepdims=True)))
    start = rng.random(places) * (np.arange(places) != rng.integers(places))
    return Chain(start / start.sum(), moves)


def joint_of(chain, given):
    """Return all paths, and for one device's probabilities of its reports (T, places) the joint probability of each."""
    paths = list(itertools.product(range(len(chain.start)), repeat=chain.steps))
    dense = [matrix.toarray() for matrix in chain.moves]
    joint = [
        chain.start[path[0]]
        * np.prod([dense[step][path[step], path[step + 1]] for step in range(chain.steps - 1)])
        * np.prod([given[step][place] for step, place in enumerate(path)])
        for path in paths
    ]
    return np.array(paths), np.array(joint)


@pytest.mark.parametrize(
    ("steps", "stays", "smoothing", "whole", "whole_by_steps"),
    [
        (3, 0.8, 0.598076, 0.425632, 0.396332),
        (5, 0.8, 0.615576, 0.301189, 0.245132),
        (6, 0.95, 0.719158, 0.595694, 0.557761),
        (5, 1 / 3, 0.576117, 0.063468, 0.063468),
    ],
)
def test_success_of_randomized_response_over_a_symmetric_chain(steps, stays, smoothing, whole, whole_by_steps):
    steps_first, path_first = staying(stays, steps).success([MASSES] * steps)
    assert guess_success(REPORTS, None, np.full(3, 1 / 3)) == pytest.approx(0.576117, abs=5e-7)
    assert steps_first.steps.mean() == pytest.approx(smoothing, abs=5e-7)
    assert path_first.path == pytest.approx(whole, abs=5e-7)
    assert steps_first.path == pytest.approx(whole_by_steps, abs=5e-7)


@pytest.mark.parametrize(("places", "steps", "seed"), [(3, 5, 1), (4, 4, 2), (5, 3, 3), (2, 5, 4)])
def test_every_score_agrees_with_all_paths_and_all_reports(places, steps, seed):
    rng = np.random.default_rng(seed)
    chain, outcomes = random_chain(rng, places, steps), 2 if places > 3 else 3
    masses = [rng.dirichlet(np.full(outcomes, 0.5), places) for _ in range(steps)]
    masses[0][0] = np.eye(outcomes)[0]
    masses[1] = np.ones((places, 1))  # no report in this step
    steps_first, path_first = chain.success(masses)
    steps_right, path_right, by_steps, of_path = np.zeros(steps), 0.0, 0.0, np.zeros(steps)
    for sent in itertools.product(*(range(mass.shape[1]) for mass in masses)):
        given = np.stack([mass[:, report] for mass, report in zip(masses, sent, strict=True)])
        paths, joint = joint_of(chain, given)
        each = np.stack([np.bincount(path, joint, places) for path in paths.T])
        with np.errstate(divide="ignore"):
            after, evidence = chain.smoothed(np.log(given)[:, np.newaxis])
            best = chain.likeliest(np.log(given)[:, np.newaxis])[:, 0]
        steps_right += each.max(axis=1)
        path_right += joint.max()
        of_path += each[np.arange(steps), best]
        by_steps += joint[(paths == each.argmax(axis=1)).all(axis=1)].sum()
        if joint.sum() > 0.0:
            assert np.exp(evidence[0]) == pytest.approx(joint.sum())
            assert after[:, 0] == pytest.approx(each / joint.sum(), abs=1e-9)
            assert joint[(paths == best).all(axis=1)] == pytest.approx(joint.max())
        else:
            assert evidence[0] < np.log(1e-14)
    assert steps_first.steps == pytest.approx(steps_right)
    assert steps_first.path == pytest.approx(by_steps)
    assert path_first.steps == pytest.approx(of_path)
    assert path_first.path == pytest.approx(path_right)
    assert steps_first.steps.mean() > path_first.steps.mean()
    assert path_first.path > steps_first.path


def test_batches_filter_and_evidence_of_many_steps():
    """A device's posteriors do not depend on the others; the last filtered one is smoothed; 2,000 steps do no harm."""
    rng = np.random.default_rng(5)
    chain = staying(0.9, 2000, start=np.array([0.5, 0.5, 0.0]))
    logs = np.stack([log_likelihood(REPORTS, [rng.integers(3, size=4, dtype=np.int32)]) for _ in range(2000)])
    after, evidence = chain.smoothed(logs)
    filtered, same = chain.filtered(logs)
    assert after[:, 2:3].tolist() == chain.smoothed(logs[:, 2:3])[0].tolist()
    assert after.sum(axis=2) == pytest.approx(1.0)
    assert filtered[-1] == pytest.approx(after[-1])
    assert filtered[0] == pytest.approx(posterior(logs[0], chain.start))
    assert evidence.tolist() == same.tolist()
    assert (np.isfinite(evidence) & (evidence > 700.0)).all()
    assert chain.likeliest(logs).shape == (2000, 4)


def test_a_device_strays_where_the_chain_excludes_what_was_reported():
    """Without privacy reports tell the places, though the chain excludes the step from 1 to 2 and the start in 0."""
    moves = csr_array(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    chain = Chain(np.array([0.0, 0.5, 0.5]), [moves] * 3)
    truth = np.array([[0, 1, 2, 2]], dtype=np.int32).T
    logs = np.stack([log_likelihood(NoPrivacy(cells=2), [step]) for step in truth])
    after, evidence = chain.smoothed(logs)
    assert after.argmax(axis=2).tolist() == truth.tolist() == chain.likeliest(logs).tolist()
    assert after.max(axis=2) == pytest.approx(1.0)
    assert (evidence < 2 * np.log(1e-14)).all()
    forged = np.concatenate([logs[1:2], np.full((3, 1, 3), -np.inf)])  # reports that no device sends say nothing
    assert chain.smoothed(forged)[0][:, 0] == pytest.approx(np.eye(3)[[1, 1, 1, 1]])


def test_how_often_devices_stray():
    """It is as if every row were mixed with the uniform one."""
    rng = np.random.default_rng(7)
    chain = random_chain(rng, 4, 4)
    mixed = [csr_array(0.9 * matrix.toarray() + 0.025) for matrix in chain.moves]
    same, often = Chain(0.9 * chain.start + 0.025, mixed), Chain(chain.start, chain.moves, 0.1)
    logs = np.log(rng.random((4, 50, 4)))
    assert often.smoothed(logs)[0] == pytest.approx(same.smoothed(logs)[0])
    assert often.smoothed(logs)[1] == pytest.approx(same.smoothed(logs)[1])
    assert often.likeliest(logs).tolist() == same.likeliest(logs).tolist()


def test_without_reports_the_chain_alone_guesses():
    rng = np.random.default_rng(6)
    chain = random_chain(rng, 4, 5)
    steps_first, path_first = chain.success([np.ones((4, 1))] * 5)
    assert steps_first.steps == pytest.approx(chain.marginals.max(axis=1))
    paths, joint = joint_of(chain, np.ones((5, 4)))
    assert np.exp(chain.log_probability(paths.T)) == pytest.approx(joint)
    assert path_first.path == pytest.approx(joint.max())
    assert chain.success([np.eye(4)] * 5)[0].steps == pytest.approx(1.0)  # each place has a report of its own
    assert chain.success([np.eye(4)[:, :1] + np.zeros((4, 50))] * 5) is None


def success_from_counts(chain, vehicles, *, start_known):
    """Success about each step and the path of one vehicle, if the exact counts of independent vehicles are published.

    The first places of the others follow from the counts, up to their order, which does not matter.
    """
    places = len(chain.start)
    paths = np.indices((places,) * chain.steps).reshape(chain.steps, -1)
    chances = np.exp(chain.log_probability(paths))
    # The counts of all steps are the digits of one number, to which each vehicle adds 1 in each step.
    added = (np.int64(vehicles + 1) ** (np.arange(chain.steps)[:, np.newaxis] * places + paths)).sum(axis=0)
    counts, mass = np.zeros(1, dtype=np.int64), np.ones(1)
    for _ in range(vehicles):
        joint = np.outer(mass, chances).ravel()  # the last one: of the others' counts and the path of the vehicle
        counts, seen = np.unique(counts[:, np.newaxis] + added, return_inverse=True)
        seen = seen.ravel()
        mass = np.bincount(seen, joint)
    paths = np.tile(paths, len(joint) // len(added))
    seen = seen * places + paths[0] if start_known else seen
    best = np.zeros(len(counts) * places)
    np.maximum.at(best, seen, joint)
    masses = [np.bincount(seen * places + path, joint, len(best) * places).reshape(-1, places) for path in paths]
    return [each.max(axis=1).sum() for each in masses], best.sum()


@pytest.mark.parametrize(
    ("vehicles", "steps", "known", "each", "whole"),
    [
        (2, 3, True, [1, 0.923333, 0.8643], 0.848967),
        (3, 3, True, [1, 0.88, 0.799076], 0.772504),
        (2, 4, True, [1, 0.923333, 0.8643, 0.818844], 0.778656),
        (2, 3, False, [0.666667] * 3, 0.543267),
        (1, 3, False, [1, 1, 1], 1),
    ],
)
def test_success_from_exact_counts_of_exchangeable_vehicles(vehicles, steps, known, each, whole):
    found, path = success_from_counts(staying(0.8, steps), vehicles, start_known=known)
    assert found == pytest.approx(each, abs=5e-7)
    assert path == pytest.approx(whole, abs=5e-7)


def test_the_prior_alone_of_a_known_start():
    chain = staying(0.8, 3, start=np.array([1.0, 0.0, 0.0]))
    assert chain.marginals.max(axis=1) == pytest.approx([1, 0.8, 0.66])


@pytest.mark.parametrize(
    "moves", [np.eye(2), np.eye(3) * 0.9, np.array([[2.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])]
)
def test_what_is_no_chain_is_refused(moves):
    with pytest.raises(ParameterError, match="moves must be of shape"):
        Chain(np.full(3, 1 / 3), [csr_array(moves)])


@pytest.mark.parametrize("logs", [np.zeros((2, 4, 2)), np.zeros((1, 4, 3)), np.full((2, 4, 3), np.nan)])
def test_wrong_logarithms_are_refused(logs):
    with pytest.raises(ParameterError, match="logs must"):
        staying(0.5, 2).smoothed(logs)
