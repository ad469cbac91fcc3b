// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which version of Bellwether a program is. Hub, agent and command line, what they report, and the
// images and archives that they are shipped in all ask here.
//
// Its input is what Go and the linker put into a program; it reads no file and starts no process.
package version

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

// Module is the path of the product's module.
const Module = "github.com/bellwether-dev/bellwether"

// Variable is the variable that the linker sets to the version of a release, as in -X VARIABLE=1.2.3. A version of
// Go's build information alone would need a tag of the commit before the release is built.
const Variable = Module + "/version.release"

var release string

// Devel is the version of a program that says nothing of where it was built from.
const Devel = "devel"

// Info is what is known of a program.
type Info struct {
	// Version is that of a release, as in 1.2.3; or of a commit, as Go makes it of the last tag, the time and the hash,
	// with "+dirty" where files were changed; or Devel. It has no "v".
	Version string `json:"version"`
	// Revision is the hash of the commit; empty if it is not known.
	Revision string `json:"revision,omitempty"`
	// Time is when the commit was made; nil if it is not known.
	Time *time.Time `json:"time,omitempty"`
	// Modified says that files had been changed since the commit.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of Go.
	Go string `json:"go"`
}

// Get returns what is known of this program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return Of(build, release)
}

// Of returns what is known of a program by its build information, and by the release that it was linked as; empty if
// that is none.
func Of(build *debug.BuildInfo, release string) Info {
	info := Info{Version: Devel, Go: build.GoVersion}
	if v := build.Main.Version; build.Main.Path == Module && v != "" && v != "(devel)" {
		info.Version = trim(v)
	}
	if release != "" {
		info.Version = trim(release)
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.time":
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				at = at.UTC()
				info.Time = &at
			}
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

func trim(version string) string { return strings.TrimPrefix(version, "v") }

// String returns the version, and the commit where the version does not name it.
func (i Info) String() string {
	short := i.Revision[:min(len(i.Revision), 12)]
	if short == "" || strings.Contains(i.Version, short) {
		return i.Version
	}
	if i.Modified {
		short += ", modified"
	}
	return i.Version + " (" + short + ")"
}

// UserAgent is what a program calls itself in requests.
func UserAgent(program string) string { return program + "/" + Get().Version }

// Release returns the release that this program is one of; false where it was built from a commit.
func Release() (string, bool) { return trim(release), release != "" }

// ErrInvalid says that a text is no version of a release.
var ErrInvalid = errors.New("not the version of a release")

// Check returns nil for what a release may be called: a semantic version without build metadata, with or without a
// "v". Errors wrap ErrInvalid. (Tags of images have no "+".)
func Check(text string) error {
	v, err := semver.Parse(trim(text))
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalid, text, err)
	}
	if len(v.Build) > 0 {
		return fmt.Errorf("%w: %q has build metadata", ErrInvalid, text)
	}
	return nil
}

// MaxSkew is how many minor versions hub and agents may be apart.
const MaxSkew = 1

// Skew says how the versions of a hub and of an agent are apart.
type Skew string

const (
	// SkewUnknown says that one of the two is not the version of a release, nor of a commit after one.
	SkewUnknown Skew = ""
	// SkewSupported says that they are at most MaxSkew minor versions apart.
	SkewSupported Skew = "Supported"
	// SkewAgentOld says that the agent is older by more than that, or by a major version.
	SkewAgentOld Skew = "AgentOld"
	// SkewHubOld says that the hub is older by more than that, or by a major version.
	SkewHubOld Skew = "HubOld"
)

// Compare compares the version of a hub with that of an agent.
func Compare(hub, agent string) Skew {
	h, ok := parse(hub)
	a, known := parse(agent)
	switch {
	case !ok || !known:
		return SkewUnknown
	case h.Major > a.Major, h.Major == a.Major && h.Minor > a.Minor+MaxSkew:
		return SkewAgentOld
	case a.Major > h.Major, a.Major == h.Major && a.Minor > h.Minor+MaxSkew:
		return SkewHubOld
	}
	return SkewSupported
}

// parse reads a version. Go calls a commit 0.0.0 if there is no tag before it, which tells nothing.
func parse(text string) (semver.Version, bool) {
	v, err := semver.Parse(trim(text))
	return v, err == nil && (v.Major > 0 || v.Minor > 0 || v.Patch > 0)
}
