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

// A failed read is repeated after firstWait; this time doubles with each further failure, up to maxWait.
const (
	firstWait = time.Second
	maxWait   = 2 * time.Minute
	// maxFailures bounds how many failures are recorded.
	maxFailures = 1000
)

// failures records failed reads, because many operators on many clusters need the same digest, and each of them
// retries by itself.
type failures struct {
	mu    sync.Mutex
	now   func() time.Time
	byKey map[string]failure
}

type failure struct {
	err     error
	wait    time.Duration
	retryAt time.Time
}

// buildFailureKey returns the key of reads that fail together: a digest at its source, with the access to it.
func buildFailureKey(s oci.Source, digest string) string {
	access := sha256.Sum256(fmt.Appendf(nil, "%+v", s.Access))
	return buildKey(s, "failed", s.String(), digest, fmt.Sprintf("%x", access))
}

// getError returns the error of the first key whose read failed and must not be repeated yet, or nil.
func (f *failures) getError(keys ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		if entry, ok := f.byKey[k]; ok && f.now().Before(entry.retryAt) {
			return entry.err
		}
	}
	return nil
}

// record records the result of a read. The error of a single package is recorded for the read only, because the
// digest can have other, valid packages.
func (f *failures) record(digestKey, readKey string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.byKey, digestKey)
		delete(f.byKey, readKey)
		return
	}
	key := digestKey
	if errors.Is(err, catalogs.ErrNoPackage) || errors.Is(err, catalogs.ErrInvalidPackage) {
		delete(f.byKey, digestKey) // the digest itself could be read
		key = readKey
	}
	if len(f.byKey) >= maxFailures {
		clear(f.byKey)
	}
	wait := min(max(firstWait, 2*f.byKey[key].wait), maxWait)
	f.byKey[key] = failure{err: err, wait: wait, retryAt: f.now().Add(wait)}
}
