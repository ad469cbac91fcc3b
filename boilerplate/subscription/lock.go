// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
)

// Lock is the content of .boilerplate/lock.yaml, which describes the last rendering.
type Lock struct {
	Header      `yaml:",inline"`
	Conventions []Locked       `yaml:"conventions"`
	Parameters  map[string]any `yaml:"parameters,omitempty"`
	Files       []LockedFile   `yaml:"files"`              // sorted by path
	Excepted    []string       `yaml:"excepted,omitempty"` // paths that were not rendered because of an exception
}

// Locked is a convention that was rendered.
type Locked struct {
	Use        `yaml:",inline"`
	Parameters []string `yaml:"parameters,omitempty"` // the names of its parameters
	Requires   []string `yaml:"requires,omitempty"`   // the names of the conventions that it requires
}

// LockedFile is a file that was rendered.
type LockedFile struct {
	Path       string          `yaml:"path"`
	Kind       convention.Kind `yaml:"kind"`
	Convention string          `yaml:"convention"` // the convention that brings the file
	Executable bool            `yaml:"executable,omitempty"`
	// Digest is the SHA-256 of the rendered text with LF line endings. Shared files have digests of their
	// regions instead.
	Digest  string         `yaml:"digest,omitempty"`
	Regions []LockedRegion `yaml:"regions,omitempty"`
}

// LockedRegion is a region that was rendered.
type LockedRegion struct {
	Name       string `yaml:"name"`
	Convention string `yaml:"convention"`
	Digest     string `yaml:"digest"`
}

// ParseLock parses a lock. Errors wrap ErrInvalid.
func ParseLock(text []byte) (*Lock, error) {
	l := &Lock{}
	if err := Decode(text, "Lock", l); err != nil {
		return nil, fmt.Errorf("%s: %w", LockFile, err)
	}
	for _, f := range l.Files {
		if err := convention.CheckPath(f.Path); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", LockFile, ErrInvalid, err)
		}
	}
	return l, nil
}

// Write returns the text of a lock.
func (l *Lock) Write() ([]byte, error) {
	l.Header = Header{convention.APIVersion, "Lock"}
	text, err := encode(l)
	return append([]byte("# What bellwether boilerplate rendered last. Do not edit: change .boilerplate.yaml, and run "+
		"`bellwether boilerplate update`.\n"), text...), err
}

// File returns the entry of a path, or nil. The lock can be nil.
func (l *Lock) File(path string) *LockedFile {
	if l == nil {
		return nil
	}
	return findItem(l.Files, func(f LockedFile) bool { return f.Path == path })
}

// Convention returns the entry of a convention, or nil. The lock can be nil.
func (l *Lock) Convention(name string) *Locked {
	if l == nil {
		return nil
	}
	return findItem(l.Conventions, func(c Locked) bool { return c.Name == name })
}

// Region returns the entry of a region, or nil. The file can be nil.
func (f *LockedFile) Region(name string) *LockedRegion {
	if f == nil {
		return nil
	}
	return findItem(f.Regions, func(r LockedRegion) bool { return r.Name == name })
}

// Differences returns a sentence for each difference between a subscription and a lock. There is none if no update
// is needed.
func (s *Subscription) Differences(l *Lock) []string {
	if l == nil {
		return []string{"nothing was rendered yet"}
	}
	var out []string
	for _, u := range s.Conventions {
		switch locked := l.Convention(u.Name); {
		case locked == nil:
			out = append(out, "convention "+u.Name+" was not rendered yet")
		case locked.Use != u:
			out = append(out, fmt.Sprintf("convention %s is %s, and %s was rendered", u.Name, u, locked.Use))
		}
	}
	for _, locked := range l.Conventions {
		if s.Use(locked.Name) == nil {
			out = append(out, "convention "+locked.Name+" is no longer subscribed to")
		}
	}
	for _, name := range sets.List(sets.KeySet(s.Parameters).Union(sets.KeySet(l.Parameters))) {
		if !reflect.DeepEqual(s.Parameters[name], l.Parameters[name]) {
			out = append(out, fmt.Sprintf("parameter %s has another value than what was rendered", name))
		}
	}
	return out
}

// String returns the version of a convention for people, with its source and digest if it has a digest.
func (u Use) String() string {
	out := u.Version
	if u.Digest != "" {
		out += " (" + u.Source + ", " + u.Digest[:min(len(u.Digest), len("sha256:")+12)] + ")"
	}
	return out
}
