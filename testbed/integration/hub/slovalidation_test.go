// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const goodSLO = `
apiVersion: bellwether.dev/v1alpha1
kind: OperatorSLO
metadata: {name: valid}
spec:
  operator: echo
  team: messaging
  runbookURL: https://runbooks.example.com/echo
  objectives: [{sli: available, target: "99.5", period: 28d}]
  without: [catalog, "probe:"]
  services: [{name: echo, port: 8080}]
  monitor: {port: metrics}`

// TestSLOValidation makes objectives that the API server has to refuse with a
// message that helps, and good ones that it has to take.
func TestSLOValidation(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "slovalid")
	ratio := "requestRatio: {counter: http_requests_total, all: [{label: job, value: echo}], bad: [{label: code, op: " +
		"\"=~\", value: \"5..\"}]}"
	latency := "latency: {histogram: http_request_duration_seconds, le: \"0.5\"}"
	tests := map[string]struct {
		path  string // of the field to set, from the root
		value string // YAML; empty removes the field
		want  string // in the refusal; empty: taken
	}{
		"as it is":                {"metadata.labels", "{a: b}", ""},
		"nothing but an operator": {"spec", "{operator: echo}", ""},
		"no operator":             {"spec.operator", "", "Required value"},
		"profile":                 {"spec.profile", "None", ""},
		"other profile":           {"spec.profile", "Gold", "Unsupported value"},
		"team with a quote":       {"spec.team", "'a\"b'", "team must begin and end with a letter or digit"},
		"runbook of a file":       {"spec.runbookURL", "file:///etc/passwd", "must be an http or https URL"},
		"runbook with a template": {"spec.runbookURL", "\"https://x/{{ .Evil }}\"", "must be an http or https URL"},
		"target 99.9":             {"spec.objectives", `[{sli: csv, target: "99.9"}]`, ""},
		"target 99.9999":          {"spec.objectives", `[{sli: csv, target: "99.9999"}]`, ""},
		"target in percent":       {"spec.objectives", `[{sli: csv, target: "99.9%"}]`, ""},
		"target 100": {"spec.objectives", `[{sli: csv, target: "100"}]`,
			"leaves no budget, so every failure would page"},
		"target 100.0": {"spec.objectives", `[{sli: csv, target: "100.0"}]`,
			"leaves no budget, so every failure would page"},
		"target 0":            {"spec.objectives", `[{sli: csv, target: "0"}]`, "a target of 0 never alerts"},
		"target 0.00":         {"spec.objectives", `[{sli: csv, target: "0.00"}]`, "a target of 0 never alerts"},
		"target with a comma": {"spec.objectives", `[{sli: csv, target: "99,9"}]`, "percent with a point"},
		"target too fine":     {"spec.objectives", `[{sli: csv, target: "99.99999"}]`, "at most four decimals"},
		"target a number":     {"spec.objectives", `[{sli: csv, target: true}]`, "must be of type string"},
		"target negative":     {"spec.objectives", `[{sli: csv, target: "-1"}]`, "percent with a point"},
		"period 0": {"spec.objectives", `[{sli: csv, target: "99", period: "0"}]`,
			"period must be hours, days or weeks"},
		"period 10y": {"spec.objectives", `[{sli: csv, target: "99", period: "10y"}]`,
			"period must be hours, days or weeks"},
		"period 0d": {"spec.objectives", `[{sli: csv, target: "99", period: 0d}]`,
			"period must be from 3 to 92 days"},
		"period 71h": {"spec.objectives", `[{sli: csv, target: "99", period: 71h}]`,
			"period must be from 3 to 92 days"},
		"period 72h": {"spec.objectives", `[{sli: csv, target: "99", period: 72h}]`, ""},
		"period 13w": {"spec.objectives", `[{sli: csv, target: "99", period: 13w}]`, ""},
		"period 14w": {"spec.objectives", `[{sli: csv, target: "99", period: 14w}]`,
			"period must be from 3 to 92 days"},
		"period 93d": {"spec.objectives", `[{sli: csv, target: "99", period: 93d}]`,
			"period must be from 3 to 92 days"},
		"sli of a probe": {"spec.objectives", `[{sli: "probe:echo", target: "99"}]`, ""},
		"sli with a blank": {"spec.objectives", `[{sli: "a b", target: "99"}]`,
			"sli must be a name of small letters"},
		"sli twice": {"spec.objectives", `[{sli: csv, target: "99"}, {sli: csv, target: "98"}]`,
			"Duplicate value"},
		"own ratio": {"spec",
			`{operator: echo, objectives: [{sli: http, target: "99"}], own: [{name: http, ` + ratio + `}]}`, ""},
		"own latency": {"spec",
			`{operator: echo, objectives: [{sli: http, target: "99"}], own: [{name: http, ` + latency + `}]}`, ""},
		"own with both": {"spec",
			`{operator: echo, objectives: [{sli: http, target: "99"}], own: [{name: http, ` + latency + ", " + ratio +
				`}]}`, "exactly one of requestRatio, latency and gauge"},
		"own with neither": {"spec",
			`{operator: echo, objectives: [{sli: http, target: "99"}], own: [{name: http}]}`,
			"exactly one of requestRatio, latency and gauge"},
		"own without objective": {"spec", `{operator: echo, own: [{name: http, ` + ratio + `}]}`,
			"each SLI of own needs an objective"},
		"own named csv": {"spec",
			`{operator: echo, objectives: [{sli: csv, target: "99"}], own: [{name: csv, ` + ratio + `}]}`,
			"every operator has an SLI of that name already"},
		"own named badly": {"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: A_b, ` + ratio + `}]}`,
			"name must be a DNS label"},
		"own counter a query": {
			"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, requestRatio: {counter: ` +
				`"rate(x[5m])", bad: [{label: a, value: b}]}}]}`,
			"counter must be the name of a metric",
		},
		"own without bad": {
			"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, requestRatio: {counter: x, ` +
				`bad: []}}]}`,
			"should have at least 1 items",
		},
		"own operator": {
			"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, requestRatio: {counter: x, ` +
				`bad: [{label: a, op: "==", value: b}]}}]}`,
			"Unsupported value",
		},
		"own bucket": {
			"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, latency: {histogram: ` +
				`x_bucket, le: "1"}}]}`,
			"without _bucket",
		},
		"own gauge": {"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, gauge: {metric: up}}]}`, ""},
		"own gauge with a minimum": {"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, minRequests: 5, gauge: {metric: up}}]}`,
			"a gauge has no requests"},
		"own minutes": {"spec", `{operator: echo, objectives: [{sli: http, target: "99"}], own: [{name: http, ` +
			`budgetingMethod: Timeslices, timeSliceTarget: "95", ` + ratio + `}]}`, ""},
		"own minutes without a target": {"spec", `{operator: echo, objectives: [{sli: http, target: "99"}], ` +
			`own: [{name: http, budgetingMethod: Timeslices, ` + ratio + `}]}`, "Timeslices needs timeSliceTarget"},
		"own requests with a target of minutes": {"spec", `{operator: echo, objectives: [{sli: http, target: "99"}], ` +
			`own: [{name: http, timeSliceTarget: "95", ` + ratio + `}]}`, "the other methods have none"},
		"thresholds": {"spec.objectives", `[{sli: latency, target: "99", thresholds: {badPercent: "2.5", duration: 500ms}}, ` +
			`{sli: queue, target: "99", alerts: Tickets, thresholds: {depth: 5, duration: 90s}}]`, ""},
		"duration that nobody counts": {"spec.objectives", `[{sli: latency, target: "99", thresholds: {duration: 12s}}]`,
			"has to be one that controller-runtime counts"},
		"threshold of another SLI": {"spec.objectives", `[{sli: queue, target: "99", thresholds: {badPercent: "5"}}]`,
			"badPercent is a threshold of reconcile, latency, webhook and operands"},
		"badPercent 100": {"spec.objectives", `[{sli: webhook, target: "99", thresholds: {badPercent: "100"}}]`,
			"badPercent must be above 0 and below 100"},
		"alerts":                 {"spec.objectives", `[{sli: csv, target: "99", alerts: Some}]`, "Unsupported value"},
		"labels and annotations": {"spec", `{operator: echo, alertLabels: {area: x}, alertAnnotations: {contact: "#x"}}`, ""},
		"a label of Bellwether's alerts": {"spec.alertLabels", `{severity: page}`,
			"must not have a label that Bellwether's alerts have"},
		"a label that is none": {"spec.alertLabels", `{a-b: x}`, "alertLabels must have names of labels"},
		"an annotation of Bellwether's alerts": {"spec.alertAnnotations", `{summary: x}`,
			"must not have an annotation that Bellwether's alerts have"},
		"own le": {
			"spec",
			`{operator: echo, objectives: [{sli: a, target: "99"}], own: [{name: a, latency: {histogram: x, le: ` +
				`fast}}]}`,
			"le must be a bound of the histogram",
		},
		"limit": {"spec.customResources", "[{kind: Echo, max: 5, maxGrowthPerDay: 1}]", ""},
		"limit of nothing": {"spec.customResources", "[{kind: Echo}]",
			"a limit needs max, maxGrowthPerDay or both"},
		"limit 0":              {"spec.customResources", "[{kind: Echo, max: 0}]", "greater than or equal to 1"},
		"limit of two kinds":   {"spec.customResources", "[{kind: \"A|B\", max: 1}]", "must be the name of a kind"},
		"two limits of a kind": {"spec.customResources", "[{kind: A, max: 1}, {kind: A, max: 2}]", "Duplicate value"},
		"service": {"spec.services",
			`[{name: web, port: 443, scheme: https, path: /healthz, interval: 10s, timeout: 1s, tls: {caConfigMap: ` +
				`{name: openshift-service-ca.crt, key: service-ca.crt}}}]`, ""},
		"service without verification": {"spec.services",
			`[{name: web, port: 443, scheme: https, tls: {insecureSkipVerify: true}}]`, ""},
		"service without a CA": {"spec.services", `[{name: web, port: 443, scheme: https}]`, "https needs tls"},
		"service http with TLS": {"spec.services", `[{name: web, port: 80, tls: {}}]`,
			"only https and grpc have tls"},
		"service grpc with TLS": {"spec.services", `[{name: web, port: 443, scheme: grpc, tls: {}}]`, ""},
		"service port":          {"spec.services", `[{name: web, port: 70000}]`, "less than or equal to 65535"},
		"service scheme":        {"spec.services", `[{name: web, port: 1, scheme: ftp}]`, "Unsupported value"},
		"service tcp with a path": {"spec.services", `[{name: web, port: 1, scheme: tcp, path: /}]`,
			"path is for http and https only"},
		"service path": {"spec.services", `[{name: web, port: 1, path: "@evil.example.com"}]`,
			"path must begin with /"},
		"service too often": {"spec.services", `[{name: web, port: 1, interval: 1s}]`,
			"interval must be from 5s to 1m"},
		"service timeout": {"spec.services", `[{name: web, port: 1, interval: 5s, timeout: 10s}]`,
			"timeout must not be longer than interval"},
		"monitor of kubebuilder": {"spec.monitor",
			`{portNumber: 8443, scheme: https, tokenSecret: {name: a, key: token}, ` +
				`tls: {insecureSkipVerify: true}, metricRelabelings: [{action: drop, sourceLabels: [__name__], ` +
				`regex: "go_.*"}]}`, ""},
		"monitor without port":   {"spec.monitor", `{scheme: https}`, "set one of port and portNumber"},
		"monitor with two ports": {"spec.monitor", `{port: a, portNumber: 1}`, "set one of port and portNumber"},
		"monitor http with TLS":  {"spec.monitor", `{port: a, tls: {}}`, "tls is for the scheme https only"},
		"monitor with two CAs": {"spec.monitor", `{port: a, scheme: https, tls: {insecureSkipVerify: true, ` +
			`caSecret: {name: a, key: b}}}`, "set at most one of caSecret"},
		"monitor without identity": {"spec.monitor", `{port: a, metricRelabelings: [{targetLabel: operator, ` +
			`replacement: other}]}`, "these identify the operator"},
		"monitor interval": {"spec.monitor", `{port: metrics, interval: 1h}`, "interval must be from 5s to 1m"},
		"monitor port":     {"spec.monitor", `{port: "Metrics!"}`, "port must be the name of a port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, goodSLO, namespace)
			set(t, object, test.path, test.value)
			expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}
