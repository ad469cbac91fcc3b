// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive writes and reads backups. A backup is a folder of a store with two files:
//
//	objects.jsonl.zst   one object in each line, as JSON, compressed with zstd;
//	                    with the ending .age if it is encrypted with age
//	manifest.json       what is in the backup, and its checksums
//
// The manifest is written last, so a folder without a manifest is not a backup. All data is streamed: only one object
// at a time is in memory.
package archive

import (
	"errors"
	"time"
)

// ManifestName is the name of the manifest.
const ManifestName = "manifest.json"

// formatVersion is the version of the format.
const formatVersion = 1

// Manifest describes the content of a backup.
type Manifest struct {
	Format int `json:"format"`
	// Name is the name of the OperatorBackup, and Cluster the cluster that it was taken on.
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	// Operator is the namespace and the name of the ManagedOperator.
	Operator string `json:"operator"`
	// Bundle and Version were installed when the backup was taken.
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
	// Version is the version in which the objects were read; for custom resources, the storage version.
	Version string `json:"version"`
	Plural  string `json:"plural"`
	Kind    string `json:"kind"`
	// StoredVersions are the stored versions of the CustomResourceDefinition.
	StoredVersions []string `json:"storedVersions,omitempty"`
	Objects        int64    `json:"objects"`
	// Skipped is the number of objects that were left out because they were being deleted.
	Skipped int64 `json:"skipped,omitempty"`
}

// Name returns the plural and the group, which is the name of the CustomResourceDefinition.
func (r Resource) Name() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// APIVersion returns the apiVersion of the objects.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Content describes the file with the objects.
type Content struct {
	File string `json:"file"`
	// Bytes and SHA256 describe the file in the store.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// PlainBytes and PlainSHA256 describe the lines before compression and encryption.
	PlainBytes  int64  `json:"plainBytes"`
	PlainSHA256 string `json:"plainSHA256"`
	// Encrypted is set if the file is encrypted with age.
	Encrypted bool `json:"encrypted,omitempty"`
}

// Objects returns the number of objects.
func (m Manifest) Objects() int64 {
	var n int64
	for _, r := range m.Resources {
		n += r.Objects
	}
	return n
}

var (
	// ErrNoBackup means that there is no backup: the folder has no manifest.
	ErrNoBackup = errors.New("no complete backup")
	// ErrDamaged means that the data that was read differs from the data that was written.
	ErrDamaged = errors.New("damaged backup")
	// ErrTooLarge means that a backup exceeds its maximum size in the store.
	ErrTooLarge = errors.New("backup too large")
	// ErrIdentity means that none of the identities decrypts the backup.
	ErrIdentity = errors.New("wrong identity")
	// ErrStore means that the store could not be written or read.
	ErrStore = errors.New("store unavailable")
)
