// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/blang/semver/v4"
	operatorversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/agent/heartbeat"
)

// cluster is a hollow cluster.
type cluster struct {
	name, namespace string
	// account is the UID of the agent's ServiceAccount on the hub.
	account types.UID
	cut     atomic.Bool
	// notify has an OperatorInstall reconciled, and installs is the agent's cache.
	notify   func(client.ObjectKey)
	installs client.Reader
}

func (c *cluster) isCut() bool { return c.cut.Load() }

// connect ends an outage: the agent reconciles what it missed.
func (c *cluster) connect(ctx context.Context) {
	c.cut.Store(false)
	var all v1alpha1.OperatorInstallList
	if err := c.installs.List(ctx, &all, client.InNamespace(c.namespace)); err != nil {
		return // the fleet is being stopped
	}
	for i := range all.Items {
		c.notify(client.ObjectKeyFromObject(&all.Items[i]))
	}
}

// Disturb cuts off the clusters that the trouble hits, and returns their names. They are connected again when ctx ends.
func (f *Fleet) Disturb(ctx context.Context, t Trouble) []string {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(f.running, cancel)
	hit := f.options.Hit(t, f.options.Clusters)
	for _, name := range hit {
		c := f.clusters[v1alpha1.ClusterNamespace(name)]
		f.done.Go(func() {
			f.suffer(ctx, c, f.options.Outages(t, name, longest))
			c.connect(context.WithoutCancel(ctx))
		})
	}
	return hit
}

// longest is how far outages are drawn ahead.
const longest = 24 * time.Hour

// suffer cuts a cluster off and connects it again until ctx ends.
func (f *Fleet) suffer(ctx context.Context, c *cluster, outages []Outage) {
	began := time.Now()
	wait := func(until time.Duration) bool {
		timer := time.NewTimer(time.Until(began.Add(until)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for _, outage := range outages {
		if !wait(outage.From) {
			return
		}
		c.cut.Store(true)
		if !wait(outage.Until) {
			return
		}
		c.connect(ctx)
	}
}

// beat renews the Lease of a cluster by the agent's own code. Agents do not start at the same time, so their renewals
// are spread over the period.
func (f *Fleet) beat(ctx context.Context, hub client.Client, c *cluster) {
	if !f.wait(ctx, c, "beat") {
		return
	}
	lease := &heartbeat.Lease{
		Hub: hub, Namespace: c.namespace, ClusterName: c.name, Holder: "hollow-" + c.name,
		RenewInterval: f.options.LeaseEvery, Validity: f.options.LeaseFor, AgentVersion: "hollow",
		Cluster: ownAPIServer{}, Live: ownAPIServer{}, Veto: noVeto,
		OLM: func() (served, known bool) { return true, true }, Now: time.Now,
		Account: func() types.UID { return c.account },
		Refused: func(message string) { f.refused(c.name, message) },
	}
	_ = lease.Start(ctx) // it returns no error
}

// wait waits for the cluster's place in the period of Leases, which differs for different words. It returns whether ctx
// goes on.
func (f *Fleet) wait(ctx context.Context, c *cluster, word string) bool {
	offset := time.Duration(f.options.source(word, c.name).Float64() * float64(f.options.LeaseEvery))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(offset):
		return true
	}
}

// ownAPIServer stands for the API server of a hollow cluster. It answers always.
type ownAPIServer struct{ client.Reader }

// Check implements heartbeat.Cluster.
func (ownAPIServer) Check(context.Context) error { return nil }

// Version implements heartbeat.Cluster.
func (ownAPIServer) Version(context.Context) (string, error) { return "v1.34.1", nil }

// Get returns OLM's own CSV, by which the agent tells OLM's version.
func (ownAPIServer) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if csv, ok := object.(*operatorsv1alpha1.ClusterServiceVersion); ok {
		csv.Spec.Version = operatorversion.OperatorVersion{Version: semver.MustParse("0.46.0")}
	}
	return nil
}

func noVeto(context.Context) (*v1alpha1.ClusterVeto, error) { return nil, nil }

// Change is the way of an OperatorInstall to what it was admitted to, by the times at which the agent's watch told of
// it.
type Change struct {
	Cluster, Hash string
	// Admitted is when the admission was seen, and Ready when the agent's own report was, that the release runs; zero
	// until then.
	Admitted, Ready time.Time
}

// note records how far a change is; it lets every event pass.
func (f *Fleet) note(object client.Object) bool {
	install := object.(*v1alpha1.OperatorInstall)
	c, admission := f.clusters[install.Namespace], install.Spec.Admission
	if c == nil || admission == nil {
		return c != nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.ObjectKeyFromObject(install)
	change := f.changes[key]
	if change == nil || change.Hash != admission.Hash {
		change = &Change{Cluster: c.name, Hash: admission.Hash, Admitted: time.Now()}
		f.changes[key] = change
	}
	if change.Ready.IsZero() && install.Status.SucceededHash == admission.Hash {
		change.Ready = time.Now()
	}
	return true
}

// Changes returns the last change of each install, in no order.
func (f *Fleet) Changes() []Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Change, 0, len(f.changes))
	for _, c := range f.changes {
		all = append(all, *c)
	}
	return all
}

var _ heartbeat.Cluster = ownAPIServer{}
