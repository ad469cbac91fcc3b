// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent tests the agent's program against a cluster with OLM. The
// cluster is hub and fleet cluster in one; the tests play the hub.
package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) {
	// The scenarios wait for clusters rather than compute, so more of them run
	// at a time than there are processors. The command line may say otherwise.
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	os.Exit(testenv.Main(m))
}

const (
	patience = 8 * time.Minute
	look     = 100 * time.Millisecond

	v1 = "echo-operator.v1.0.0"
	v2 = "echo-operator.v1.1.0"
)

var errNotYet = errors.New("not yet")

// harness is an agent, the hub that a test plays, and the cluster that the
// agent works on; hub and cluster are one where nothing else is said.
type harness struct {
	// Client is the hub's.
	client.Client
	t *testing.T
	// whole is the test that the agent outlives its steps for.
	whole        *testing.T
	hub, cluster *cluster.Cluster
	// name of the FleetCluster, and namespace on the hub.
	name, namespace string
	// cache is kept when the agent is started again; args come besides the
	// usual ones.
	cache string
	args  []string
	// ports are the agent's own, so that they are free when it is started again.
	ports string
	// operator names the ManagedOperator that the test plays the rollout for.
	operator string
	agent    *process.Process
	revision int64
}

// installing is held while the CRDs of a shared cluster are installed.
var installing sync.Mutex

// quiet is the cluster of those tests that need no program in their pods.
func quiet(t *testing.T) *cluster.Cluster {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	return testenv.OLM(t)
}

// start runs an agent on a cluster that is its own hub; name becomes the name
// of the FleetCluster.
func start(t *testing.T, c *cluster.Cluster, name string, args ...string) *harness {
	t.Helper()
	return startOn(t, c, c, name, args...)
}

// startOn runs an agent on a cluster with a hub of its own.
func startOn(t *testing.T, hub, c *cluster.Cluster, name string, args ...string) *harness {
	t.Helper()
	h := &harness{
		Client: clientOf(t, hub), t: t, whole: t, hub: hub, cluster: c, name: name,
		namespace: v1alpha1.ClusterNamespace(name),
		cache:     t.TempDir(), args: args, operator: "echo",
	}
	h.ports = viewPorts(100)
	h.must(h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	h.startAgent()
	return h
}

// ranges counts the ranges of ports that were given to agents.
var ranges atomic.Int32

// viewPorts gives each agent of this process ports of its own, at most 100: none of them is another's while it is
// started again. They are below those of the testbed's servers, and below those that the kernel gives to clients.
func viewPorts(n int) string {
	first := 10000 + 100*(int(ranges.Add(1))%50)
	return fmt.Sprintf("%d-%d", first, first+n-1)
}

func clientOf(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	scheme := platform.Scheme()
	utilruntime.Must(operatorsv2.AddToScheme(scheme))
	k, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// of is the same agent for another operator and test.
func (h *harness) of(t *testing.T, operator string) *harness {
	other := *h
	other.t, other.operator, other.revision = t, operator, 0
	return &other
}

func (h *harness) startAgent() {
	h.t.Helper()
	dir := h.whole.TempDir()
	p, err := process.Start(process.Spec{
		Name: "agent-" + h.name, Path: testenv.Binary(h.t, build.Agent), Dir: dir, Log: filepath.Join(dir, "agent.log"),
		Args: append([]string{
			"--cluster", h.name, "--hub-kubeconfig", h.hub.Kubeconfig(), "--kubeconfig", h.cluster.Kubeconfig(),
			"--view-bind-address", "127.0.0.1", "--view-ports", h.ports, "--cache-dir", h.cache,
			"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--lease-renew-interval", "1s", "-v",
		}, h.args...),
	})
	h.must(err)
	h.agent = p
	testenv.StopAtEnd(h.whole, p)
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// catalog writes a catalog and returns the pin that a rollout would give.
func (h *harness) catalog(content []byte) v1alpha1.CatalogPin {
	h.t.Helper()
	dir := h.whole.TempDir()
	h.must(os.WriteFile(filepath.Join(dir, "catalog.json"), content, 0o600))
	digest, err := oci.NewClient(oci.Options{}).Resolve(h.t.Context(), oci.Source{Directory: dir})
	h.must(err)
	return v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: dir}, Digest: digest}
}

func (h *harness) echoCatalog() v1alpha1.CatalogPin {
	h.t.Helper()
	content, err := echo.FBC("1.0.0", "1.1.0")
	h.must(err)
	return h.catalog(content)
}

// release of the sample operator, to be changed by the test.
func release(pin v1alpha1.CatalogPin, version string) v1alpha1.Release {
	return v1alpha1.Release{
		Package: "echo-operator", Channel: "stable", Version: version, Bundle: "echo-operator.v" + version,
		Catalog: pin, Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces},
	}
}

