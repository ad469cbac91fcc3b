// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"errors"
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/internal/version"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func TestOf(t *testing.T) {
	at := time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: commit},
		{Key: "vcs.time", Value: "2026-11-23T20:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for name, c := range map[string]struct {
		path, main, release string
		settings            []debug.BuildSetting
		want                version.Info
		text                string
	}{
		"nothing known": {path: version.Module, main: "(devel)", want: version.Info{Version: version.Devel},
			text: "devel"},
		"a commit": {path: version.Module, main: "v0.1.1-0.20261123200000-0123456789ab+dirty", settings: settings,
			want: version.Info{Version: "0.1.1-0.20261123200000-0123456789ab+dirty", Revision: commit, Time: &at,
				Modified: true}, text: "0.1.1-0.20261123200000-0123456789ab+dirty"},
		"a tag": {path: version.Module, main: "v0.2.0", want: version.Info{Version: "0.2.0"}, text: "0.2.0"},
		"a release goes before the commit": {path: version.Module, main: "v0.1.1-0.20261123200000-0123456789ab",
			release: "v0.2.0", settings: settings[:2],
			want: version.Info{Version: "0.2.0", Revision: commit, Time: &at}, text: "0.2.0 (0123456789ab)"},
		"changed files": {path: version.Module, release: "0.2.0", settings: settings,
			want: version.Info{Version: "0.2.0", Revision: commit, Time: &at, Modified: true},
			text: "0.2.0 (0123456789ab, modified)"},
		"another module's program": {path: "example.com/other", main: "v7.0.0",
			want: version.Info{Version: version.Devel}, text: "devel"},
	} {
		t.Run(name, func(t *testing.T) {
			build := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: c.path, Version: c.main},
				Settings: c.settings}
			c.want.Go = "go1.26"
			got := version.ReadInfo(build, c.release)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("build information (-want +got):\n%s", diff)
			}
			if got.String() != c.text {
				t.Errorf("got text %q, want %q", got, c.text)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		hub, agent string
		want       version.Skew
	}{
		{"0.3.0", "0.3.9", version.SkewSupported},
		{"0.3.0", "v0.2.0", version.SkewSupported},
		{"0.3.0", "0.4.0", version.SkewSupported},
		{"0.3.0", "0.1.9", version.SkewAgentOld},
		{"0.3.0", "0.5.0", version.SkewHubOld},
		{"1.0.0", "0.9.0", version.SkewAgentOld},
		{"1.0.0", "2.0.0", version.SkewHubOld},
		{"0.3.0", "0.1.1-0.20261123200000-0123456789ab+dirty", version.SkewAgentOld},
		{"0.3.0", "0.0.0-20261123200000-0123456789ab", version.SkewUnknown},
		{"0.3.0", version.Devel, version.SkewUnknown},
		{version.Devel, "0.3.0", version.SkewUnknown},
		{"", "", version.SkewUnknown},
	} {
		if got := version.Compare(c.hub, c.agent); got != c.want {
			t.Errorf("hub %q, agent %q: got %q, want %q", c.hub, c.agent, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, good := range map[string]bool{"1.2.3": true, "v1.2.3": true, "1.2.3-rc.1": true, "1.2": false,
		"latest": false, "1.2.3+1": false, "": false} {
		if err := version.Check(text); (err == nil) != good || (err != nil && !errors.Is(err, version.ErrInvalid)) {
			t.Errorf("%q: got error %v, want a valid version: %t", text, err, good)
		}
	}
}

// TestThisProgram checks that a test binary is not a release, and has the version of Go.
func TestThisProgram(t *testing.T) {
	if _, is := version.Release(); is {
		t.Error("a test binary is called a release")
	}
	if got := version.Get(); got.Version == "" || got.Go == "" {
		t.Errorf("got %+v", got)
	}
}
