// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inCSV is an example that patches the ClusterServiceVersion's install strategy.
func inCSV(strategy string) string {
	return "-- manifests/echo-operator.clusterserviceversion.yaml.patch --\nspec:\n  install:\n    spec:\n" +
		indent(strategy, 6)
}

func indent(text string, by int) string {
	var out strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		out.WriteString(strings.Repeat(" ", by) + line)
	}
	return out.String()
}

// messages are what one rule says of an example.
func messages(t *testing.T, rule, text string) []string {
	t.Helper()
	in, o := examplePlay(t, text)
	var out []string
	for _, f := range of(Run(in, o).Findings, rule) {
		out = append(out, fmt.Sprintf("%s: %s", f.Severity, f.Message))
	}
	return out
}

func TestLeaderElection(t *testing.T) {
	const none = "permissions: null\n"
	deployment := func(replicas int, args string) string {
		return fmt.Sprintf("deployments:\n- name: echo-operator\n  spec:\n    replicas: %d\n    template:\n      "+
			"spec:\n        containers:\n"+
			"        - name: manager\n          args: [%s]\n", replicas, args)
	}
	for name, tc := range map[string]struct {
		strategy string
		want     []string
	}{
		"one replica needs none":    {deployment(1, "") + none, nil},
		"a right, and maybe a flag": {deployment(2, ""), nil},
		"neither": {deployment(2, "") + none,
			[]string{"error: deployment echo-operator has 2 replicas, and neither a flag for leader election nor a " +
				"right to leases"}},
		"a flag without the right": {deployment(3, "--leader-elect") + none,
			[]string{"error: deployment echo-operator has 3 replicas that elect a leader, and no right to leases"}},
		"switched off": {deployment(2, "--enable-leader-election=false"),
			[]string{"error: deployment echo-operator has 2 replicas, and leader election is off"}},
		"the old name of the flag":     {deployment(2, "--enable-leader-election"), nil},
		"another old name of the flag": {deployment(2, "-leader-election=true"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, "runtime-leader-election", inCSV(tc.strategy))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	const (
		service = "-- manifests/echo-operator-metrics.service.yaml --\napiVersion: v1\nkind: Service\nmetadata: " +
			"{name: %s}\n" +
			"spec:\n  selector: {app.kubernetes.io/name: %s}\n  ports: [{name: https, port: 443, targetPort: %s}]\n"
		monitor = "-- manifests/monitor.yaml --\napiVersion: monitoring.coreos.com/v1\nkind: %s\nmetadata: {name: " +
			"echo}\nspec: {selector: {}}\n"
	)
	unnamed := inCSV("deployments:\n- name: echo-operator\n  spec:\n    template:\n      spec:\n        " +
		"containers:\n        - name: manager\n" +
		"          ports: null\n          livenessProbe: null\n          readinessProbe: null\n")
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a port by its name":    {fmt.Sprintf(service, "echo", "echo-operator", "metrics"), nil},
		"a port by its number":  {fmt.Sprintf(service, "echo", "echo-operator", "8080"), nil},
		"a Service by its name": {unnamed + fmt.Sprintf(service, "echo-metrics", "echo-operator", "9000"), nil},
		"a Service with its monitor": {unnamed + fmt.Sprintf(service, "echo", "echo-operator", "9000") +
			fmt.Sprintf(monitor, "ServiceMonitor"), nil},
		"a monitor of Pods": {unnamed + fmt.Sprintf(service, "echo", "other", "9000") +
			fmt.Sprintf(monitor, "PodMonitor"), nil},
		"another port": {fmt.Sprintf(service, "echo", "echo-operator", "8081"),
			[]string{"info: deployment echo-operator has a port for metrics, and no Service exposes it"}},
		"other Pods": {fmt.Sprintf(service, "echo-metrics", "other", "metrics"),
			[]string{"info: deployment echo-operator has a port for metrics, and no Service exposes it"}},
		"nothing at all": {unnamed + fmt.Sprintf(service, "echo", "echo-operator", "9000"),
			[]string{"info: no container has a port for metrics, and no Service exposes one"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, "runtime-metrics", tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecurityContexts(t *testing.T) {
	for name, tc := range map[string]struct {
		rule, pod, container string
		want                 []string
	}{
		"root by number": {rule: "runtime-run-as-root", pod: "runAsNonRoot: null",
			container: "runAsUser: 0", want: []string{"runs as root"}},
		"root by number, and forbidden": {rule: "runtime-run-as-root", container: "runAsUser: 0",
			want: []string{"runs as root"}},
		"a number is no root": {rule: "runtime-run-as-root", pod: "{runAsNonRoot: null, runAsUser: 65532}"},
		"nothing said": {rule: "runtime-run-as-root", pod: "runAsNonRoot: null",
			want: []string{"may run as root"}},
		"privileged": {rule: "runtime-privilege-escalation", container: "privileged: true",
			want: []string{"is privileged"}},
		"not dropped": {rule: "runtime-capabilities", container: "capabilities: null",
			want: []string{"keeps the default capabilities"}},
		"one added": {rule: "runtime-capabilities",
			container: "capabilities: {drop: [ALL], add: [SYS_ADMIN]}", want: []string{"has the capability SYS_ADMIN"}},
		"unconfined": {rule: "runtime-seccomp", container: "seccompProfile: {type: Unconfined}",
			want: []string{"runs without seccomp"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "deployments:\n- name: echo-operator\n  spec:\n    template:\n      spec:\n"
			if tc.pod != "" {
				spec += "        securityContext: {" + strings.Trim(tc.pod, "{}") + "}\n"
			}
			spec += "        containers:\n        - name: manager\n"
			if tc.container != "" {
				spec += "          securityContext: {" + tc.container + "}\n"
			}
			var want []string
			for _, w := range tc.want {
				want = append(want, "warning: container manager of deployment echo-operator "+w)
			}
			if diff := cmp.Diff(want, messages(t, tc.rule, inCSV(spec))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Init containers are checked like containers, but need no probes.
func TestInitContainers(t *testing.T) {
	text := inCSV("deployments:\n- name: echo-operator\n  spec:\n    template:\n      spec:\n        initContainers: " +
		"[{name: setup, image: a.example.com/b}]\n")
	in, o := examplePlay(t, text)
	got := map[string]int{}
	for _, f := range Run(in, o).Findings {
		if strings.HasPrefix(f.Rule, "runtime-") {
			if !strings.Contains(f.Path, "initContainers[0]") || f.Line < 2 {
				t.Errorf("not there: %+v", f)
			}
			got[f.Rule]++
		}
	}
	want := map[string]int{"runtime-cpu-request": 1, "runtime-memory-request": 1, "runtime-privilege-escalation": 1,
		"runtime-capabilities": 1, "runtime-writable-root": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
