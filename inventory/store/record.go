// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

// MaxGap is how long a source counts as observed after it was recorded. Record must be called more often, also without
// facts. After a longer time, it is not known what was true in between.
const MaxGap = time.Minute

// Batch is what was observed of a source.
type Batch struct {
	Source inventory.Source
	// At is when it was observed.
	At time.Time
	// Facts are what has changed since the last batch, or all facts of the source if IsComplete is true.
	Facts iter.Seq[inventory.Facts]
	// IsComplete makes the batch end every row of the source that Facts do not have.
	IsComplete bool
}

// ErrIncomplete means that the first batch of a source after Open does not have all facts of the source, so that it
// would not be noticed what was removed before.
var ErrIncomplete = errors.New("the first batch of a source must be complete")

// Record writes a batch to the file, whole or not at all. When it returns without an error, the batch is on disk.
//
// A row that changes ends at the time of the batch, and the changed row begins then. If the source was not observed
// for longer than MaxGap before, the ended row is marked: it was last observed before that gap.
func (s *Store) Record(ctx context.Context, b Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.observed[b.Source] && !b.IsComplete {
		return ErrIncomplete
	}
	r := &recorder{Store: s, at: inventory.FormatTime(b.At)}
	if err := s.inTransaction(ctx, func() error { return r.recordBatch(ctx, b) }); err != nil {
		return err
	}
	s.observed[b.Source] = true
	return nil
}