func (h *harness) key() client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace,
		Name: v1alpha1.OperatorReference{Namespace: "fleet", Name: h.operator}.InstallName()}
}

// admit plays the rollout: it admits the cluster to a release.
func (h *harness) admit(r v1alpha1.Release) {
	h.t.Helper()
	h.revision++
	h.admitAs(r, h.revision)
}

func (h *harness) admitAs(r v1alpha1.Release, revision int64) {
	h.t.Helper()
	admission := &v1alpha1.Admission{
		Rollout: fmt.Sprintf("%s-%d", h.operator, revision), RolloutUID: "test", Revision: revision, Wave: "rest",
		Hash: fmt.Sprintf("%s-%d", r.Hash()[:8], revision), AdmittedAt: metav1.Now(), Release: r,
	}
	oi := &v1alpha1.OperatorInstall{}
	err := h.Get(h.t.Context(), h.key(), oi)
	if client.IgnoreNotFound(err) != nil {
		h.t.Fatal(err)
	}
	if err != nil {
		oi.Namespace, oi.Name = h.key().Namespace, h.key().Name
		oi.Spec = v1alpha1.OperatorInstallSpec{
			Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: h.operator}, Cluster: "test",
			Admission: admission,
		}
		h.must(h.Create(h.t.Context(), oi))
		return
	}
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Admission = admission
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// until polls the install until a condition holds.
func (h *harness) until(what string, holds func(*v1alpha1.OperatorInstall) bool) *v1alpha1.OperatorInstall {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	defer testenv.Waited(h.t, what)()
	err := wait.PollUntilContextTimeout(h.t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		if err := h.Get(ctx, h.key(), oi); err != nil {
			return false, nil //nolint:nilerr // not there yet, or the API server is slow
		}
		return oi.Status.ObservedGeneration == oi.Generation && holds(oi), nil
	})
	if err != nil {
		h.t.Fatalf("%s: %v\nstatus: %s", what, err, describe(oi))
	}
	return oi
}

func describe(oi *v1alpha1.OperatorInstall) string {
	var b strings.Builder
	for _, c := range oi.Status.Conditions {
		fmt.Fprintf(&b, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintf(&b, "\n  installed %+v, path %v, succeeded %q, problems %+v", oi.Status.Installed, oi.Status.Path,
		oi.Status.SucceededHash, oi.Status.Problems)
	return b.String()
}

// runs waits until the admitted release runs.
func (h *harness) runs() *v1alpha1.OperatorInstall {
	h.t.Helper()
	return h.until("wait until it runs", func(oi *v1alpha1.OperatorInstall) bool {
		return conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionReady) &&
			oi.Status.SucceededHash == oi.Spec.Admission.Hash
	})
}

// stalls waits until the install is Stalled for a reason whose message says
// these things.
func (h *harness) stalls(reason string, says ...string) {
	h.t.Helper()
	oi := h.until("wait for "+reason, func(oi *v1alpha1.OperatorInstall) bool {
		stalled := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStalled)
		return stalled.Status == metav1.ConditionTrue && stalled.Reason == reason
	})
	message := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady).Message
	h.t.Logf("%s: %s", reason, message)
	for _, text := range says {
		if !strings.Contains(message, text) {
			h.t.Errorf("the message of %s does not say %q: %s", reason, text, message)
		}
	}
}

// gone waits until an object is gone.
func (h *harness) gone(o client.Object) {
	h.t.Helper()
	testenv.Eventually(h.t, patience, fmt.Sprintf("%T %s is gone", o, o.GetName()), func(ctx context.Context) error {
		err := h.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return errNotYet
		}
		return client.IgnoreNotFound(err)
	})
}

// uninstall removes the install with a policy and waits for it.
func (h *harness) uninstall(policy v1alpha1.RemovalPolicy) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.RemovalPolicy = policy
	h.must(h.Patch(h.t.Context(), oi, patch))
	h.must(h.Delete(h.t.Context(), oi))
	h.gone(oi)
}

func echoImages(t *testing.T) map[string]cluster.Image {
	t.Helper()
	return map[string]cluster.Image{
		"example.com/bellwether/echo-operator": {Path: testenv.Binary(t, build.EchoOperator)},
		"example.com/bellwether/echo-server":   {Path: testenv.Binary(t, build.EchoServer)},
	}
}

// eventually polls until something holds.
func (h *harness) eventually(what string, holds func() bool) {
	h.t.Helper()
	testenv.EventuallyTrue(h.t, patience, what, holds)
}
