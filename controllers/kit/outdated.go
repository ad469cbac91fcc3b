// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// outdatedObjects is how many objects are remembered. For one that is forgotten, a write is refused.
	outdatedObjects = 4096
	// outdatedFor bounds what is remembered: after a restore of its data, an API server may serve a version again.
	outdatedFor = 10 * time.Second
)

// outdated remembers, for a short time, which versions of objects are not the newest, although a cache still has them.
type outdated struct{ versions *lru.Cache }

type outdatedVersion struct {
	version string
	noted   time.Time
}

func newOutdated() outdated { return outdated{lru.New(outdatedObjects)} }

func (o outdated) note(obj client.Object, version string, now time.Time) {
	o.versions.Add(obj.GetUID(), outdatedVersion{version, now})
}

// has tells whether the object, as it was read, is known to be outdated.
func (o outdated) has(obj client.Object, now time.Time) bool {
	uid := obj.GetUID()
	known, ok := o.versions.Get(uid)
	if !ok {
		return false
	}
	v := known.(outdatedVersion)
	if v.version == obj.GetResourceVersion() && now.Sub(v.noted) < outdatedFor {
		return true
	}
	o.versions.Remove(uid)
	return false
}
