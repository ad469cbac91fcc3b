// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

const patience = time.Minute

// served simulates agents: it reports each start to the test, which lets the agents continue.
type served struct {
	starts chan string
	ends   chan string
	// slowStarts receives the slow clusters that have started.
	slowStarts chan string
	// dead clusters never start, broken clusters end with each attempt, and slow clusters
	// start when the test lets them.
	dead, broken, slow map[string]bool
	let                chan struct{}
}

func newServed() *served {
	return &served{starts: make(chan string, 100), ends: make(chan string, 100),
		slowStarts: make(chan string, 100), dead: map[string]bool{},
		broken: map[string]bool{}, slow: map[string]bool{}, let: make(chan struct{})}
}

func (s *served) serve(ctx context.Context, t target, started func()) error {
	s.starts <- t.cluster
	defer func() { s.ends <- t.cluster }()
	switch {
	case s.broken[t.cluster]:
		panic("broken")
	case s.slow[t.cluster]:
		select {
		case <-s.let:
			started()
			s.slowStarts <- t.cluster
		case <-ctx.Done():
		}
	case !s.dead[t.cluster]:
		started()
	}
	<-ctx.Done()
	return nil
}

func next(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case name := <-from:
		return name
	case <-time.After(patience):
		t.Fatal("nothing happens")
		return ""
	}
}

func testSupervisor(t *testing.T, s *served) *supervisor {
	t.Helper()
	super := newSupervisor(s.serve)
	super.slotTimeout, super.firstDelay = time.Millisecond, time.Millisecond
	t.Cleanup(super.stopAll)
	return super
}

func hosted(name string, first int) target {
	return target{cluster: name, ports: serve.Ports{First: first, Last: first + 9}}
}

var v1, v2 = [32]byte{1}, [32]byte{2}

