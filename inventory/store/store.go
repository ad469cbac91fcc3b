// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the inventory in a SQLite file: it records facts as intervals of time, answers queries as of a
// time, and removes what is too old. It observes nothing itself.
//
// Each table of the inventory is two tables of the database. NAME_keys gives each key a number. NAME_states has what
// was true of it, from valid_from until before valid_to; the row that is true now has the valid_to openEnd. Users query
// views, which are made for each query: see views.go. The tables are no contract.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/bellwether-dev/bellwether/inventory"
)

// openEnd is the valid_to of a row that is true now.
const openEnd = "9999-12-31T23:59:59Z"

//go:embed migrations/*.sql
var migrations embed.FS

// Store is an inventory in a file. Its methods can be called concurrently. Only one process may have the file open.
type Store struct {
	path string
	// writer has one connection, which is connection. readers has the connections of queries.
	writer, readers *sql.DB
	connection      *sql.Conn
	// queries limits the number of concurrent queries, and maxTime is how long each may run.
	queries chan struct{}
	maxTime time.Duration

	mu         sync.Mutex
	statements map[string]*sql.Stmt
	// observed has the sources of which this Store has recorded a complete batch.
	observed map[inventory.Source]bool
}

// maxQueries is how many queries run at a time. Others wait, so that queries use no more than this many processors and
// page caches.
const maxQueries = 2

// Open opens the inventory in a file, and creates the file if it does not exist. A file of an older version is
// migrated.
func Open(ctx context.Context, path string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open inventory: %w", err)
	}
	s := &Store{path: absolute, queries: make(chan struct{}, maxQueries), maxTime: MaxTime,
		statements: map[string]*sql.Stmt{},
		observed:   map[inventory.Source]bool{}}
	if s.writer, err = sql.Open("sqlite", s.buildName("_journal_mode=WAL&_synchronous=FULL"+
		"&_defensive=1&_pragma=cache_size(-16384)")); err != nil {
		return nil, fmt.Errorf("open inventory: %w", err)
	}
	s.writer.SetMaxOpenConns(1)
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.writer.Close())
	}
	if s.connection, err = s.writer.Conn(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open inventory: %w", err), s.writer.Close())
	}
	if s.readers, err = sql.Open("sqlite", s.buildName("mode=ro&_defensive=1&_dqs=0&_pragma=cache_size(-8192)"+
		"&_pragma=temp_store(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("open inventory: %w", err), s.writer.Close())
	}
	s.readers.SetMaxOpenConns(maxQueries)
	return s, nil
}

// buildName returns the name of the file with parameters, for the driver.
func (s *Store) buildName(parameters string) string {
	return (&url.URL{Scheme: "file", Path: s.path, RawQuery: "_busy_timeout=5000&" + parameters}).String()
}

// migrate brings the tables to the version of this program.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writer, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate inventory %s: %w", s.path, err)
	}
	return nil
}

// Close closes the file. Queries that run are ended.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, statement := range s.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, s.readers.Close(), s.connection.Close(), s.writer.Close())...)
}
