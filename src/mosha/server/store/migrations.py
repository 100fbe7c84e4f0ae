"""The tables of the store, version by version. A version is never edited once it was released: a newer one follows."""

from __future__ import annotations

from mosha.server.errors import StoreUnavailable
from mosha.server.store.database import Database

__all__ = ["VERSION", "migrate"]

_FIRST = """
CREATE TABLE principals (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL UNIQUE, parent TEXT REFERENCES principals (id),
    state TEXT NOT NULL, created BIGINT NOT NULL
);
CREATE INDEX principals_parent ON principals (parent);
CREATE TABLE members (
    team TEXT NOT NULL REFERENCES principals (id), person TEXT NOT NULL REFERENCES principals (id),
    PRIMARY KEY (team, person)
);
CREATE INDEX members_person ON members (person);
CREATE TABLE roles (
    principal TEXT NOT NULL REFERENCES principals (id), dataset TEXT NOT NULL, role TEXT NOT NULL,
    PRIMARY KEY (principal, dataset, role)
);
CREATE TABLE credentials (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL REFERENCES principals (id), kind TEXT NOT NULL, hash TEXT NOT NULL,
    scope TEXT NOT NULL, label TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT NOT NULL, used BIGINT, csrf TEXT
);
CREATE INDEX credentials_principal ON credentials (principal, kind);
CREATE TABLE identities (
    issuer TEXT NOT NULL, subject TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals (id),
    PRIMARY KEY (issuer, subject)
);
CREATE TABLE populations (name TEXT PRIMARY KEY, words TEXT NOT NULL, created BIGINT NOT NULL);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, population TEXT, source TEXT NOT NULL,
    source_hash TEXT NOT NULL, account TEXT NOT NULL, promise TEXT NOT NULL, timing TEXT NOT NULL,
    deadline DOUBLE PRECISION NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, curator TEXT NOT NULL,
    again TEXT, created BIGINT NOT NULL
);
CREATE INDEX datasets_source ON datasets (source_hash);
CREATE TABLE declarations (
    dataset TEXT NOT NULL REFERENCES datasets (name), version INTEGER NOT NULL, content TEXT NOT NULL,
    sha256 TEXT NOT NULL, author TEXT NOT NULL, countersigned TEXT, created BIGINT NOT NULL,
    PRIMARY KEY (dataset, version)
);
CREATE TABLE blocks (
    dataset TEXT NOT NULL REFERENCES datasets (name), name TEXT NOT NULL, condition TEXT NOT NULL,
    account TEXT NOT NULL,    state TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (dataset, name)
);
CREATE TABLE grants (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets (name), principal TEXT NOT NULL, parent TEXT,
    account TEXT NOT NULL UNIQUE, limits TEXT NOT NULL, most_per_question DOUBLE PRECISION,
    approve_above DOUBLE PRECISION,
    limit_per_day TEXT, expires TEXT NOT NULL, purpose TEXT NOT NULL, state TEXT NOT NULL, author TEXT NOT NULL,
    created BIGINT NOT NULL
);
CREATE INDEX grants_principal ON grants (principal, dataset);
CREATE INDEX grants_dataset ON grants (dataset);
CREATE TABLE requests (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, grant_id TEXT NOT NULL, dataset TEXT NOT NULL, block TEXT,
    body_hash TEXT NOT NULL, question TEXT NOT NULL, price TEXT NOT NULL, purpose TEXT NOT NULL,
    fingerprint TEXT NOT NULL, version INTEGER NOT NULL, cost DOUBLE PRECISION NOT NULL, measure TEXT NOT NULL,
    state TEXT NOT NULL, accounts TEXT NOT NULL, attempts INTEGER NOT NULL, created BIGINT NOT NULL,
    expires BIGINT NOT NULL, holder TEXT, started BIGINT, visible BIGINT, outcome TEXT, result TEXT,
    hidden INTEGER NOT NULL
);
CREATE INDEX requests_principal ON requests (principal, created);
CREATE INDEX requests_dataset ON requests (dataset, created);
CREATE INDEX requests_state ON requests (state, created);
CREATE INDEX requests_running ON requests (principal, state);
CREATE INDEX requests_started ON requests (principal, started);
CREATE INDEX requests_same ON requests (dataset, fingerprint);
CREATE TABLE decisions (
    request TEXT PRIMARY KEY REFERENCES requests (id), reviewer TEXT NOT NULL, verdict TEXT NOT NULL,
    reason TEXT NOT NULL,    bound TEXT NOT NULL, note TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT NOT NULL
);
CREATE TABLE publications (
    slug TEXT PRIMARY KEY, request TEXT NOT NULL REFERENCES requests (id), title TEXT NOT NULL, words TEXT NOT NULL,
    author TEXT NOT NULL, approved TEXT, state TEXT NOT NULL, head TEXT, created BIGINT NOT NULL
);
CREATE TABLE schedules (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL, state TEXT NOT NULL,
    author TEXT NOT NULL, created BIGINT NOT NULL
);
CREATE TABLE points (
    schedule TEXT NOT NULL REFERENCES schedules (id), step INTEGER NOT NULL, value TEXT NOT NULL,
    created BIGINT NOT NULL,    PRIMARY KEY (schedule, step)
);
CREATE TABLE surveys (
    name TEXT PRIMARY KEY, title TEXT NOT NULL, content TEXT NOT NULL, state TEXT NOT NULL, author TEXT NOT NULL,
    collected TEXT NOT NULL, reports BIGINT NOT NULL, created BIGINT NOT NULL
);
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL, events TEXT NOT NULL, author TEXT NOT NULL,
    created BIGINT NOT NULL
);
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY, webhook TEXT NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL, due BIGINT NOT NULL
);
CREATE TABLE buckets (
    principal TEXT NOT NULL, kind TEXT NOT NULL, tokens DOUBLE PRECISION NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (principal, kind)
);
CREATE TABLE instances (id TEXT PRIMARY KEY, seen BIGINT NOT NULL);
CREATE TABLE heads (head TEXT PRIMARY KEY, created BIGINT NOT NULL)
"""

