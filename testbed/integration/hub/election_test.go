// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/proxy"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// electionLease is what the hubs of these tests are told with --leader-election-lease-duration.
const electionLease = 30 * time.Second

// standby is the hub's program on a cluster of its own, one of several that agree through a lock cluster.
type standby struct {
	client.Client
	name    string
	cluster *cluster.Cluster
	// way is how it reaches the lock cluster. Without a kubeconfig for one, the Lease is on its own cluster.
	way             *proxy.Proxy
	lockKubeconfig  string
	health, metrics string
	process         *process.Process
}

func (h *harness) standby(t *testing.T, name string, lock *cluster.Cluster) *standby {
	t.Helper()
	s := &standby{name: name, cluster: testenv.Cluster(t, cluster.Options{APIServerOnly: true}),
		lockKubeconfig: filepath.Join(t.TempDir(), "lock.kubeconfig")}
	testenv.InstallCRDs(t, s.cluster)
	s.Client = h.as(t, s.cluster.RESTConfig())
	var err error
	s.way, err = proxy.Start(t.Context(), "lock-"+name, strings.TrimPrefix(lock.URL(), "https://"))
	must(t, err)
	t.Cleanup(s.way.Stop)
	config := lock.RESTConfig()
	file := clientcmdapi.NewConfig()
	file.Clusters["lock"] = &clientcmdapi.Cluster{Server: "https://" + s.way.Address(),
		CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	file.AuthInfos["hub"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData,
		ClientKeyData: config.KeyData, ClientCertificate: config.CertFile, ClientKey: config.KeyFile}
	file.Contexts["lock"] = &clientcmdapi.Context{Cluster: "lock", AuthInfo: "hub", Namespace: "default"}
	file.CurrentContext = "lock"
	must(t, clientcmd.WriteToFile(*file, s.lockKubeconfig))
	s.start(t)
	return s
}

// start starts the program; a process that has ended is replaced.
func (s *standby) start(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	lock := []string{"--leader-election-kubeconfig", s.lockKubeconfig}
	if s.lockKubeconfig == "" {
		lock = []string{"--leader-election-namespace", hubNamespace}
	}
	path := testenv.Binary(t, build.Hub) // before ports are chosen, as it may have to be built
	must(t, loopback.OnFreePorts(t.Context(), 2, func(ports []int) error {
		s.health, s.metrics = loopback.Address(ports[0]), loopback.Address(ports[1])
		var err error
		s.process, err = process.Start(process.Spec{
			Name: "hub-" + s.name, Path: path, Dir: dir, Log: filepath.Join(dir, "hub.log"),
			Args: append([]string{"--kubeconfig", s.cluster.Kubeconfig(),
				"--leader-election-lease-duration", electionLease.String(), "--rules-namespace", "default",
				"--metrics-bind-address", s.metrics, "--health-probe-bind-address", s.health}, lock...),
		})
		return err
	}))
	testenv.StopAtEnd(t, s.process)
}

// page returns what the program answers, and the status; nothing where it does not answer.
func page(t *testing.T, address, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func (s *standby) isActive(t *testing.T) bool {
	t.Helper()
	status, _ := page(t, s.health, "/readyz/active")
	return status == http.StatusOK
}

func (s *standby) ended() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// becomesActive waits for that, and objects to two that are at any time.
func becomesActive(t *testing.T, s, other *standby) {
	t.Helper()
	eventually(t, func() error {
		is, otherIs := s.isActive(t), !other.ended() && other.isActive(t)
		switch {
		case is && otherIs && s.isActive(t): // the other one may have ended between the two looks
			t.Fatalf("%s and %s are both active", s.name, other.name)
		case !is:
			return fmt.Errorf("%s is not active", s.name)
		}
		return nil
	})
}

// acts makes a cluster on the hub, which an active hub gives a namespace.
func (s *standby) acts(t *testing.T, name string) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(s.Create(t.Context(), fleetCluster(name))))
	eventually(t, func() error {
		c := fleetCluster(name)
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Namespace == "" {
			return errors.New("the cluster has no namespace yet")
		}
		return nil
	})
}

// untouched objects to a cluster that the hub has acted on.
func (s *standby) untouched(t *testing.T, name string) {
	t.Helper()
	c := fleetCluster(name)
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	if len(c.Finalizers) > 0 || c.Status.Namespace != "" || len(c.Status.Conditions) > 0 {
		t.Errorf("hub %s has written to cluster %s: %+v", s.name, name, c)
	}
}

