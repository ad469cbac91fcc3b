// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A default channel that the version is not in is right if another version is in it.
func TestDefaultChannel(t *testing.T) {
	annotations := func(version, channels string) string {
		return "-- " + version + "metadata/annotations.yaml.patch --\nannotations:\n" +
			"  operators.operatorframework.io.bundle.channel.default.v1: stable\n" +
			"  operators.operatorframework.io.bundle.channels.v1: " + channels + "\n"
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"its own":        {annotations("", `"fast,stable"`), nil},
		"of another":     {annotations("history/1.0.0/", "stable") + annotations("", "fast"), nil},
		"of a newer one": {annotations("history/9.0.0/", "stable") + annotations("", "fast"), nil},
		"without a history": {annotations("", "fast"), []string{`warning: the default channel "stable" is not one of ` +
			"the version's own channels (fast): another version must be in it"}},
		"of none": {annotations("history/1.0.0/", "candidate") + annotations("", "fast"),
			[]string{`error: no version is in the default channel "stable"; this one is in fast`}},
		"of none that is known": {annotations("history/1.0.0/", `""`) + annotations("", "fast"),
			[]string{`warning: the default channel "stable" is not one of the version's own channels (fast): another ` +
				"version must be in it"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, "bundle-annotations", tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