_SECOND = """
CREATE TABLE trainings (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets (name), name TEXT NOT NULL, content TEXT NOT NULL,
    accounts TEXT NOT NULL, state TEXT NOT NULL, steps BIGINT NOT NULL, author TEXT NOT NULL, created BIGINT NOT NULL,
    ended BIGINT
);
CREATE INDEX trainings_dataset ON trainings (dataset, created)
"""

_THIRD = """
CREATE INDEX requests_visible ON requests (principal, visible);
CREATE INDEX requests_ticks ON requests (visible);
CREATE INDEX publications_state ON publications (state, created);
CREATE INDEX publications_author ON publications (author, state);
CREATE INDEX publications_request ON publications (request, state);
ALTER TABLE surveys ADD COLUMN tickets TEXT NOT NULL DEFAULT 'optional';
CREATE TABLE tickets (survey TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (survey, hash));
UPDATE principals SET name = (SELECT above.name FROM principals above WHERE above.id = principals.parent) || '/' || name
    WHERE kind = 'agent'
"""

_FOURTH = """
ALTER TABLE requests ADD COLUMN person TEXT NOT NULL DEFAULT '';
UPDATE requests SET person = COALESCE(
    (SELECT above.parent FROM principals above WHERE above.id = requests.principal), requests.principal);
DROP INDEX requests_running;
DROP INDEX requests_started;
DROP INDEX requests_visible;
CREATE INDEX requests_running ON requests (person, state);
CREATE INDEX requests_started ON requests (person, started);
CREATE INDEX requests_visible ON requests (person, visible);
CREATE INDEX requests_queue ON requests (state, person, created)
"""

_FIFTH = """
ALTER TABLE principals ADD COLUMN entered BIGINT;
UPDATE principals SET entered = created WHERE id IN (SELECT principal FROM credentials WHERE kind <> 'link')
    OR id IN (SELECT principal FROM identities) OR id IN (SELECT person FROM requests)
"""

_SIXTH = """
ALTER TABLE datasets ADD COLUMN registry TEXT NOT NULL DEFAULT '{}'
"""

_SEVENTH = """
CREATE INDEX grants_parent ON grants (parent);
CREATE INDEX datasets_account ON datasets (account);
CREATE INDEX datasets_again ON datasets (again)
"""

_VERSIONS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH)
VERSION = len(_VERSIONS)
_LOCK = 0x6D6F73  # under which PostgreSQL lets one process migrate at a time


def migrate(database: Database) -> None:
    """Bring the tables to the newest version; a store of a newer program is left alone."""
    with database.transaction() as transaction:
        if database.shared:
            transaction.rows("SELECT pg_advisory_xact_lock(?)", _LOCK)
        transaction.run("CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY)")
        found = transaction.row("SELECT MAX(version) AS version FROM versions")
        present = (found or {}).get("version") or 0
        if present > VERSION:
            raise StoreUnavailable("server.store_newer", version=present)
        for number, statements in enumerate(_VERSIONS[present:], start=present + 1):
            for statement in statements.split(";"):
                transaction.run(statement)
            transaction.run("INSERT INTO versions VALUES (?)", number)
