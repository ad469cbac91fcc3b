// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A default channel without the version is correct if another version is in it.
func TestDefaultChannel(t *testing.T) {
	annotations := func(version, channels string) string {
		return "-- " + version + "metadata/annotations.yaml.patch --\nannotations:\n" +
			"  operators.operatorframework.io.bundle.channel.default.v1: stable\n" +
			"  operators.operatorframework.io.bundle.channels.v1: " + channels + "\n"
	}
	csv := func(version, text string) string {
		return "-- " + version + "manifests/echo-operator.clusterserviceversion.yaml.patch --\n" + text
	}
	const replaces = "spec: {replaces: echo-operator.v1.0.0}\n"
	warning := []string{`warning: the default channel "stable" is not one of the version's own channels (fast): another ` +
		"version must be in it"}
	candidate := annotations("history/1.0.0/", "candidate") + annotations("", "fast")
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"its own":           {annotations("", `"fast,stable"`), nil},
		"of another":        {annotations("history/1.0.0/", "stable") + annotations("", "fast"), nil},
		"of a newer one":    {annotations("history/9.0.0/", "stable") + annotations("", "fast"), nil},
		"without a history": {annotations("", "fast"), warning},
		"of none": {candidate + csv("", replaces),
			[]string{`error: no version is in the default channel "stable"; this one is in fast`}},
		"of none that is known":              {annotations("history/1.0.0/", `""`) + annotations("", "fast"), warning},
		"of a history without upgrade edges": {candidate, warning},
		"of a history that begins with a successor": {candidate + csv("", replaces) +
			csv("history/1.0.0/", "spec: {replaces: echo-operator.v0.9.0}\n"), warning},
		"of a history that begins with a range": {candidate + csv("", replaces) +
			csv("history/1.0.0/", "metadata: {annotations: {olm.skipRange: '<1.0.0'}}\n"), warning},
		"of a history without what is skipped": {candidate +
			csv("", "spec: {replaces: echo-operator.v1.0.0, skips: [echo-operator.v1.0.1]}\n"), warning},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, "bundle-annotations", tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
