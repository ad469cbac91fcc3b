// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxOutdated is how many objects are recorded. A write of an outdated object that is not
	// recorded is refused by the API server.
	maxOutdated = 4096
	// outdatedRetention is how long a version is recorded. After a restore of its data, an API
	// server might serve the same version again.
	outdatedRetention = 10 * time.Second
)

// outdatedVersions records, for a short time, which cached versions of objects
// are not the newest versions.
type outdatedVersions struct{ versions *lru.Cache }

// outdatedVersion is a recorded version of an object.
type outdatedVersion struct {
	version    string
	recordedAt time.Time
}

// newOutdatedVersions returns an empty record.
func newOutdatedVersions() outdatedVersions { return outdatedVersions{lru.New(maxOutdated)} }

// record stores that a version of an object is not the newest version.
func (o outdatedVersions) record(obj client.Object, version string, now time.Time) {
	o.versions.Add(obj.GetUID(), outdatedVersion{version: version, recordedAt: now})
}

// contains reports whether the version of the object is recorded as outdated. It removes a record
// of another version, and a record that is older than outdatedRetention.
func (o outdatedVersions) contains(obj client.Object, now time.Time) bool {
	uid := obj.GetUID()
	known, ok := o.versions.Get(uid)
	if !ok {
		return false
	}
	v := known.(outdatedVersion)
	if v.version == obj.GetResourceVersion() && now.Sub(v.recordedAt) < outdatedRetention {
		return true
	}
	o.versions.Remove(uid)
	return false
}
