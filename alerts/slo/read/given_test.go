// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const (
	givenOperators = `apiVersion: bellwether.dev/v1alpha1
kind: ManagedOperator
metadata: {name: echo, namespace: fleet}
spec: {package: echo}
---
`
	givenProbe = `apiVersion: bellwether.dev/v1alpha1
kind: EndpointProbe
metadata: {name: api, namespace: fleet}
spec: {operator: {namespace: fleet, name: OPERATOR}, target: {url: "https://example.com"}}
---
`
	givenObjectives = `apiVersion: bellwether.dev/v1alpha1
kind: OperatorSLO
metadata: {name: echo, namespace: fleet}
spec:
  operator: OPERATOR
  services: [{name: web, port: 80}]
  objectives: [{sli: "probe:api", target: "99"}, {sli: "probe:web:hub", target: "99"}, {sli: "probe:PROBE", target: "99"}]
`
)

// TestUnknownNames has objectives and probes that name objects which are not given.
func TestUnknownNames(t *testing.T) {
	for name, tc := range map[string]struct {
		text, operator, probe string
		want                  []string
	}{
		"everything exists":       {givenOperators + givenProbe + givenObjectives, "echo", "api:cluster", nil},
		"nothing else was given":  {givenObjectives, "ecko", "apu", nil},
		"no operators were given": {givenProbe + givenObjectives, "ecko", "api:cluster", nil},
		"no probes were given":    {givenOperators + givenObjectives, "echo", "apu", nil},
		"a misspelled operator": {givenOperators + givenProbe + givenObjectives, "ecko", "api:cluster", []string{
			"objectives of fleet/ecko: there is no ManagedOperator fleet/ecko;",
			"EndpointProbe api: there is no ManagedOperator fleet/ecko;"}},
		"an operator of another namespace": {strings.Replace(givenOperators, "fleet", "tools", 1) + givenObjectives, "echo",
			"apu", []string{"objectives of fleet/echo: there is no ManagedOperator fleet/echo (but tools/echo);"}},
		"a misspelled probe": {givenOperators + givenProbe + givenObjectives, "echo", "apu", []string{
			`fleet/echo: probe:apu: there is no EndpointProbe "apu" of the operator, and no such service;`}},
	} {
		t.Run(name, func(t *testing.T) {
			var set slo.Set
			text := strings.NewReplacer("OPERATOR", tc.operator, "PROBE", tc.probe).Replace(tc.text)
			report, err := File(&set, "default", []byte(text))
			if err != nil || len(report.Refused) > 0 {
				t.Fatal(err, report.Refused)
			}
			got := report.Given.Unknown(set)
			ok := len(got) == len(tc.want)
			for i := range tc.want {
				ok = ok && strings.HasPrefix(got[i], tc.want[i])
			}
			if !ok {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
