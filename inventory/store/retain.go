// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

// Retention is how much of the past is kept.
type Retention struct {
	// Age is how long a row is kept after it has ended.
	Age time.Duration
	// Bytes is how large the inventory may be. If it is larger, less of the past is kept, but at least MinAge.
	Bytes int64
}

// MinAge is what is kept of the past even if the inventory is larger than it may be.
const MinAge = time.Hour

// chunk is how many keys are cleaned in one transaction, so that recording does not wait for long.
const chunk = 2000

// Retain removes the past that need not be kept. Rows that are true now are always kept. The file does not become
// smaller; what is recorded next uses the space. It returns since when the inventory is complete.
func (s *Store) Retain(ctx context.Context, now time.Time, r Retention) (since time.Time, err error) {
	cutoff := now.Add(-r.Age)
	if err := s.removeBefore(ctx, cutoff); err != nil {
		return time.Time{}, err
	}
	for {
		size, began, err := s.measure(ctx)
		if err != nil {
			return time.Time{}, err
		}
		since = began
		limit := now.Add(-MinAge)
		if size <= r.Bytes || !began.Before(limit) {
			return since, nil
		}
		// A tenth of the rest at a time, so that no more is removed than necessary.
		cutoff = began.Add(max(limit.Sub(began)/10, min(MinAge, limit.Sub(began))))
		if err := s.removeBefore(ctx, cutoff); err != nil {
			return time.Time{}, err
		}
	}
}

// measure returns how many bytes the inventory uses, and when it begins.
func (s *Store) measure(ctx context.Context) (size int64, began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text sql.NullString
	if err := s.connection.QueryRowContext(ctx, `SELECT (page_count - freelist_count) * page_size,
		(SELECT min(began) FROM observations)
		FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&size, &text); err != nil {
		return 0, time.Time{}, fmt.Errorf("measure inventory: %w", err)
	}
	if !text.Valid {
		return size, time.Time{}, nil
	}
	began, err = time.Parse(inventory.TimeFormat, text.String)
	return size, began, err
}

// removeBefore removes what ended before a time. After that, the inventory begins at that time.
func (s *Store) removeBefore(ctx context.Context, cutoff time.Time) error {
	at := inventory.FormatTime(cutoff)
	// First, so that no query is answered from what is half removed.
	if err := s.change(ctx, "DELETE FROM observations WHERE until < ?", at); err != nil {
		return err
	}
	if err := s.change(ctx, "UPDATE OR REPLACE observations SET began = ? WHERE began < ?", at, at); err != nil {
		return err
	}
	for _, t := range inventory.Tables() {
		if t.IsLog { // rows about the past are few, and are kept
			continue
		}
		if err := s.removeRows(ctx, t, at); err != nil {
			return fmt.Errorf("remove rows of %s: %w", t.Name, err)
		}
	}
	return nil
}

// removeRows removes the rows of a table that ended before a time, and keys without rows.
func (s *Store) removeRows(ctx context.Context, t *inventory.Table, at string) error {
	var last sql.NullInt64
	s.mu.Lock()
	err := s.connection.QueryRowContext(ctx, "SELECT max(id) FROM "+keysOf(t)).Scan(&last)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for id := int64(0); id <= last.Int64; id += chunk {
		if err := s.change(ctx, fmt.Sprintf("DELETE FROM %s WHERE id >= ? AND id < ? AND valid_to < ?", statesOf(t)),
			id, id+chunk, at); err != nil {
			return err
		}
		orphans := fmt.Sprintf("DELETE FROM %s WHERE id >= ? AND id < ? AND id NOT IN "+
			"(SELECT id FROM %s WHERE id >= ? AND id < ?)", keysOf(t), statesOf(t))
		if err := s.change(ctx, orphans, id, id+chunk, id, id+chunk); err != nil {
			return err
		}
	}
	return nil
}

// change executes one statement in a transaction of its own.
func (s *Store) change(ctx context.Context, text string, arguments ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.connection.ExecContext(ctx, text, arguments...); err != nil {
		return fmt.Errorf("remove the past: %w", err)
	}
	return nil
}
