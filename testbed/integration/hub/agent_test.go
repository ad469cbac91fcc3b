// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

const (
	// longLease is that of an agent that is not to be missed, however busy the machine is, and shortLease that of one
	// that is missed where it does not go on renewing.
	longLease, shortLease = 10 * time.Minute, 15 * time.Second
	// lastLease is in the last renewal of an agent that is to be missed at once.
	lastLease = time.Second
	// leaseRenewal is how often the agent's program renews its Lease in these tests.
	leaseRenewal = 5 * time.Second
)

// agent plays a cluster's agent with a token of its ServiceAccount.
type agent struct {
	client.Client
	h *harness
	// cluster is the test's to read and change; what runs beside the test keeps
	// to the namespace.
	cluster   *v1alpha1.FleetCluster
	namespace string

	// lease is how long a renewal is good for: longLease unless the test sets something else, while the agent is not
	// alive.
	lease time.Duration
	// bad is a version that stalls; the test sets it before the agent works.
	bad string
	// kept is what the cluster keeps from a hub that is lost; the test sets it before the
	// agent works.
	kept *v1alpha1.KeptAdmission
	// found is the version that others have installed; the test sets it before the agent works.
	found string

	mu sync.Mutex
	// refusal is why the agent does not take over what it found; empty where it does.
	refusal string
	// version and olm are what the agent reports.
	version, olm string
	// unreachableSince is what the agent reports of its own API server.
	unreachableSince string
}

// join makes a cluster and plays its agent until the test ends.
func (h *harness) join(t *testing.T, cluster *v1alpha1.FleetCluster) *agent {
	t.Helper()
	must(t, h.Create(t.Context(), cluster))
	t.Cleanup(func() { h.sweep(cluster) })
	h.reaches(t, cluster, "False NeverJoined")
	a := &agent{Client: h.as(t, h.agentConfig(t, cluster)), h: h, cluster: cluster,
		namespace: v1alpha1.ClusterNamespace(cluster.Name), lease: longLease, version: "test", olm: "0.46.0"}
	return a
}

// sweep removes a cluster after its test, whatever state that left it in.
func (h *harness) sweep(cluster *v1alpha1.FleetCluster) {
	ctx := context.Background()
	key := client.ObjectKeyFromObject(cluster)
	_ = h.Delete(ctx, cluster)
	var installs v1alpha1.OperatorInstallList
	_ = h.List(ctx, &installs, client.InNamespace(v1alpha1.ClusterNamespace(key.Name)))
	for i := range installs.Items {
		installs.Items[i].Finalizers = nil
		_ = h.Update(ctx, &installs.Items[i])
	}
}

// agentConfig is what an agent is given to reach the hub.
func (h *harness) agentConfig(t *testing.T, cluster *v1alpha1.FleetCluster) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	must(t, h.SubResource("token").Create(t.Context(), accountOf(cluster), request))
	return h.withToken(request.Status.Token)
}

// withToken is a configuration that authenticates by a token.
func (h *harness) withToken(token string) *rest.Config {
	return &rest.Config{Host: h.cluster.URL(), BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: h.cluster.RESTConfig().CAData}}
}

func accountOf(cluster *v1alpha1.FleetCluster) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster.Name),
		Name: v1alpha1.AgentServiceAccount}}
}

// live renews the Lease until the returned function is called, which returns when nothing is renewed any more.
func (a *agent) live(t *testing.T) (die func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	must(t, a.renew(ctx))
	go func() {
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				once, cancel := context.WithTimeout(ctx, 5*time.Second) // impatient: the next one will do
				_ = a.renew(once)
				cancel()
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// goes renews the Lease for the last time.
func (a *agent) goes(t *testing.T) {
	t.Helper()
	a.lease = lastLease
	must(t, a.renew(t.Context()))
}

func (a *agent) renew(ctx context.Context) error {
	holder, seconds, now := "test", int32(a.lease.Seconds()), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: v1alpha1.LeaseName}}
	_, err := controllerutil.CreateOrPatch(ctx, a.Client, lease, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		lease.Annotations = map[string]string{
			v1alpha1.AnnotationAgentVersion: a.version, v1alpha1.AnnotationKubernetesVersion: "v1.37.0",
			v1alpha1.AnnotationOLMVersion:                a.olm,
			v1alpha1.AnnotationAPIServerUnreachableSince: a.unreachableSince,
		}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}
		return nil
	})
	return err
}

func (a *agent) setVersion(version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = version
}

// refuse has the agent refuse to take over what it found, or not any more.
func (a *agent) refuse(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusal = why
}

// refuses is why the agent does not take over what it found.
func (a *agent) refuses() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refusal
}

func (a *agent) setOLM(version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.olm = version
}

// loseAPIServer has the agent report that its own API server does not answer;
// an empty time reports that it does.
func (a *agent) loseAPIServer(since string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unreachableSince = since
}

// install plays the rollout: it makes an OperatorInstall on the cluster.
func (h *harness) install(t *testing.T, cluster string, operator v1alpha1.OperatorReference) *v1alpha1.OperatorInstall {
	t.Helper()
	install := &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.ClusterNamespace(cluster), Name: operator.InstallName(),
			Labels: map[string]string{
				v1alpha1.LabelCluster: cluster, v1alpha1.LabelOperator: operator.Name,
				v1alpha1.LabelOperatorNamespace: operator.Namespace,
			},
		},
		Spec: v1alpha1.OperatorInstallSpec{Operator: operator, Cluster: cluster},
	}
	must(t, h.Create(t.Context(), install))
	return install
}

// hold and letGo are what an agent does with its finalizer, while the hub writes too.
func (a *agent) hold(t *testing.T, install *v1alpha1.OperatorInstall) {
	t.Helper()
	a.finalize(t, install, kit.AddFinalizer)
}

func (a *agent) letGo(t *testing.T, install *v1alpha1.OperatorInstall) {
	t.Helper()
	a.finalize(t, install, kit.RemoveFinalizer)
}

func (a *agent) finalize(t *testing.T, install *v1alpha1.OperatorInstall,
	change func(context.Context, client.Client, client.Object, string) error) {
	t.Helper()
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := a.Get(t.Context(), client.ObjectKeyFromObject(install), install); err != nil {
			return err
		}
		return change(t.Context(), a, install, v1alpha1.FinalizerAgent)
	}))
}

// deleted waits until the hub deleted the install, and returns it as it then is.
func (a *agent) deleted(t *testing.T, install *v1alpha1.OperatorInstall) *v1alpha1.OperatorInstall {
	t.Helper()
	eventually(t, func() error {
		if err := a.Get(t.Context(), client.ObjectKeyFromObject(install), install); err != nil {
			return err
		}
		if install.DeletionTimestamp == nil {
			return fmt.Errorf("%w: the hub did not delete %s", errNotYet, install.Name)
		}
		return nil
	})
	return install
}
