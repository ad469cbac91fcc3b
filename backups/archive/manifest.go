// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive writes and reads backups. A backup is a folder of a store with
// two files:
//
//	objects.jsonl.zst   one object in each line, as JSON, compressed with zstd;
//	                    with the ending .age if it is encrypted with age
//	manifest.json       what is in it, and its checksums
//
// The manifest is written last, so that a backup without one is none. Everything
// is streamed: no more than one object is in memory at a time.
package archive

import (
	"errors"
	"time"
)

// ManifestName is the name of the manifest.
const ManifestName = "manifest.json"

// format is the version of the format.
const format = 1

// Manifest says what is in a backup.
type Manifest struct {
	Format int `json:"format"`
	// Name of the OperatorBackup, and Cluster that it was taken on.
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	// Operator is the namespace and the name of the ManagedOperator.
	Operator string `json:"operator"`
	// Bundle and Version that were installed.
	Bundle  string    `json:"bundle,omitempty"`
	Version string    `json:"version,omitempty"`
	TakenAt time.Time `json:"takenAt"`

	Resources []Resource `json:"resources"`
	Content   Content    `json:"content"`
}

// Resource is a resource of the API whose objects are in a backup.
type Resource struct {
	// Group is empty for the core API.
	Group string `json:"group,omitempty"`
	// Version in which the objects were read: for custom resources the storage
	// version.
	Version string `json:"version"`
	Plural  string `json:"plural"`
	Kind    string `json:"kind"`
	// StoredVersions are those of the CustomResourceDefinition.
	StoredVersions []string `json:"storedVersions,omitempty"`
	Objects        int64    `json:"objects"`
	// Skipped objects were being deleted.
	Skipped int64 `json:"skipped,omitempty"`
}

// Name is the plural and the group, which is the name of the
// CustomResourceDefinition.
func (r Resource) Name() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// APIVersion of the objects.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Content describes the file with the objects.
type Content struct {
	File string `json:"file"`
	// Bytes and SHA256 are those of the file in the store.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// PlainBytes and PlainSHA256 are those of the lines.
	PlainBytes  int64  `json:"plainBytes"`
	PlainSHA256 string `json:"plainSHA256"`
	// Encrypted says that the file is encrypted with age.
	Encrypted bool `json:"encrypted,omitempty"`
}

// Objects is how many there are.
func (m Manifest) Objects() int64 {
	var n int64
	for _, r := range m.Resources {
		n += r.Objects
	}
	return n
}

var (
	// ErrNone says that there is no backup: the folder has no manifest.
	ErrNone = errors.New("no complete backup")
	// ErrDamaged says that what was read is not what was written.
	ErrDamaged = errors.New("damaged backup")
	// ErrTooLarge says that a backup takes more of the store than it may.
	ErrTooLarge = errors.New("backup too large")
	// ErrIdentity says that none of the identities decrypts the backup.
	ErrIdentity = errors.New("wrong identity")
	// ErrStore says that the store could not be written or read.
	ErrStore = errors.New("store unavailable")
)