func TestSupervisorFollowsSecrets(t *testing.T) {
	t.Parallel()
	s := newServed()
	super := testSupervisor(t, s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(super.start("a", v1, hosted("a", 100)))
	next(t, s.starts)
	must(super.start("a", v1, hosted("a", 100)))
	must(super.start("a", v2, hosted("a", 100)))
	if ended := next(t, s.ends); ended != "a" {
		t.Errorf("%s ended, want a: its Secret has changed", ended)
	}
	next(t, s.starts)
	super.stop("a")
	next(t, s.ends)
	// A stopped cluster does not block the start.
	must(super.start("b", v1, hosted("a", 100)))
	next(t, s.starts)
	super.stopAll()
	next(t, s.ends)
	if len(s.starts)+len(s.ends) > 0 {
		t.Errorf("%d further starts, %d further ends", len(s.starts), len(s.ends))
	}
}

func TestSupervisorRefusesWhatOverlaps(t *testing.T) {
	t.Parallel()
	super := testSupervisor(t, newServed())
	for _, test := range []struct {
		secret string
		target
		refused bool
	}{
		{"a", hosted("a", 100), false}, {"b", hosted("b", 110), false}, {"c", hosted("a", 200), true},
		{"c", hosted("c", 109), true}, {"c", hosted("c", 95), true}, {"c", hosted("c", 90), false},
	} {
		err := super.start(test.secret, v1, test.target)
		if errors.Is(err, errTaken) != test.refused || !test.refused && err != nil {
			t.Errorf("Secret %s with cluster %s and ports from %d: %v", test.secret, test.cluster, test.ports.First,
				err)
		}
	}
}

// TestOneDelaysNoOther verifies that a healthy cluster starts although more clusters than slots
// never start or fail at once.
func TestOneDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := newServed()
	super := testSupervisor(t, s)
	for i := range 2 * maxStarting {
		name := fmt.Sprintf("bad-%d", i)
		s.dead[name], s.broken[name] = i%2 == 0, i%2 == 1
		// One that panics is started again.
	}
	for i := range 2 * maxStarting {
		name := fmt.Sprintf("bad-%d", i)
		if err := super.start(name, v1, hosted(name, 100+10*i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := super.start("fine", v1, hosted("fine", 1000)); err != nil {
		t.Fatal(err)
	}
	again := map[string]int{}
	for fine := false; !fine || again["bad-1"] < 2; {
		name := next(t, s.starts)
		fine = fine || name == "fine"
		again[name]++
		select {
		case <-s.ends:
		default:
		}
	}
}

// TestSlowDelaysNoOther has more clusters than slots, which need more time to start than
// slotTimeout. A healthy cluster starts before them, and they start later. A slot that is
// released twice counts once.
func TestSlowDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := newServed()
	super := testSupervisor(t, s)
	slow := func(i int) string { return fmt.Sprintf("slow-%d", i) }
	for i := range 2 * maxStarting { // before any of them reads it
		s.slow[slow(i)] = true
	}
	for i := range 2 * maxStarting {
		name := slow(i)
		if err := super.start(name, v1, hosted(name, 100+10*i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := super.start("fine", v1, hosted("fine", 1000)); err != nil {
		t.Fatal(err)
	}
	for started := ""; started != "fine"; {
		started = next(t, s.starts)
	}
	if len(s.slowStarts) > 0 {
		t.Fatal("a slow cluster has started: the test shows nothing")
	}
	close(s.let)
	for range 2 * maxStarting {
		next(t, s.slowStarts)
	}
	if n := len(super.slots); n > maxStarting {
		t.Errorf("%d clusters have slots, want at most %d", n, maxStarting)
	}
	if len(s.ends) > 0 {
		t.Error("a cluster has ended")
	}
}

func secretWith(change func(*corev1.Secret)) *corev1.Secret {
	config := []byte(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: {server: ` +
		`"https://example.com:6443"}}], contexts: [{name: x, context: {cluster: c, user: u}}], ` +
		`users: [{name: u, user: {token: secret}}]}`)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{
		v1alpha1.LabelHostedCluster: "prod"}}, Data: map[string][]byte{v1alpha1.HostedHubKey: config,
		v1alpha1.HostedClusterKey: config, v1alpha1.HostedPortsKey: []byte("50100-50129")}}
	change(s)
	return s
}

func TestTargetOf(t *testing.T) {
	t.Parallel()
	all := serve.Ports{First: 50100, Last: 50999}
	got, err := readTarget(secretWith(func(*corev1.Secret) {}), all, "other")
	if err != nil || got.ownNamespace != "other" || got.cluster != "prod" || got.namespace != "bellwether-prod" ||
		got.ports.Last != 50129 ||
		got.local.Host != "https://example.com:6443" || got.metricsAddr != "0" {
		t.Fatalf("%+v, %v", got, err)
	}
	program := []byte(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: {server: ` +
		`"https://e:1"}}], contexts: [{name: x, context: {cluster: c, user: u}}], users: [{name: u, user: {exec: ` +
		`{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}}]}`)
	for says, change := range map[string]func(*corev1.Secret){
		"must name the FleetCluster": func(s *corev1.Secret) { s.Labels[v1alpha1.LabelHostedCluster] = "" },
		`key viewPorts: ""`:          func(s *corev1.Secret) { delete(s.Data, v1alpha1.HostedPortsKey) },
		`key viewPorts: "9-1"`:       func(s *corev1.Secret) { s.Data[v1alpha1.HostedPortsKey] = []byte("9-1") },
		"not within --view-ports":    func(s *corev1.Secret) { s.Data[v1alpha1.HostedPortsKey] = []byte("50990-51000") },
		"key hub: ":                  func(s *corev1.Secret) { delete(s.Data, v1alpha1.HostedHubKey) },
		"key cluster: the kubeconfig is refused: user \"u\": exec would run a program": func(s *corev1.Secret) {
			s.Data[v1alpha1.HostedClusterKey] = program
		},
	} {
		if _, err := readTarget(secretWith(change), all, "other"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q in it", err, says)
		}
	}
	same := computeFingerprint(secretWith(func(s *corev1.Secret) { s.Annotations = map[string]string{"a": "b"} }))
	if same != computeFingerprint(secretWith(func(*corev1.Secret) {})) {
		t.Error("an annotation would restart the agent")
	}
	for _, key := range []string{v1alpha1.HostedHubKey, v1alpha1.HostedClusterKey, v1alpha1.HostedPortsKey} {
		if same == computeFingerprint(secretWith(func(s *corev1.Secret) { s.Data[key] = []byte("1-2") })) {
			t.Errorf("another %s would not restart the agent", key)
		}
	}
	if same != computeFingerprint(secretWith(func(s *corev1.Secret) { s.Data["hub.renewed"] = []byte("x") })) {
		t.Error("a token for the hub that the agent renewed itself would restart it")
	}
}
