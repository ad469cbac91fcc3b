// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	recordSuffix = ".pid.json"
	// goneLimit is how long a killed process may take to disappear.
	goneLimit = 5 * time.Second
)

// Record is what is written down about a running process. A process id alone may have been reused since; together with
// the time the process started it names one process.
type Record struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // as the system tells it, only to be compared
	Path    string `json:"path"`
}

func newRecord(spec Spec, pid int) (Record, error) {
	started, _, err := startTime(pid)
	if err != nil {
		return Record{}, fmt.Errorf("read start time: %w", err)
	}
	return Record{Name: spec.Name, PID: pid, Started: started, Path: spec.Path}, nil
}

func recordPath(dir, name string) string { return filepath.Join(dir, name+recordSuffix) }

// write stores the record as a whole or not at all.
func (r Record) write(dir string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	path := recordPath(dir, r.Name)
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("finish record: %w", err)
	}
	return nil
}

// Alive reports whether the very process of the record still runs.
func (r Record) Alive() bool {
	started, ended, err := startTime(r.PID)
	return err == nil && !ended && started == r.Started
}

// Records returns what is written down anywhere below dir.
func Records(dir string) ([]Record, error) {
	var records []Record
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !strings.HasSuffix(path, recordSuffix) {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		var r Record
		if err := json.Unmarshal(content, &r); err != nil {
			return fmt.Errorf("decode %s: %w", path, err)
		}
		records = append(records, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read process records: %w", err)
	}
	return records, nil
}

// ErrSurvived says that a killed process is still there.
var ErrSurvived = errors.New("still runs after it was killed")

// KillLeftovers ends every recorded process below dir that still runs, and returns their names when they are gone. Only
// the owner of dir may call it.
func KillLeftovers(dir string) ([]string, error) {
	records, err := Records(dir)
	if err != nil {
		return nil, err
	}
	var killed []string
	for _, r := range records {
		if !r.Alive() {
			continue
		}
		killGroup(r.PID)
		if !gone(r) {
			return killed, fmt.Errorf("end %s (%d): %w", r.Name, r.PID, ErrSurvived)
		}
		killed = append(killed, r.Name)
	}
	return killed, nil
}

// gone waits until the process of the record has ended, which may take a moment after the kill.
func gone(r Record) bool {
	ticker := time.NewTicker(goneLimit / 500)
	defer ticker.Stop()
	limit := time.NewTimer(goneLimit)
	defer limit.Stop()
	for r.Alive() {
		select {
		case <-ticker.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

// Self returns the record of this program, by which others can recognise it.
func Self() (Record, error) {
	path, err := os.Executable()
	if err != nil {
		return Record{}, fmt.Errorf("find executable: %w", err)
	}
	return newRecord(Spec{Name: filepath.Base(path), Path: path}, os.Getpid())
}
