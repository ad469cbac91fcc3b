// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// replica is the hub's program, one of several on one cluster.
type replica struct {
	health, pprof, level, log string
	process                   *process.Process
}

func startReplica(t *testing.T, c *cluster.Cluster, name string, more ...string) *replica {
	t.Helper()
	dir := t.TempDir()
	r := &replica{level: filepath.Join(dir, "level"), log: filepath.Join(dir, "hub.log")}
	path := testenv.Binary(t, build.Hub) // before ports are chosen, as it may have to be built
	must(t, loopback.OnFreePorts(t.Context(), 2, func(ports []int) error {
		r.health, r.pprof = loopback.Address(ports[0]), loopback.Address(ports[1])
		var err error
		r.process, err = process.Start(process.Spec{
			Name: "hub-" + name, Path: path, Dir: dir, Log: r.log,
			Args: append([]string{"--kubeconfig", c.Kubeconfig(), "--leader-election-namespace", "default",
				"--leader-election-lease-duration", electionLease.String(), "--metrics-bind-address", "0",
				"--health-probe-bind-address", r.health, "--pprof-bind-address", r.pprof, "--log-level-file", r.level},
				more...),
		})
		return err
	}))
	testenv.StopAtEnd(t, r.process)
	return r
}

// says waits for an answer of the program.
func (r *replica) says(t *testing.T, address, path string, status int, contains string) {
	t.Helper()
	eventually(t, func() error {
		if got, text := page(t, address, path); got != status || !strings.Contains(text, contains) {
			return fmt.Errorf("%w: %s says %d %q", errNotYet, path, got, text)
		}
		return nil
	})
}

// TestOperability runs two replicas of the hub's program: both know who leads, both show their profiles on loopback,
// and the level of logs follows a file. The check of `helm test` succeeds while one of them leads.
func TestOperability(t *testing.T) {
	t.Parallel()
	c := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	testenv.InstallCRDs(t, c)
	check := func(timeout string) (string, error) {
		out, err := exec.CommandContext(t.Context(), testenv.Binary(t, build.Hub), "check", "--kubeconfig",
			c.Kubeconfig(),
			"--leader-election-namespace", "default", "--timeout", timeout).CombinedOutput()
		return string(out), err
	}
	if out, err := check("20s"); err == nil || !strings.Contains(out, "a replica of the hub leads") {
		t.Errorf("without a hub the check says %q, %v", out, err)
	}
	a := startReplica(t, c, "a")
	a.says(t, a.health, "/readyz/leader", http.StatusOK, "ok")
	b := startReplica(t, c, "b")
	b.says(t, b.health, "/readyz?verbose", http.StatusOK, "[+]leader ok")
	if out, err := check("1m"); err != nil || !strings.Contains(out, "✓ a replica of the hub leads") {
		t.Errorf("the check says %q, %v", out, err)
	}
	b.says(t, b.pprof, "/debug/pprof/goroutine?debug=1", http.StatusOK, "goroutine profile: total")
	must(t, os.WriteFile(b.level, []byte("debug\n"), 0o600))
	eventually(t, func() error {
		text, err := os.ReadFile(b.log)
		if err == nil && !strings.Contains(string(text), `"The level of logs changes","from":"info","to":"debug"`) {
			err = fmt.Errorf("%w: the level of logs does not change", errNotYet)
		}
		return err
	})
	a.process.Kill()
	b.says(t, b.health, "/readyz/leader", http.StatusOK, "ok")

	c.KillAPIServer()
	eventually(t, func() error { // a leader that cannot renew its Lease ends
		status, text := page(t, b.health, "/readyz/leader")
		if status == http.StatusOK {
			return fmt.Errorf("%w: without an API server it is ready: %s", errNotYet, text)
		}
		return nil
	})
}

// TestTheChartIsAccepted asks a real API server, which checks each field strictly, whether it would take what the chart
// renders for many sets of values.
func TestTheChartIsAccepted(t *testing.T) {
	h := start(t)
	for _, name := range []string{"monitoring", "payments", "checks"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must(t, client.IgnoreAlreadyExists(h.Create(t.Context(), namespace)))
	}
	// The API server refuses a pod, that of the chart's test, without its ServiceAccount.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "sheep-hub"}}
	must(t, client.IgnoreAlreadyExists(h.Create(t.Context(), account)))
	for name, values := range map[string]string{
		"hub":                 "hub: {enabled: true}",
		"one replica":         "hub: {enabled: true, replicas: 1}",
		"three replicas":      "hub: {enabled: true, replicas: 3, podDisruptionBudget: {enabled: true}}",
		"large fleet":         "hub: {enabled: true, fleet: {clusters: 10000, operatorsPerCluster: 30}}",
		"priority":            "hub: {enabled: true, priorityClass: {create: true, value: 5000}, logLevel: '4'}",
		"lock":                "hub: {enabled: true, lock: {kubeconfigSecret: lock}}",
		"policies":            "hub: {enabled: true, networkPolicy: {metricsFrom: [{namespaceSelector: {}}], egress: [{ports: [{port: 443}]}]}}",
		"gate":                "hub: {enabled: true, remoteWriteGate: {enabled: true, storeURL: 'http://p:9090/w', tlsSecret: t}}",
		"spread by hand":      "hub: {enabled: true, topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}",
		"rules elsewhere":     "hub: {enabled: true, slo: {rulesNamespace: monitoring}, paging: {secrets: [{namespace: payments, name: key}]}}",
		"discovery":           "hub: {enabled: true, discovery: {sources: [hive, clusterapi]}}",
		"roles":               "hub: {enabled: true, userRoles: {create: true, aggregate: true}}",
		"another name":        "{nameOverride: sheep, commonLabels: {team: a}, commonAnnotations: {a: b}, hub: {enabled: true}}",
		"agent":               "agent: {enabled: true, cluster: prod-1}",
		"agent with policies": "agent: {enabled: true, cluster: prod-1, logLevel: debug, networkPolicy: {olmNamespaces: [o], egress: [{ports: [{port: 443}]}]}}",
		"agent with jobs":     "agent: {enabled: true, cluster: prod-1, jobs: {namespaces: [checks]}}",
		"hosted":              "agent: {enabled: true, hosted: {enabled: true}, viewHost: v, viewPorts: {first: 50100, last: 50102}}",
		"access only":         "agent: {enabled: true, accessOnly: true}",
		"both":                "{hub: {enabled: true}, agent: {enabled: true, cluster: local}}",
		"CRDs":                "{crds: {keep: false}, hub: {enabled: true}}",
	} {
		t.Run(name, func(t *testing.T) {
			var given map[string]any
			must(t, yaml.Unmarshal([]byte(values), &given))
			if given["crds"] == nil { // they take the API server a second
				given["crds"] = map[string]any{"enabled": false}
			}
			objects, err := hubchart.Render(hubNamespace, given)
			must(t, err)
			for _, o := range objects {
				what := o.GetKind() + " " + o.GetName()
				err := h.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
				if meta.IsNoMatchError(err) {
					t.Errorf("%s: the kind is not served, so it is not checked", what)
				} else if err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
