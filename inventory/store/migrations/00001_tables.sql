-- Copyright The Bellwether Authors.
-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- When each source was observed without a gap.
CREATE TABLE observations (
  source TEXT NOT NULL,
  began TEXT NOT NULL,
  until TEXT NOT NULL,
  PRIMARY KEY (source, began)
) WITHOUT ROWID;

CREATE TABLE clusters_keys (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  UNIQUE (cluster)
);
CREATE TABLE clusters_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  labels TEXT,
  online TEXT,
  stale_since TEXT,
  ready TEXT,
  reason TEXT,
  message TEXT,
  agent TEXT,
  kubernetes TEXT,
  olm TEXT,
  paused INTEGER,
  freeze TEXT,
  veto TEXT,
  source TEXT,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX clusters_states_from ON clusters_states (valid_from);

CREATE TABLE operators_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  operator TEXT NOT NULL,
  UNIQUE (namespace, operator)
);
CREATE INDEX operators_keys_operator ON operators_keys (operator);
CREATE TABLE operators_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  package TEXT,
  catalog TEXT,
  wanted TEXT,
  target TEXT,
  channel TEXT,
  waiting_version TEXT,
  paused INTEGER,
  ready TEXT,
  reason TEXT,
  message TEXT,
  selected INTEGER,
  updated INTEGER,
  ready_clusters INTEGER,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX operators_states_from ON operators_states (valid_from);

CREATE TABLE installs_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  operator TEXT NOT NULL,
  cluster TEXT NOT NULL,
  UNIQUE (namespace, operator, cluster)
);
CREATE INDEX installs_keys_operator ON installs_keys (operator);
CREATE INDEX installs_keys_cluster ON installs_keys (cluster);
CREATE TABLE installs_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  version TEXT,
  admitted_version TEXT,
  rollout TEXT,
  wave TEXT,
  ready TEXT,
  reason TEXT,
  message TEXT,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX installs_states_from ON installs_states (valid_from);

CREATE TABLE drift_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  operator TEXT NOT NULL,
  cluster TEXT NOT NULL,
  UNIQUE (namespace, operator, cluster)
);
CREATE INDEX drift_keys_operator ON drift_keys (operator);
CREATE INDEX drift_keys_cluster ON drift_keys (cluster);
CREATE TABLE drift_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  reason TEXT,
  message TEXT,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX drift_states_from ON drift_states (valid_from);

CREATE TABLE versions_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  catalog TEXT NOT NULL,
  package TEXT NOT NULL,
  bundle TEXT NOT NULL,
  UNIQUE (namespace, catalog, package, bundle)
);
CREATE TABLE versions_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  version TEXT,
  blocked TEXT,
  deprecated TEXT,
  end_of_support TEXT,
  absent INTEGER,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX versions_states_from ON versions_states (valid_from);

CREATE TABLE channels_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  catalog TEXT NOT NULL,
  package TEXT NOT NULL,
  channel TEXT NOT NULL,
  UNIQUE (namespace, catalog, package, channel)
);
CREATE TABLE channels_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  head TEXT,
  versions INTEGER,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX channels_states_from ON channels_states (valid_from);

CREATE TABLE rollouts_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  rollout TEXT NOT NULL,
  UNIQUE (namespace, rollout)
);
CREATE TABLE rollouts_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  operator TEXT,
  revision INTEGER,
  version TEXT,
  phase TEXT,
  current_wave TEXT,
  started_at TEXT,
  ended_at TEXT,
  rollback_of TEXT,
  rollback_reason TEXT,
  paused INTEGER,
  blocked TEXT,
  message TEXT,
  total INTEGER,
  succeeded INTEGER,
  failed INTEGER,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX rollouts_states_from ON rollouts_states (valid_from);

CREATE TABLE waves_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  rollout TEXT NOT NULL,
  wave TEXT NOT NULL,
  UNIQUE (namespace, rollout, wave)
);
CREATE TABLE waves_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  position INTEGER,
  phase TEXT,
  started_at TEXT,
  updated_at TEXT,
  verified_at TEXT,
  failed_at TEXT,
  total INTEGER,
  succeeded INTEGER,
  failed INTEGER,
  deferred INTEGER,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX waves_states_from ON waves_states (valid_from);

CREATE TABLE gates_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  rollout TEXT NOT NULL,
  wave TEXT NOT NULL,
  gate TEXT NOT NULL,
  UNIQUE (namespace, rollout, wave, gate)
);
CREATE TABLE gates_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  verdict TEXT,
  approval INTEGER,
  decided_at TEXT,
  evidence TEXT,
  value TEXT,
  threshold TEXT,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX gates_states_from ON gates_states (valid_from);

CREATE TABLE decisions_keys (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  operator TEXT NOT NULL,
  at TEXT NOT NULL,
  what TEXT NOT NULL,
  rollout TEXT NOT NULL,
  subject TEXT NOT NULL,
  by TEXT NOT NULL,
  UNIQUE (namespace, operator, at, what, rollout, subject, by)
);
CREATE INDEX decisions_keys_operator ON decisions_keys (operator);
CREATE TABLE decisions_states (
  id INTEGER NOT NULL,
  valid_to TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  observed_until TEXT,
  reason TEXT,
  PRIMARY KEY (id, valid_to)
) WITHOUT ROWID;
CREATE INDEX decisions_states_from ON decisions_states (valid_from);
