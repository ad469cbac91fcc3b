// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const goodPolicy = `
apiVersion: bellwether.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: valid}
spec:
  minWaves: 3
  minSoak: 30m
  maxConcurrency: 10%
  gates: [{name: go, approval: {}}]
  windows: [nights]`

func TestRolloutPolicyValidation(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "policies")
	for name, test := range map[string]struct {
		path, value, want string
	}{
		"good":                 {"spec.reason", "as the platform team says", ""},
		"selectors":            {"spec.clusterSelector", "{matchLabels: {stage: prod}}", ""},
		"a long name":          {"metadata.name", strings.Repeat("a", 31), "at most 30 characters"},
		"one wave":             {"spec.minWaves", "1", "greater than or equal to 2"},
		"no soak":              {"spec.minSoak", "0s", "minSoak must be between 1s and 720h"},
		"no concurrency":       {"spec.maxConcurrency", "0", "at least 1"},
		"a gate of two kinds":  {"spec.gates", `[{name: go, approval: {}, slo: {}}]`, "exactly one of"},
		"a slash in a gate":    {"spec.gates", `[{name: a/b, approval: {}}]`, "should match"},
		"a gate's long name":   {"spec.gates", `[{name: ` + strings.Repeat("a", 33) + `, approval: {}}]`, "at most 32"},
		"nothing is asked for": {"spec", "{reason: none}", "must ask for something"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, goodPolicy, namespace)
			object.SetNamespace("")
			set(t, object, test.path, test.value)
			expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}
