// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/fleet"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

func TestFleet(t *testing.T) {
	name := fmt.Sprintf("fleettest-%d", os.Getpid())
	var prepared map[string]string
	f, err := fleet.Start(t.Context(), fleet.Options{
		Name:     name,
		Clusters: []string{"one"},
		Programs: []string{build.EchoServer},
		Prepare: func(binaries map[string]string) (map[string]cluster.Image, error) {
			prepared = binaries
			return map[string]cluster.Image{"example.com/echo": {Path: binaries[build.EchoServer]}}, nil
		},
		Out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = f.Stop(context.Background())
		}
	})

	t.Run("programs", func(t *testing.T) {
		if prepared[build.EchoServer] != f.Binary(build.EchoServer) ||
			filepath.Dir(f.Binary(build.EchoServer)) != filepath.Join(f.Dir(), "bin") {
			t.Errorf("echo server is at %q, Prepare saw %q", f.Binary(build.EchoServer), prepared[build.EchoServer])
		}
	})
	t.Run("state", func(t *testing.T) { checkState(t, f) })
	t.Run("clusters are apart", func(t *testing.T) { checkApart(t, f) })
	t.Run("only members have OLM", func(t *testing.T) {
		if f.Hub.PID(build.OLM) != 0 || f.Cluster("one").PID(build.OLM) == 0 || f.Cluster("two") != nil {
			t.Errorf("hub %+v, one %+v", f.Hub.Processes(), f.Cluster("one").Processes())
		}
	})
	t.Run("name is taken", func(t *testing.T) {
		if _, err := fleet.Start(t.Context(), fleet.Options{Name: name}); !errors.Is(err, runs.ErrInUse) {
			t.Errorf("want ErrInUse, have %v", err)
		}
	})
	t.Run("failure", func(t *testing.T) {
		if err := f.Failure(); err != nil {
			t.Fatal(err)
		}
		f.Cluster("one").KillAPIServer()
		if f.Failure() == nil {
			t.Error("a dead API server is not reported")
		}
	})

	records, err := process.Records(f.Dir())
	if err != nil || len(records) == 0 {
		t.Fatalf("records %+v (%v)", records, err)
	}
	stopped = true
	if err := f.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Alive() {
			t.Errorf("%s still runs", r.Name)
		}
	}
	if _, err := os.Stat(f.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

func checkState(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	state, err := fleet.Read(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	var want []fleet.Member
	for _, c := range f.All() {
		want = append(want, fleet.Member{Name: c.Name(), URL: c.URL(), Kubeconfig: c.Kubeconfig(), Dir: c.Dir()})
	}
	if diff := cmp.Diff(want, state.Clusters); diff != "" || len(want) != 2 || want[0].Name != fleet.HubName {
		t.Errorf("members (-want +have):\n%s", diff)
	}
	if !state.Owner.Alive() || state.Owner.PID != os.Getpid() {
		t.Errorf("owner %+v", state.Owner)
	}
}

// checkApart shows that clusters on one etcd do not see each other's objects.
func checkApart(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	uids := map[string]string{}
	for _, c := range f.All() {
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		ns, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := uids[string(ns.UID)]; ok {
			t.Errorf("%s and %s are the same cluster", other, c.Name())
		}
		uids[string(ns.UID)] = c.Name()
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	name := fmt.Sprintf("fleettest-cancel-%d", os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := fleet.Start(ctx, fleet.Options{
		Name:        name,
		Clusters:    []string{},
		WithoutPods: true,
		Prepare: func(map[string]string) (map[string]cluster.Image, error) {
			cancel()
			return nil, nil
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want Canceled, have %v", err)
	}
	if dir, up := runs.Folder(name); up {
		t.Errorf("%s is still up", dir)
	}
}
