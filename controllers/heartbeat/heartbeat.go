// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the agent's Lease in its namespace on the hub, the
// only sign by which the hub knows that a cluster is alive. The Lease carries
// annotations: whether the agent reaches the API server of its own cluster, what the
// cluster's owner refuses, and the versions of the agent, of Kubernetes and of OLM. They change only when what
// they say changes, so a renewal costs the hub nothing but the write.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// Cluster is the agent's own cluster; APIServer is one.
type Cluster interface {
	// Check fails unless the cluster's API server answers with what etcd holds now.
	Check(ctx context.Context) error
	// Version returns the version of Kubernetes.
	Version(ctx context.Context) (string, error)
}

// Lease renews the Lease until its context ends. It is a manager.Runnable.
type Lease struct {
	// Hub writes the Lease; it must not read through a cache.
	Hub client.Client
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// Holder names the agent's process.
	Holder string
	// Every is how often the Lease is renewed, and For how long it is valid.
	Every, For time.Duration

	AgentVersion string
	// Cluster is checked before each renewal.
	Cluster Cluster
	// Live reads from the agent's cluster past the cache.
	Live client.Reader
	// Veto returns what the cluster's owner refuses; nil if that is nothing.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	Now func() time.Time

	outage outage
	refusal
}

// Start renews the Lease at once and then at the given interval. A hub that cannot
// be reached is no error: it is logged once, and tried again.
func (l *Lease) Start(ctx context.Context) error {
	ticker := time.NewTicker(l.Every)
	defer ticker.Stop()
	failing := ""
	for {
		err := l.renew(ctx)
		if ctx.Err() != nil {
			return nil
		}
		failing = l.logChange(ctx, failing, err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// logChange logs a failure when it begins and when it becomes another one, and
// success after a failure. It returns the kind of failure for the next call.
func (l *Lease) logChange(ctx context.Context, before string, err error) string {
	l.note(err, l.Now())
	logger := log.FromContext(ctx)
	kind := ""
	switch {
	case err == nil:
		if before != "" {
			logger.Info("The hub answers again")
		}
		return kind
	case isRefusal(err):
		kind = refused
	default:
		kind = "The hub cannot be reached"
	}
	if kind != before {
		logger.Error(err, kind+"; the Lease is not renewed", "retryEvery", l.Every)
	}
	return kind
}

func (l *Lease) renew(ctx context.Context) error {
	cluster := l.observe(ctx)
	ctx, cancel := context.WithTimeout(ctx, l.Every)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: v1alpha1.LeaseName}}
	err := l.Hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Lease: %w", err)
	}
	l.fill(lease, cluster)
	if apierrors.IsNotFound(err) {
		if err := l.Hub.Create(ctx, lease); err != nil {
			return fmt.Errorf("create Lease: %w", err)
		}
		return nil
	}
	if err := l.Hub.Update(ctx, lease); err != nil {
		return fmt.Errorf("update Lease: %w", err)
	}
	return nil
}

// observation is what is observed of the cluster before a renewal. Nil: it could
// not be observed.
type observation struct {
	unreachable     error
	kubernetes, olm *string
	veto            *string
}

// maxCheck bounds each look at the cluster.
const maxCheck = 5 * time.Second

// observe looks at the cluster within a bound, so that an API server that does not
// answer never keeps the Lease from being renewed.
func (l *Lease) observe(ctx context.Context) observation {
	ctx, cancel := context.WithTimeout(ctx, min(maxCheck, l.For/4))
	defer cancel()
	if err := l.Cluster.Check(ctx); err != nil {
		return observation{unreachable: err}
	}
	var seen observation
	if version, err := l.Cluster.Version(ctx); err == nil {
		seen.kubernetes = &version
	}
	if v, err := l.Veto(ctx); err == nil {
		seen.veto = ptr.To(veto.Encode(v))
	}
	if served, known := l.OLM(); known {
		seen.olm = ptr.To(l.olmVersion(ctx, served))
	}
	return seen
}

func (l *Lease) fill(lease *coordinationv1.Lease, seen observation) {
	now := metav1.NewMicroTime(l.Now())
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.Holder {
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime = &l.Holder, &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.RenewTime = &now
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(l.For / time.Second))
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[v1alpha1.AnnotationAgentVersion] = l.AgentVersion
	// What could not be observed stays as it was.
	if seen.olm != nil {
		lease.Annotations[v1alpha1.AnnotationOLMVersion] = *seen.olm
	}
	if seen.veto != nil {
		lease.Annotations[v1alpha1.AnnotationVeto] = *seen.veto
	}
	if seen.kubernetes != nil {
		lease.Annotations[v1alpha1.AnnotationKubernetesVersion] = *seen.kubernetes
	}
	l.outage.report(lease.Annotations, seen.unreachable, now.Time)
}

// olmVersion is the version of OLM's own CSV, where it manages itself, as it
// does in its released manifests and on OpenShift.
func (l *Lease) olmVersion(ctx context.Context, served bool) string {
	if !served {
		return ""
	}
	for _, namespace := range []string{"olm", "openshift-operator-lifecycle-manager"} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := l.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "packageserver"}, csv); err == nil {
			return csv.Spec.Version.String()
		}
	}
	return unknown
}

const unknown = "unknown"

// outage counts failed checks of the API server.
type outage struct {
	checks int
	since  time.Time
	first  error
}

// reportAfter is how many checks in a row have to fail before the API server is
// reported as unreachable: a single one may have been lost on the way.
const reportAfter = 2

// maxError keeps the annotation small.
const maxError = 512

// report writes the result of a check into the annotations. An outage that was
// reported before, also by a process before this one, keeps its beginning and its
// error: annotations that change at each renewal would wake the hub at each renewal.
func (o *outage) report(annotations map[string]string, err error, now time.Time) {
	if err == nil {
		*o = outage{}
		annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = ""
		delete(annotations, v1alpha1.AnnotationAPIServerError)
		return
	}
	if o.checks++; o.checks == 1 {
		o.since, o.first = now, err
	}
	if o.checks < reportAfter || annotations[v1alpha1.AnnotationAPIServerUnreachableSince] != "" {
		return
	}
	annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = o.since.UTC().Format(time.RFC3339)
	annotations[v1alpha1.AnnotationAPIServerError] = phrase.Truncate(o.first.Error(), maxError)
}