func holder(t *testing.T, lock client.Client) string {
	t.Helper()
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: "default", Name: "bellwether-hub"}
	if err := lock.Get(t.Context(), key, &lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// TestActiveAndPassive has two hubs on two clusters agree through a third one. The passive one writes nothing and says
// that it is passive. It takes over when the active one is killed, and when that is cut off from the lock cluster, but
// not before it has ended.
func TestActiveAndPassive(t *testing.T) {
	t.Parallel()
	h := &harness{scheme: runtime.NewScheme()}
	must(t, clientgoscheme.AddToScheme(h.scheme))
	must(t, v1alpha1.AddToScheme(h.scheme))
	lockCluster := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	lock := h.as(t, lockCluster.RESTConfig())
	a := h.standby(t, "a", lockCluster)
	eventually(t, func() error {
		if !a.isActive(t) {
			return errNotYet
		}
		return nil
	})
	b := h.standby(t, "b", lockCluster)
	must(t, b.Create(t.Context(), fleetCluster("one")))
	a.acts(t, "one")
	b.saysPassive(t)
	b.untouched(t, "one")

	began := time.Now()
	a.process.Kill()
	becomesActive(t, b, a)
	t.Logf("taken over %s after the active hub was killed; the Lease is for %s", time.Since(began).Round(
		100*time.Millisecond), electionLease)
	b.acts(t, "one")

	a.start(t) // it is the passive one now
	must(t, a.Create(t.Context(), fleetCluster("two")))
	a.saysPassive(t)
	before := holder(t, lock)
	must(t, b.way.Cut())
	began = time.Now()
	eventually(t, func() error {
		switch {
		case holder(t, lock) != before && !b.ended():
			t.Fatal("another hub has the Lease, and the one that was cut off goes on")
		case !b.ended():
			return errors.New("the hub that cannot reach the lock cluster goes on")
		}
		return nil
	})
	t.Logf("ended %s after it was cut off from the lock cluster", time.Since(began).Round(100*time.Millisecond))
	becomesActive(t, a, b)
	t.Logf("taken over %s after that", time.Since(began).Round(100*time.Millisecond))
	a.acts(t, "two")
}

// saysPassive waits for the answers of a passive hub.
func (s *standby) saysPassive(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		status, text := page(t, s.health, "/readyz/active")
		if status != http.StatusInternalServerError || !strings.Contains(text, "passive: another hub holds the Lease") {
			return fmt.Errorf("/readyz/active: %d %s", status, text)
		}
		if status, text = page(t, s.health, "/readyz"); !strings.Contains(text, "[-]active failed") {
			return fmt.Errorf("/readyz: %d %s", status, text)
		}
		if status, text = page(t, s.health, "/readyz?exclude=active"); status != http.StatusOK {
			return fmt.Errorf("/readyz?exclude=active: %d %s", status, text)
		}
		_, text = page(t, s.metrics, "/metrics")
		if !strings.Contains(text, `leader_election_master_status{name="bellwether-hub"} 0`) {
			return errors.New("the metrics do not say that it is passive")
		}
		return nil
	})
}

// TestRestoredLock puts the Lease on the lock cluster back to what it was before, as a restore from a backup does: it
// names a hub that is gone. The active one ends, since it can renew no Lease of another hub, and the passive one
// takes over once the old Lease has run out by its own clock. They are never both active.
func TestRestoredLock(t *testing.T) {
	t.Parallel()
	h := &harness{scheme: runtime.NewScheme()}
	must(t, clientgoscheme.AddToScheme(h.scheme))
	must(t, v1alpha1.AddToScheme(h.scheme))
	lockCluster := testenv.Cluster(t, cluster.Options{APIServerOnly: true})
	lock := h.as(t, lockCluster.RESTConfig())
	a := h.standby(t, "a", lockCluster)
	eventually(t, func() error {
		if !a.isActive(t) {
			return errNotYet
		}
		return nil
	})
	b := h.standby(t, "b", lockCluster)
	b.saysPassive(t)

	eventually(t, func() error { // the active one renews it meanwhile
		var lease coordinationv1.Lease
		if err := lock.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "bellwether-hub"},
			&lease); err != nil {
			return err
		}
		yesterday := metav1.NewMicroTime(time.Now().Add(-24 * time.Hour))
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("yesterday"), &yesterday
		return lock.Update(t.Context(), &lease)
	})
	restored := time.Now()
	becomesActive(t, b, a)
	t.Logf("taken over %s after the restore; the Lease is for %s", time.Since(restored).Round(100*time.Millisecond),
		electionLease)
	if !a.ended() {
		t.Error("the hub that was active goes on")
	}
	b.acts(t, "one")
}
