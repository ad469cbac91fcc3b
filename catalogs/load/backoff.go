// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// A read that failed is repeated after this long, which doubles each time that it fails again.
const (
	firstWait = time.Second
	maxWait   = 2 * time.Minute
	// maxFailures bounds how many failures are remembered.
	maxFailures = 1000
)

// failures remember reads that failed: many operators on many clusters need the same digest, and each of them comes
// back by itself.
type failures struct {
	mu  sync.Mutex
	now func() time.Time
	by  map[string]failure
}

type failure struct {
	err   error
	wait  time.Duration
	until time.Time
}

// failureKey identifies what fails together: a digest at its source, as it is accessed there.
func failureKey(s oci.Source, digest string) string {
	return key(s, "failed", s.String(), digest, fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%+v", s.Access))))
}

// current returns the error of a read that is not to be repeated yet, or nil.
func (f *failures) current(keys ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		if failed, ok := f.by[k]; ok && f.now().Before(failed.until) {
			return failed.err
		}
	}
	return nil
}

// record remembers the result of a read. The error of a single package says nothing about the digest.
func (f *failures) record(digest, read string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.by, digest)
		delete(f.by, read)
		return
	}
	key := digest
	if errors.Is(err, catalogs.ErrNoPackage) || errors.Is(err, catalogs.ErrInvalidPackage) {
		delete(f.by, digest)
		key = read
	}
	if len(f.by) >= maxFailures {
		clear(f.by)
	}
	wait := min(max(firstWait, 2*f.by[key].wait), maxWait)
	f.by[key] = failure{err: err, wait: wait, until: f.now().Add(wait)}
}
