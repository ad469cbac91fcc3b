// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/bellwether-dev/bellwether/inventory"
)

// The limits of a query.
const (
	// MaxRows is how many rows an answer has at most.
	MaxRows = 10_000
	// MaxTime is how long a query may run.
	MaxTime = 10 * time.Second
	// maxValue is how many bytes a value and an answer may have.
	maxValue, maxAnswer = 64 << 10, 16 << 20
	// maxNames is how many bytes the names of what a user sees may have together.
	maxNames = 100 << 20
	// maxText is how many bytes the text of a query may have.
	maxText = 16 << 10
)

var errNoStatement = errors.New("there is no statement")

// Query answers a query. The error wraps inventory.ErrRefused if the query is at fault, or if it needs too much.
func (s *Store) Query(ctx context.Context, q inventory.Query) (*inventory.Answer, error) {
	if err := check(q.SQL); err != nil {
		return nil, err
	}
	select {
	case s.queries <- struct{}{}:
		defer func() { <-s.queries }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other queries: %w", ctx.Err())
	}
	connection, err := s.readers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open inventory: %w", err)
	}
	defer func() { _ = connection.Close() }()
	// All that follows reads the same state of the file.
	if err := beginRead(ctx, connection); err != nil {
		return nil, err
	}
	defer func() { _, _ = connection.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	answer, err := s.prepareQuery(ctx, connection, q)
	if err != nil {
		return nil, err
	}
	guard := &guard{}
	if err := guard.install(connection); err != nil {
		return nil, err
	}
	defer guard.remove(connection)
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxTime, errTooLong)
	defer cancel()
	if err := readRows(ctx, connection, q, answer); err != nil {
		return nil, guard.explain(ctx, err)
	}
	return answer, nil
}

// beginRead begins a transaction in which a query is prepared and read, without the limits of the query before.
func beginRead(ctx context.Context, connection *sql.Conn) error {
	if _, err := sqlite.Limit(connection, sqlite3.SQLITE_LIMIT_LENGTH, maxNames); err != nil {
		return fmt.Errorf("begin query: %w", err)
	}
	if _, err := connection.ExecContext(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("begin query: %w", err)
	}
	return nil
}

// prepareQuery makes the views for a query, and returns an answer without rows.
func (s *Store) prepareQuery(ctx context.Context, connection *sql.Conn, q inventory.Query) (*inventory.Answer, error) {
	if _, err := connection.ExecContext(ctx, buildViews(q.Visible)); err != nil {
		return nil, fmt.Errorf("make views: %w", err)
	}
	at := inventory.FormatTime(q.At)
	answer := &inventory.Answer{At: q.At.UTC().Truncate(time.Second), Rows: [][]any{},
		Observed: map[inventory.Source]time.Time{}}
	if err := checkTime(ctx, connection, at); err != nil {
		return nil, err
	}
	arguments := []any{at}
	for _, source := range inventory.Sources() {
		var until sql.NullString
		err := connection.QueryRowContext(ctx, `SELECT max(min(until, ?)) FROM main.observations
			WHERE source = ? AND began <= ?`, at, source, at).Scan(&until)
		if err != nil {
			return nil, fmt.Errorf("read observations: %w", err)
		}
		arguments = append(arguments, until)
		if !until.Valid {
			continue
		}
		if answer.Observed[source], err = time.Parse(inventory.TimeFormat, until.String); err != nil {
			return nil, fmt.Errorf("read observations: %w", err)
		}
	}
	clusters, err := json.Marshal(q.Visible.Clusters)
	if err != nil {
		return nil, fmt.Errorf("encode clusters: %w", err)
	}
	namespaces, err := json.Marshal(q.Visible.Namespaces)
	if err != nil {
		return nil, fmt.Errorf("encode namespaces: %w", err)
	}
	for _, statement := range []struct {
		text      string
		arguments []any
	}{
		{"DELETE FROM query_context", nil},
		{"INSERT INTO query_context VALUES (" + listMarks(len(arguments)) + ")", arguments},
		{"DELETE FROM visible_clusters", nil},
		{"INSERT OR IGNORE INTO visible_clusters SELECT value FROM json_each(?)", []any{string(clusters)}},
		{"DELETE FROM visible_namespaces", nil},
		{"INSERT OR IGNORE INTO visible_namespaces SELECT value FROM json_each(?)", []any{string(namespaces)}},
	} {
		if _, err := connection.ExecContext(ctx, statement.text, statement.arguments...); err != nil {
			return nil, fmt.Errorf("prepare query: %w", err)
		}
	}
	return answer, nil
}

// checkTime returns an error if the inventory has no facts of a time, or not all of them any more.
func checkTime(ctx context.Context, connection *sql.Conn, at string) error {
	var began sql.NullString
	err := connection.QueryRowContext(ctx, "SELECT min(began) FROM main.observations WHERE source = ?",
		inventory.FromHub).Scan(&began)
	switch {
	case err != nil:
		return fmt.Errorf("read observations: %w", err)
	case !began.Valid:
		return fmt.Errorf("%w: the inventory is empty, because the hub has not recorded anything yet",
			inventory.ErrRefused)
	case at < began.String:
		return fmt.Errorf("%w: the inventory begins at %s, and the question is about %s", inventory.ErrRefused,
			began.String, at)
	default:
		return nil
	}
}

// readRows runs the query and adds its rows to the answer.
func readRows(ctx context.Context, connection *sql.Conn, q inventory.Query, a *inventory.Answer) error {
	arguments := []any{sql.Named("at", inventory.FormatTime(q.At))}
	for name, value := range q.Arguments {
		if name == "at" {
			continue
		}
		arguments = append(arguments, sql.Named(name, value))
	}
	rows, err := connection.QueryContext(ctx, q.SQL, arguments...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if a.Columns, err = rows.Columns(); err != nil {
		return err
	}
	if len(a.Columns) == 0 {
		return errNoStatement
	}
	size := 0
	for rows.Next() {
		row, err := readRow(rows, len(a.Columns))
		if err != nil {
			return err
		}
		for _, value := range row {
			size += sizeOf(value)
		}
		if len(a.Rows) == MaxRows || size > maxAnswer {
			a.Truncated = true
			break
		}
		a.Rows = append(a.Rows, row)
	}
	return rows.Err()
}

// readRow returns the values of a row.
func readRow(rows *sql.Rows, columns int) ([]any, error) {
	row, into := make([]any, columns), make([]any, columns)
	for i := range row {
		into[i] = &row[i]
	}
	return row, rows.Scan(into...)
}

// sizeOf returns about how many bytes a value needs.
func sizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return len(v) + 16
	case []byte:
		return len(v) + 24
	default:
		return 16
	}
}

// limits are the limits of SQLite for queries: see https://www.sqlite.org/limits.html.
var limits = map[int]int{
	sqlite3.SQLITE_LIMIT_LENGTH:              maxValue,
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          maxText,
	sqlite3.SQLITE_LIMIT_COLUMN:              200,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          100,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     20,
	sqlite3.SQLITE_LIMIT_VDBE_OP:             20_000,
	sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        50,
	sqlite3.SQLITE_LIMIT_ATTACHED:            0,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
	sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     100,
	sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       1,
	sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
}

// setLimits sets the limits of SQLite in a connection.
func setLimits(connection *sql.Conn) error {
	for id, value := range limits {
		if _, err := sqlite.Limit(connection, id, value); err != nil {
			return fmt.Errorf("limit queries: %w", err)
		}
	}
	return nil
}
