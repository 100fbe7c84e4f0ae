"""Sums are exact whoever vanishes; one input is never opened; what must be refused is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosha import errors
from mosha.federated import SecureClient, SecureServer, Session
from mosha.federated.secure.client import Shares
from mosha.federated.secure.keys import PublicKeys, add_mask, agree_secret, fresh_pair, open_letter, seal_letter
from mosha.federated.secure.shamir import PRIME, combine, split
from mosha.noise import secure

RANDOM = np.random.default_rng()
ROOT = Path(__file__).parents[2]


def inputs(members: Any, width: Any) -> dict[Any, Any]:
    return {m: RANDOM.integers(0, 2**32, width, dtype=np.uint32) for m in members}


class Protocol:
    """The whole protocol in one process; members may vanish before each of its steps."""

    def __init__(
        self, members: Any = 8, width: Any = 50, partners: Any = 6, threshold: Any = 4, survivors: Any = 3
    ) -> None:
        names = range(1, members + 1)
        self.session = Session.begin(
            names, partners=partners, threshold=threshold, survivors=survivors, width=width, rng=secure()
        )
        self.server = SecureServer(self.session)
        self.clients = {m: SecureClient(m, self.session, secure()) for m in names}
        self.values = inputs(names, width)
        self.masked = {}  # type: ignore[var-annotated]

    def keys(self, vanished: Any = ()) -> None:
        for m in set(self.clients) - set(vanished):
            self.server.add_keys(m, self.clients[m].keys)

    def letters(self, vanished: Any = ()) -> None:
        for m in set(self.server.roster) - set(vanished):
            self.server.add_letters(m, self.clients[m].share(self.server.roster))

    def send(self, vanished: Any = ()) -> None:
        for m in set(self.server.writers) - set(vanished):
            self.masked[m] = self.clients[m].mask(self.values[m], self.server.letters_to(m))
            self.server.add_masked(m, self.masked[m])

    def unmask(self, vanished: Any = ()) -> Any:
        survivors = self.server.survivors
        for m in set(survivors) - set(vanished):
            self.server.add_shares(m, self.clients[m].unmask(survivors))
        return self.server.total()

    def expected(self) -> Any:
        return np.add.reduce([self.values[m] for m in self.server.survivors], dtype=np.uint32)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(5, 14),
    st.sampled_from([4, 6, 8]),
    st.lists(st.tuples(st.integers(1, 14), st.integers(0, 3)), max_size=4),
)
def test_the_sum_of_the_survivors_is_exact_or_nothing_is_opened(members: Any, partners: Any, vanishing: Any) -> None:
    """Who vanishes, when, and how many there are: the answer is the exact sum, or a typed refusal."""
    degree = min(partners, members - 1)
    protocol = Protocol(members, 20, partners, degree // 2 + 1, 2)
    gone = [{m for m, when in vanishing if when <= step} for step in range(4)]
    try:
        protocol.keys(gone[0])
        protocol.letters(gone[1])
        protocol.send(gone[2])
        total = protocol.unmask(gone[3])
    except (errors.RunError, errors.SourceUnavailable):
        return
    assert (total == protocol.expected()).all()


def test_a_hundred_clients_of_whom_ten_vanish_sum_up_exactly() -> None:
    protocol = Protocol(100, 300, 20, 11, 80)
    protocol.keys()
    protocol.letters()
    protocol.send(range(1, 11))
    assert (protocol.unmask() == protocol.expected()).all()


def test_masked_inputs_look_uniform_even_for_zeros() -> None:
    """Chi-square over 256 cells of 4e5 bytes: false alarm below 1e-9 at 255 + 10 sd; zeros in the clear score 1e8."""
    protocol = Protocol(6, 20_000, 4, 3, 2)
    protocol.values = {m: np.zeros(20_000, np.uint32) for m in protocol.clients}
    protocol.keys()
    protocol.letters()
    protocol.send()
    for values, uniform in (
        (np.concatenate(list(protocol.masked.values())), True),
        (np.zeros(100_000, np.uint32), False),
    ):
        counts = np.bincount(values.view(np.uint8), minlength=256)
        score = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
        assert (score < 255 + 10 * np.sqrt(510)) == uniform


def test_probe_12_masks_come_from_a_key_of_256_bits_and_reach_every_residue() -> None:
    """Flower's SecAgg+ draws masks from a 32-bit seed of a Mersenne twister and never draws the largest number."""
    words = np.zeros(1 << 16, np.uint32)
    add_mask(words, secure().bytes(32))
    assert len(np.unique(words)) > 60_000
    assert words.max() > 2**32 - 2**22  # missed with probability (1 - 2**-10)**65536 = 1e-28 for a fair mask
    for bit in (0, 100, 255):
        one, other = bytearray(secure().bytes(32)), None
        other = bytearray(one)
        other[bit // 8] ^= 1 << (bit % 8)
        first, second = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
        add_mask(first, bytes(one))
        add_mask(second, bytes(other))
        assert (first != second).sum() > 50


def test_probe_13_a_client_never_hands_out_both_shares_of_a_peer() -> None:
    """Flower's client answers for a node that is called active and dead at once, and so unmasks it."""
    protocol = Protocol(6, 10, 4, 3, 3)
    protocol.keys()
    protocol.letters()
    protocol.send({2})
    client = protocol.clients[1]
    given_out = client.unmask(protocol.server.survivors)
    assert not set(given_out.seeds) & set(given_out.keys)
    with pytest.raises(errors.RunError, match="once in a round"):
        client.unmask([m for m in protocol.server.survivors if m != 3])


@pytest.mark.parametrize(
    "survivors",
    [[1, 2], [2, 3, 4, 5], [1, 2, 3, 99], [1, 1, 2, 3], []],
    ids=["too few", "without me", "a stranger", "one twice", "nobody"],
)
def test_a_client_refuses_a_list_of_survivors_that_cannot_be(survivors: Any) -> None:
    protocol = Protocol(6, 10, 4, 3, 3)
    protocol.keys()
    protocol.letters()
    protocol.send()
    with pytest.raises(errors.RunError, match="refuses"):
        protocol.clients[1].unmask(survivors)


def test_too_few_survivors_are_not_opened_by_the_server_either() -> None:
    protocol = Protocol(6, 10, 4, 3, 5)
    protocol.keys()
    protocol.letters()
    protocol.send({1, 2})
    with pytest.raises(errors.SourceUnavailable):
        protocol.unmask()


def test_steps_are_answered_once_and_in_order() -> None:
    protocol = Protocol(5, 10, 4, 3, 2)
    protocol.keys()
    client = protocol.clients[1]
    with pytest.raises(errors.RunError):
        client.mask(protocol.values[1], {})
    protocol.letters()
    with pytest.raises(errors.RunError):
        client.share(protocol.server.roster)


def test_a_revived_client_goes_on_where_it_was_and_answers_no_step_again() -> None:
    protocol = Protocol()
    for advance in (protocol.keys, protocol.letters, protocol.send):
        protocol.clients = {m: SecureClient.from_bytes(c.to_bytes(), secure()) for m, c in protocol.clients.items()}
        advance()
    protocol.clients = {m: SecureClient.from_bytes(c.to_bytes(), secure()) for m, c in protocol.clients.items()}
    assert np.array_equal(protocol.unmask(), protocol.expected())
    for client in protocol.clients.values():
        revived = SecureClient.from_bytes(client.to_bytes(), secure())
        with pytest.raises(errors.RunError):
            revived.share(protocol.server.roster)
        with pytest.raises(errors.RunError):
            revived.mask(protocol.values[revived.member], {})
        with pytest.raises(errors.RunError):
            revived.unmask(protocol.server.survivors)


def test_a_client_whose_state_was_set_back_answers_again_which_is_said_where_it_is_kept() -> None:
    """What no client can notice alone: the limit that the sharp edge and `from_bytes` speak of, held as it is."""
    protocol = Protocol(members=8, partners=6, threshold=4, survivors=3)
    protocol.keys()
    protocol.letters()
    protocol.send()
    old = protocol.clients[1].to_bytes()
    everybody = list(range(1, 9))
    first = protocol.clients[1].unmask(everybody)
    partner = next(m for m in first.seeds if m != 1)
    second = SecureClient.from_bytes(old, secure()).unmask([m for m in everybody if m != partner])
    assert partner in second.keys  # with enough like it, both halves of what hides this partner's vector
    assert "backups" in (SecureClient.from_bytes.__doc__ or "")
    for language in ("", ".zh"):
        page = (ROOT / f"docs/sharp-edges{language}.md").read_text(encoding="utf-8")
        assert "SecureClient.to_bytes()" in page


def test_keys_and_masks_are_fresh_in_every_round() -> None:
    one, two = Protocol(), Protocol()
    assert one.session.label != two.session.label
    assert not {c.keys.masks for c in one.clients.values()} & {c.keys.masks for c in two.clients.values()}
    mine, yours = fresh_pair(secure()), fresh_pair(secure())
    assert agree_secret(mine[0], yours[1], b"mask", b"1") == agree_secret(yours[0], mine[1], b"mask", b"1")
    assert agree_secret(mine[0], yours[1], b"mask", b"1") != agree_secret(mine[0], yours[1], b"mask", b"2")


def test_a_changed_letter_and_a_bad_key_are_refused() -> None:
    key = secure().bytes(32)
    letter = bytearray(seal_letter(key, b"shares", b"about"))
    assert open_letter(key, bytes(letter), b"about") == b"shares"
    with pytest.raises(errors.DataError):
        open_letter(key, bytes(letter), b"other")
    letter[3] ^= 1
    with pytest.raises(errors.DataError):
        open_letter(key, bytes(letter), b"about")
    with pytest.raises(errors.DataError):
        agree_secret(fresh_pair(secure())[0], bytes(32), b"small order")


def test_two_members_with_one_key_are_refused() -> None:
    protocol = Protocol(4, 10, 4, 2, 2)
    protocol.keys()
    shown = dict(protocol.server.roster)
    shown[2] = shown[3]
    with pytest.raises(errors.RunError, match="same key"):
        protocol.clients[1].share(shown)


@pytest.mark.parametrize("other", [2, 3])
def test_its_own_keys_sent_back_as_a_neighbors_are_refused(other: int) -> None:
    protocol = Protocol(4, 10, 4, 2, 2)
    protocol.keys()
    with pytest.raises(errors.RunError, match="same key"):
        protocol.clients[1].share(dict(protocol.server.roster) | {other: protocol.clients[1].keys})


def test_replayed_and_strange_messages_change_nothing() -> None:
    protocol = Protocol(6, 10, 4, 3, 3)
    protocol.keys()
    protocol.server.add_keys(1, PublicKeys(bytes(32), bytes(32)))
    protocol.server.add_keys(77, PublicKeys(bytes(32), bytes(32)))
    protocol.letters()
    protocol.server.add_letters(1, {2: b"again"})
    protocol.send({6})
    protocol.server.add_masked(1, protocol.masked[1])
    protocol.server.add_masked(77, protocol.masked[1])
    protocol.server.add_masked(6, np.zeros(3, np.uint32))
    protocol.server.add_masked(6, np.zeros(10))  # type: ignore[arg-type]
    protocol.server.add_shares(6, Shares({1: b""}, {}))
    assert (protocol.unmask() == protocol.expected()).all()
    assert protocol.server.survivors == [1, 2, 3, 4, 5]


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 8), st.integers(0, 4))
def test_any_threshold_of_shares_gives_the_secret_and_one_less_fits_any_secret(
    secret: Any, threshold: Any, more: Any
) -> None:
    points = list(range(1, threshold + more + 1))
    shares = split(secret, threshold=threshold, points=points, rng=secure())
    chosen = RANDOM.permutation(points)[:threshold]
    assert combine({int(p): shares[int(p)] for p in chosen}, threshold=threshold) == secret
    with pytest.raises(errors.DataError):
        combine({int(p): shares[int(p)] for p in chosen[1:]}, threshold=threshold)


def test_one_share_of_two_is_uniform_whatever_the_secret() -> None:
    """4000 first bytes below the leading one, 16 cells: 12 sd above 15 is a false alarm of 5e-11 (chi-square)."""
    for secret in (bytes(32), b"\xff" * 32):
        seen = [split(secret, threshold=2, points=[1, 2], rng=secure())[1][1] >> 4 for _ in range(4000)]
        counts = np.bincount(seen, minlength=16)
        assert ((counts - 250) ** 2 / 250).sum() < 15 + 12 * np.sqrt(30)


def test_the_field_is_a_prime_above_all_secrets() -> None:
    assert PRIME > 2**256
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))


@pytest.mark.parametrize(
    "terms",
    [
        {"partners": 6, "threshold": 3, "survivors": 3},
        {"partners": 6, "threshold": 7, "survivors": 3},
        {"partners": 6, "threshold": 4, "survivors": 1},
        {"partners": 6, "threshold": 4, "survivors": 99},
        {"partners": 0, "threshold": 1, "survivors": 3},
    ],
)
def test_terms_that_could_open_one_input_are_refused(terms: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        Session.begin(range(1, 9), width=4, rng=secure(), **terms)
