"""The rules of those who have a key: they create, list, show and delete over HTTP."""

import math

from hypothesis import strategies as st
from hypothesis.stateful import rule

from resumes.store.identifiers import RESUME_ID
from tests.stateful import model, requests
from tests.stateful.model import ONCE_FOR, ONCE_FOR_US, Chain, Key, Once, Stored, list_entries
from tests.stateful.requests import Answer, Body, Look
from tests.stateful.world import BODIES, CHAINS, LABELS, NAMES, NO_KEY, PLACES, World

ONCE = st.sampled_from([None, "once-1", "once-2"])
LIMITS = st.sampled_from([1, 2, 3, None])
USUAL_LIMIT = 20
A_MOMENT_S = 0.001


class Clients(World):
    """Requests, with the newest key of an account that counts unless a key is named."""

    _onces = 0
    """How many Idempotency-Keys were made up that nothing else uses."""

    @rule(target=BODIES, look=st.sampled_from(Look))
    def write(self, look: Look) -> Body:
        """There is another resume to be sent."""
        return self.new_body(look)

    @rule(name=NAMES, body=BODIES, once=ONCE, label=LABELS)
    def create(self, name: str, body: Body, once: str | None, label: str | None) -> None:
        """A create is answered as the account's plan and the resume demand.

        A repeat of an Idempotency-Key has the first answer again.
        """
        self._create(self.key_of(name), body, once, label)

    @rule(name=NAMES, body=BODIES, once=ONCE, is_late=st.booleans())
    def create_unheard(self, name: str, body: Body, once: str | None, is_late: bool) -> None:
        """The server is killed in the middle: the resume is stored or not, and never twice."""
        key = self.key_of(name)
        since_us = self.reach.now_us()
        if not self.model.is_certain(key, once, since_us):
            return
        expected = self.model.creates(key, body, once, since_us)
        self.reach.lose(requests.creating(body.raw, once), key.secret, is_late=is_late)
        if not expected.is_new:
            return  # nothing may be stored, which is looked at after each rule
        entries = list_entries(self.reach.store, key.account)
        new = [entry for entry in entries if entry.id not in key.account.resumes]
        assert is_late <= len(new) <= 1
        for entry in new:
            self._stored(key, body, once, entry.id, since_us)

    @rule(name=NAMES, body=BODIES, short_of_s=st.sampled_from([0, A_MOMENT_S]))
    def create_again_at_the_limit(self, name: str, body: Body, short_of_s: float) -> None:
        """An Idempotency-Key is remembered for all of its time, and no longer."""
        self._onces += 1
        once = f"limit-{self._onces}"
        self._create(self.key_of(name), body, once)
        self.reach.pass_s(ONCE_FOR.total_seconds() - short_of_s)
        self.use_all_keys()
        self._create(self.key_of(name), body, once)

    def _create(self, key: Key, body: Body, once: str | None, label: str | None = None) -> None:
        since_us = self.reach.now_us()
        if not self.model.is_certain(key, once, since_us):
            return
        expected = self.model.creates(key, body, once, since_us)
        answer = self.reach.ask(requests.creating(body.raw, once, label), key.secret)
        model.check(answer, expected)
        is_replayed = answer.headers.get("idempotent-replayed") == "true"
        assert is_replayed == (expected.resume_id is not None)
        if expected.status != 201:
            return
        assert ("warnings" in answer.json) == body.warns
        if is_replayed:
            assert answer.json["id"] == expected.resume_id
        else:
            self._stored(key, body, once, answer.json["id"], since_us, label)

    def _stored(
        self,
        key: Key,
        body: Body,
        once: str | None,
        resume_id: str,
        since_us: int,
        label: str | None = None,
    ) -> None:
        assert RESUME_ID.fullmatch(resume_id)
        key.account.add(resume_id, Stored(body, since_us, self.reach.now_us(), label=label))
        if once is not None:
            # A database server has a clock of its own, which no rule sets.
            for_us = ONCE_FOR_US if self.reach.store.path is not None else math.inf
            key.account.once[once] = Once(body.raw, resume_id, since_us, for_us)

    @rule(name=NAMES, place=PLACES)
    def show(self, name: str, place: int) -> None:
        """A resume is shown as it was sent."""
        self._show(self.key_of(name), self.resume_of(name, place))

    @rule(name=NAMES, of=NAMES, place=PLACES, body=BODIES)
    def update(self, name: str, of: str, place: int, body: Body) -> None:
        """A resume has another content, where it was; one of another account is not found."""
        key, resume_id = self.key_of(name), self.resume_of(of, place)
        expected = self.model.updates(key, resume_id, body, self.reach.now_us())
        answer = self.reach.ask(requests.of_one("PUT", resume_id, body.raw), key.secret)
        model.check(answer, expected)
        if expected.status == 200:
            assert ("warnings" in answer.json) == body.warns
            key.account.update(resume_id, body)

    @rule(name=NAMES, place=PLACES, bodies=st.tuples(BODIES, BODIES))
    def update_what_was_read(self, name: str, place: int, bodies: tuple[Body, Body]) -> None:
        """Of two who update what they have read, the second is refused."""
        key, resume_id = self.key_of(name), self.resume_of(name, place)
        shown = self.reach.ask(requests.of_one("GET", resume_id), key.secret)
        if shown.status != 200 or None in (bodies[0].view, bodies[1].view):
            return
        tag = {"If-Match": shown.headers["etag"]}
        for body, status in zip(bodies, (200, 412), strict=True):
            request = requests.of_one("PUT", resume_id, body.raw, **tag)
            assert self.reach.ask(request, key.secret).status == status
        key.account.update(resume_id, bodies[0])

    @rule(name=NAMES, place=PLACES)
    def delete(self, name: str, place: int) -> None:
        """A resume is gone, and its place is free."""
        self._delete(self.key_of(name), self.resume_of(name, place))

    @rule(name=NAMES, of=NAMES, place=PLACES)
    def meddle(self, name: str, of: str, place: int) -> None:
        """Resumes of others there are none."""
        key, resume_id = self.key_of(name), self.resume_of(of, place)
        self._show(key, resume_id)
        self._delete(key, resume_id)

    def _show(self, key: Key, resume_id: str) -> None:
        answer = self.reach.ask(requests.of_one("GET", resume_id), key.secret)
        expected = self.model.shows(key, resume_id, self.reach.now_us())
        model.check(answer, expected)
        if expected.status == 200:
            model.check_view(answer.json, key.account, resume_id)

    def _delete(self, key: Key, resume_id: str) -> None:
        expected = self.model.deletes(key, resume_id, self.reach.now_us())
        model.check(self.reach.ask(requests.of_one("DELETE", resume_id), key.secret), expected)
        if expected.status == 200:
            key.account.remove(resume_id)

    @rule(name=NAMES, label=LABELS.filter(bool))
    def list_label(self, name: str, label: str) -> None:
        """The resumes of a label are listed, and no others."""
        key = self.key_of(name)
        expected = self.model.lists(key, self.reach.now_us())
        answer = self.reach.ask(requests.of_label(label), key.secret)
        model.check(answer, expected)
        if expected.status == 200:
            ids = key.account.with_label(label)
            cursor = ids[99] if len(ids) > 100 else None
            model.check_page(answer, key.account, ids[:100], cursor)

    @rule(target=CHAINS, name=NAMES, limit=LIMITS, of=st.none() | NAMES, place=PLACES)
    def begin_to_list(self, name: str, limit: int | None, of: str | None, place: int) -> Chain:
        """Somebody has the first page of all, or of what follows a resume, be it another's."""
        cursor = "" if of is None else self.resume_of(of, place)
        chain = Chain(self.key_of(name).account, limit, cursor, first=cursor)
        self.chains.append(chain)
        self._follow(chain)
        return chain

    @rule(chain=CHAINS, pages=st.integers(1, 3))
    def follow(self, chain: Chain, pages: int) -> None:
        """The next pages have what comes next: nothing twice, and nothing left out."""
        for _ in range(pages):
            self._follow(chain)

    def _follow(self, chain: Chain) -> None:
        key = self.find_key(chain.account) or NO_KEY
        expected = self.model.lists(key, self.reach.now_us())
        answer = self.reach.ask(requests.listing(chain.cursor, chain.limit), key.secret)
        model.check(answer, expected)
        if expected.status == 200:
            self._read(chain, answer)

    def _read(self, chain: Chain, answer: Answer) -> None:
        account = chain.account
        limit = chain.limit or USUAL_LIMIT
        ids, cursor = account.after(chain.cursor, limit)
        assert answer.json["pagination"]["limit"] == limit
        model.check_page(answer, account, ids, cursor)
        chain.seen += ids
        assert chain.seen == sorted(set(chain.seen)), "a chain is in order and has nothing twice"
        if cursor is None:
            there = {one for one in account.resumes if one > chain.first}
            missed = there - set(chain.seen) - account.returned
            assert not missed, f"a chain misses nothing: {missed}"
        chain.cursor = cursor or (ids[-1] if ids else chain.cursor)
