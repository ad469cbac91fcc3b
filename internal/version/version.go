// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version returns the version of a program of Bellwether. Hub, agent and command line, their reports, and
// their images and archives all use it.
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

// Variable is the variable that the linker sets to the version of a release, as in -X VARIABLE=1.2.3. Go's build
// information alone would need a tag of the commit before the release is built.
const Variable = Module + "/internal/version.release"

var release string

// Devel is the version of a program without any information about its source.
const Devel = "devel"

// Info is the known data about a program.
type Info struct {
	// Version is the version of a release, such as 1.2.3; or the version that Go derives from a commit's last tag,
	// time and hash, with "+dirty" if files were changed; or Devel. It has no "v".
	Version string `json:"version"`
	// Revision is the hash of the commit; empty if it is not known.
	Revision string `json:"revision,omitempty"`
	// Time is when the commit was made; nil if it is not known.
	Time *time.Time `json:"time,omitempty"`
	// Modified is true if files were changed after the commit.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of Go.
	Go string `json:"go"`
}

// Get returns the data about this program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return ReadInfo(build, release)
}

// ReadInfo returns the data about a program from its build information and from the release that the linker
// set. release is empty for a program that was not built as a release; otherwise it replaces the version in the
// build information.
func ReadInfo(build *debug.BuildInfo, release string) Info {
	info := Info{Version: Devel, Go: build.GoVersion}
	if v := build.Main.Version; build.Main.Path == Module && v != "" && v != "(devel)" {
		info.Version = trimPrefix(v)
	}
	if release != "" {
		info.Version = trimPrefix(release)
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

// trimPrefix returns the version without a leading "v".
func trimPrefix(version string) string { return strings.TrimPrefix(version, "v") }

// String returns the version. If the version does not contain the hash of the commit, the first 12 digits of the hash
// follow, and "modified" if files were changed.
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

// UserAgent returns the User-Agent header of a program.
func UserAgent(program string) string { return program + "/" + Get().Version }

// Release returns the release of this program. It returns false if the program was not built as a release.
func Release() (string, bool) { return trimPrefix(release), release != "" }

// ErrInvalid means that a text is not the version of a release.
var ErrInvalid = errors.New("not the version of a release")

// Check returns an error that wraps ErrInvalid if the text is not the version of a release: a semantic version, with or
// without a leading "v". Build metadata is not allowed, because tags of images cannot contain "+".
func Check(text string) error {
	v, err := semver.Parse(trimPrefix(text))
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalid, text, err)
	}
	if len(v.Build) > 0 {
		return fmt.Errorf("%w: %q has build metadata", ErrInvalid, text)
	}
	return nil
}

// MaxSkew is the maximum difference between the minor versions of hub and agents.
const MaxSkew = 1

// Skew is the difference between the versions of a hub and of an agent.
type Skew string

const (
	// SkewUnknown means that at least one is not the version of a release or of a commit after a release.
	SkewUnknown Skew = ""
	// SkewSupported means that the difference is at most MaxSkew minor versions.
	SkewSupported Skew = "Supported"
	// SkewAgentOld means that the agent is older by more than MaxSkew minor versions, or by a major version.
	SkewAgentOld Skew = "AgentOld"
	// SkewHubOld means that the hub is older by more than MaxSkew minor versions, or by a major version.
	SkewHubOld Skew = "HubOld"
)

// Compare compares the version of a hub with the version of an agent. Versions of different majors are not supported.
func Compare(hub, agent string) Skew {
	h, isHubKnown := parseVersion(hub)
	a, isAgentKnown := parseVersion(agent)
	switch {
	case !isHubKnown || !isAgentKnown:
		return SkewUnknown
	case h.Major > a.Major, h.Major == a.Major && h.Minor > a.Minor+MaxSkew:
		return SkewAgentOld
	case a.Major > h.Major, a.Major == h.Major && a.Minor > h.Minor+MaxSkew:
		return SkewHubOld
	}
	return SkewSupported
}

// parseVersion parses a version, and returns whether it is known. Go uses 0.0.0 for a commit without an earlier tag,
// so that version is not known.
func parseVersion(text string) (semver.Version, bool) {
	v, err := semver.Parse(trimPrefix(text))
	return v, err == nil && (v.Major > 0 || v.Minor > 0 || v.Patch > 0)
}