// inTransaction calls a function within a transaction, which is rolled back if the function returns an error.
func (s *Store) inTransaction(ctx context.Context, do func() error) error {
	if _, err := s.connection.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	err := do()
	if err == nil {
		if _, err = s.connection.ExecContext(ctx, "COMMIT"); err == nil {
			return nil
		}
		err = fmt.Errorf("commit transaction: %w", err)
	}
	// Also after the context has ended. SQLite has already rolled back after some errors, such as a full disk.
	_, _ = s.connection.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// recordBatch writes a batch.
func (r *recorder) recordBatch(ctx context.Context, b Batch) error {
	if err := r.recordObservation(ctx, b.Source, b.At); err != nil {
		return err
	}
	if b.IsComplete {
		r.seen = map[*inventory.Table]map[int64]bool{}
	}
	for f := range b.Facts {
		if err := r.recordFacts(ctx, f); err != nil {
			return fmt.Errorf("record %s of %q: %w", f.Table.Name, f.Owner, err)
		}
	}
	if b.IsComplete {
		return r.endUnseen(ctx, b.Source)
	}
	return nil
}

// recorder records one batch.
type recorder struct {
	*Store
	at string
	// lastObserved is when the source was observed before a gap; nil without a gap.
	lastObserved any
	// seen are the rows that a complete batch has.
	seen map[*inventory.Table]map[int64]bool
}

// recordObservation extends the time in which the source was observed, or begins another one after a gap.
func (r *recorder) recordObservation(ctx context.Context, source inventory.Source, at time.Time) error {
	var last sql.NullString
	if err := r.connection.QueryRowContext(ctx, `SELECT max(until) FROM observations WHERE source = ?`, source).
		Scan(&last); err != nil {
		return fmt.Errorf("read observations: %w", err)
	}
	if last.Valid && last.String >= inventory.FormatTime(at.Add(-MaxGap)) {
		return r.exec(ctx, `UPDATE observations SET until = max(until, ?) WHERE source = ? AND
			began = (SELECT max(began) FROM observations WHERE source = ?)`, r.at, source, source)
	}
	if last.Valid {
		r.lastObserved = last.String
	}
	return r.exec(ctx, `INSERT INTO observations (source, began, until) VALUES (?, ?, ?)`, source, r.at, r.at)
}

// openRow is a row that is true now.
type openRow struct {
	id        int64
	key       []string
	validFrom string
	values    []any
}

// recordFacts compares the facts of an owner with the rows that are true now, and writes the differences.
func (r *recorder) recordFacts(ctx context.Context, f inventory.Facts) error {
	if err := f.Check(); err != nil {
		return err
	}
	open, err := r.readOpen(ctx, f.Table, f.Owner)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, row := range f.Rows {
		key := strings.Join(row.Key, "\x00")
		if done[key] { // an object may say the same twice: the first one counts
			continue
		}
		done[key] = true
		old, isOpen := open[key]
		delete(open, key)
		id := old.id
		switch {
		case !isOpen:
			id, err = r.insertRow(ctx, f.Table, row)
		case !isSame(f.Table, old.values, row.Values):
			err = errors.Join(r.endRow(ctx, f.Table, old), r.insertState(ctx, f.Table, id, row.Values))
		case !slices.Equal(old.values, row.Values):
			err = r.updateState(ctx, f.Table, id, row.Values)
		}
		if err != nil {
			return err
		}
		r.markSeen(f.Table, id)
	}
	if f.Table.IsLog {
		return nil
	}
	for _, old := range open {
		if err := r.endRow(ctx, f.Table, old); err != nil {
			return err
		}
	}
	return nil
}

// isSame reports whether two rows differ in no column but those that follow.
func isSame(t *inventory.Table, a, b []any) bool {
	for i, column := range t.Values {
		if !column.Follows && a[i] != b[i] {
			return false
		}
	}
	return true
}

// markSeen notes that a complete batch has a row.
func (r *recorder) markSeen(t *inventory.Table, id int64) {
	if r.seen == nil {
		return
	}
	if r.seen[t] == nil {
		r.seen[t] = map[int64]bool{}
	}
	r.seen[t][id] = true
}

// endUnseen ends the rows of the source that a complete batch does not have.
func (r *recorder) endUnseen(ctx context.Context, source inventory.Source) error {
	for _, t := range inventory.Tables() {
		if t.Source != source || t.IsLog {
			continue
		}
		unseen, err := r.listUnseen(ctx, t)
		if err != nil {
			return fmt.Errorf("read rows of %s: %w", t.Name, err)
		}
		for _, old := range unseen {
			if err := r.endRow(ctx, t, old); err != nil {
				return fmt.Errorf("end a row of %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// listUnseen returns the rows of a table that are true now and that the batch does not have, without keys and values.
func (r *recorder) listUnseen(ctx context.Context, t *inventory.Table) ([]openRow, error) {
	rows, err := r.connection.QueryContext(ctx, fmt.Sprintf("SELECT id, valid_from FROM %s WHERE valid_to = ?",
		statesOf(t)), openEnd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var unseen []openRow
	for rows.Next() {
		var row openRow
		if err := rows.Scan(&row.id, &row.validFrom); err != nil {
			return nil, err
		}
		if !r.seen[t][row.id] {
			unseen = append(unseen, row)
		}
	}
	return unseen, rows.Err()
}

// readOpen returns the rows of an owner that are true now, by their joined keys.
func (r *recorder) readOpen(ctx context.Context, t *inventory.Table, owner []string) (map[string]openRow, error) {
	conditions, arguments := []string{"s.valid_to = ?"}, []any{openEnd}
	for i, value := range owner {
		conditions, arguments = append(conditions, "k."+t.Key[i].Name+" = ?"), append(arguments, value)
	}
	statement, err := r.prepare(ctx, fmt.Sprintf("SELECT k.id, s.valid_from, %s, %s FROM %s k JOIN %s s "+
		"ON s.id = k.id WHERE %s", listColumns("k.", t.Key), listColumns("s.", t.Values), keysOf(t), statesOf(t),
		strings.Join(conditions, " AND ")))
	if err != nil {
		return nil, err
	}
	rows, err := statement.QueryContext(ctx, arguments...)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	defer func() { _ = rows.Close() }()
	open := map[string]openRow{}
	for rows.Next() {
		row := openRow{key: make([]string, len(t.Key)), values: make([]any, len(t.Values))}
		into := []any{&row.id, &row.validFrom}
		for i := range row.key {
			into = append(into, &row.key[i])
		}
		for i := range row.values {
			into = append(into, &row.values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("read row: %w", err)
		}
		open[strings.Join(row.key, "\x00")] = row
	}
	return open, rows.Err()
}

// insertRow begins a row, and returns the number of its key.
func (r *recorder) insertRow(ctx context.Context, t *inventory.Table, row inventory.Row) (int64, error) {
	arguments := make([]any, 0, len(row.Key))
	for _, value := range row.Key {
		arguments = append(arguments, value)
	}
	names := listColumns("", t.Key)
	// The update changes nothing: without it, nothing would be returned for a key that is known.
	statement, err := r.prepare(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET %s = "+
		"excluded.%s RETURNING id", keysOf(t), names, listMarks(len(t.Key)), names, t.Key[0].Name, t.Key[0].Name))
	if err != nil {
		return 0, err
	}
	var id int64
	if err := statement.QueryRowContext(ctx, arguments...).Scan(&id); err != nil {
		return 0, fmt.Errorf("insert key: %w", err)
	}
	return id, r.insertState(ctx, t, id, row.Values)
}

// insertState begins the row of a key at the time of the batch.
func (r *recorder) insertState(ctx context.Context, t *inventory.Table, id int64, values []any) error {
	arguments := append([]any{id, openEnd, r.at}, values...)
	return r.exec(ctx, fmt.Sprintf("INSERT INTO %s (id, valid_to, valid_from, %s) VALUES (%s)", statesOf(t),
		listColumns("", t.Values), listMarks(len(arguments))), arguments...)
}

// updateState changes the values of the row that is true now.
func (r *recorder) updateState(ctx context.Context, t *inventory.Table, id int64, values []any) error {
	var assignments []string
	for _, c := range t.Values {
		assignments = append(assignments, c.Name+" = ?")
	}
	return r.exec(ctx, fmt.Sprintf("UPDATE %s SET %s WHERE id = ? AND valid_to = ?", statesOf(t),
		strings.Join(assignments, ", ")), append(slices.Clone(values), id, openEnd)...)
}

// endRow ends a row at the time of the batch. A row that did not begin before, because the clock is not finer or was
// set back, is removed.
func (r *recorder) endRow(ctx context.Context, t *inventory.Table, old openRow) error {
	if old.validFrom >= r.at {
		return r.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE id = ? AND valid_to = ?", statesOf(t)), old.id, openEnd)
	}
	return r.exec(ctx, fmt.Sprintf("UPDATE OR REPLACE %s SET valid_to = ?, observed_until = ? "+
		"WHERE id = ? AND valid_to = ?", statesOf(t)), r.at, r.lastObserved, old.id, openEnd)
}

// exec executes a statement, which is prepared only once.
func (r *recorder) exec(ctx context.Context, text string, arguments ...any) error {
	statement, err := r.prepare(ctx, text)
	if err != nil {
		return err
	}
	if _, err := statement.ExecContext(ctx, arguments...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// prepare returns a statement, which is prepared only once.
func (r *recorder) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if statement := r.statements[text]; statement != nil {
		return statement, nil
	}
	statement, err := r.connection.PrepareContext(context.WithoutCancel(ctx), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	r.statements[text] = statement
	return statement, nil
}

func keysOf(t *inventory.Table) string { return t.Name + "_keys" }

func statesOf(t *inventory.Table) string { return t.Name + "_states" }

// listColumns returns the names of columns, each with the prefix, as a list of SQL.
func listColumns(prefix string, columns []inventory.Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, prefix+c.Name)
	}
	return strings.Join(names, ", ")
}

// listMarks returns the marks of so many arguments as a list of SQL.
func listMarks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
