// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// BenchmarkBreaks compares the largest real definition with its whole history.
func BenchmarkBreaks(b *testing.B) {
	newer := bundletest.Read(b, "grafana-operator/5.9.2")
	history := bundletest.ReadAll(b, "grafana-operator", "5.6.3")
	for b.Loop() {
		for _, d := range newer.CRDs {
			crd.ListBreaks(crd.FindPublished(history, d.Name), d)
		}
	}
}

// TestRealBreaks checks everything that grafana-operator 5.9.2 takes away from users of the versions before it. Its
// many new defaults are counted.
func TestRealBreaks(t *testing.T) {
	const selector = "field .spec.instanceSelector of v1beta1 has a new validation rule: self == oldSelf"
	const pod = "field .spec.deployment.spec.template.spec."
	pattern := `field .spec.resyncPeriod of v1beta1 allows less: pattern was none and is ` +
		`"^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$" [5.6.3]`
	const format = `field .spec.resyncPeriod of v1beta1 allows less: format was none and is "duration" [5.6.3]`
	uniqueList := func(container, list, key string) string {
		return pod + container + "[*]." + list + " of v1beta1 allows less: the list becomes a map by " + key +
			", which refuses duplicates [5.6.3]"
	}
	type breaks struct {
		Breaks   []string // without new defaults
		Defaults int
	}
	want := map[string]breaks{
		"grafanaalertrulegroups.grafana.integreatly.org": {Breaks: []string{selector + " [5.6.3]"}},
		"grafanacontactpoints.grafana.integreatly.org":   {},
		"grafanadashboards.grafana.integreatly.org": {Defaults: 6,
			Breaks: []string{selector + " [5.6.3]", pattern, format}},
		"grafanadatasources.grafana.integreatly.org": {Defaults: 3,
			Breaks: []string{selector + " [5.6.3]", pattern, format}},
		"grafanafolders.grafana.integreatly.org": {Defaults: 1,
			Breaks: []string{selector + " [5.6.3]", pattern, format}},
		"grafanas.grafana.integreatly.org": {Defaults: 28, Breaks: []string{
			uniqueList("containers", "env", "name"),
			uniqueList("containers", "volumeDevices", "devicePath"),
			uniqueList("containers", "volumeMounts", "mountPath"),
			uniqueList("ephemeralContainers", "env", "name"),
			uniqueList("ephemeralContainers", "volumeDevices", "devicePath"),
			uniqueList("ephemeralContainers", "volumeMounts", "mountPath"),
			pod + "hostAliases[*].ip of v1beta1 is required now and has no default [5.6.3]",
			uniqueList("initContainers", "env", "name"),
			uniqueList("initContainers", "volumeDevices", "devicePath"),
			uniqueList("initContainers", "volumeMounts", "mountPath"),
		}},
	}
	history := bundletest.ReadAll(t, "grafana-operator", "5.6.3")
	got := map[string]breaks{}
	for _, d := range bundletest.Read(t, "grafana-operator/5.9.2").CRDs {
		var of breaks
		for _, b := range crd.ListBreaks(crd.FindPublished(history, d.Name), d) {
			if b.Kind == crd.AddedDefault {
				of.Defaults++
			} else {
				of.Breaks = append(of.Breaks, fmt.Sprint(b, " ", b.Versions))
			}
		}
		got[d.Name] = of
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaks (-want +got):\n%s", diff)
	}
}
