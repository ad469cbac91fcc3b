// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the agent's Lease in its namespace on the hub, the
// only sign by which the hub knows that a cluster is alive. The Lease carries
// annotations: whether the agent reaches the API server of its own cluster, what the
// cluster's owner refuses, and the versions of the agent, of Kubernetes and of OLM. They change only when what
// they say changes, so a renewal costs the hub one request and one write.
//
// The cluster is looked at more often than the Lease is renewed. What changes there is
// reported at once.
package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
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
	// ClusterName is what `bellwether fleet join` calls the cluster.
	ClusterName string
	// Hosted says that the agent does not run on its cluster, which `bellwether fleet join` has to know.
	Hosted bool
	// Holder names the agent's process.
	Holder string
	// Every is how often the Lease is renewed where nothing changes, give or take a
	// twentieth, and For how long it is valid.
	Every, For time.Duration

	AgentVersion string
	// Cluster is checked before each renewal, and each ten seconds at least.
	Cluster Cluster
	// Live reads from the agent's cluster past the cache.
	Live client.Reader
	// Veto returns what the cluster's owner refuses; nil if that is nothing.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	// Account returns the UID of the ServiceAccount that the agent is to the hub.
	Account func() types.UID
	// Refused is told of each renewal that the hub refuses, in words for a person.
	Refused func(message string)
	Now     func() time.Time

	// known is the Lease as the hub has it, as far as this process knows.
	known  *coordinationv1.Lease
	outage outage
	refusal
}

// maxPause bounds the time between two checks of the cluster, and between two renewals
// while they fail; and it bounds a renewal itself.
const maxPause = 10 * time.Second

// Start renews the Lease at once and then at the given interval, or earlier where
// there is news of the cluster. A hub that cannot be reached is no error: it is logged
// once, and tried again.
func (l *Lease) Start(ctx context.Context) error {
	// checks is how many there are in the time of one renewal.
	checks := int((l.Every + maxPause - 1) / maxPause)
	pause := l.Every / time.Duration(checks)
	failing := ""
	// Agents that start together do not renew together.
	delay := time.Duration(rand.Int63nRange(0, int64(pause)))
	for left, next := 0, rand.IntnRange(1, checks+1); ; delay = spread(pause) {
		seen := l.observe(ctx)
		if left--; left <= 0 || l.isNews(seen) {
			err := l.renew(ctx, seen)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it was told to stop
			}
			failing = l.logChange(ctx, failing, err)
			if err == nil {
				left, next = next, checks
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// spread returns a duration that is up to a twentieth longer or shorter.
func spread(d time.Duration) time.Duration {
	return d - d/20 + time.Duration(rand.Int63nRange(0, int64(d/10)+1))
}

// logChange logs a failure when it begins and when it becomes another one, and
// success after a failure. It returns the kind of failure for the next call.
func (l *Lease) logChange(ctx context.Context, before string, err error) string {
	l.note(err, l.Now())
	if isRefusal(err) {
		l.Refused(l.message().Error())
	}
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
		logger.Error(err, kind+"; the Lease is not renewed", "retryEvery", min(l.Every, maxPause))
	}
	return kind
}

// isNews tells whether the hub does not know yet what was observed.
func (l *Lease) isNews(seen observation) bool {
	if l.known == nil {
		return true
	}
	annotations := maps.Clone(l.known.Annotations)
	l.annotate(annotations, seen)
	return !maps.Equal(annotations, l.known.Annotations)
}

// renew writes the Lease with one request, since nobody else writes it. Where somebody
// did, or this process has not seen it yet, it is read first.
func (l *Lease) renew(ctx context.Context, seen observation) error {
	ctx, cancel := context.WithTimeout(ctx, min(l.Every, maxPause))
	defer cancel()
	wasKnown := l.known != nil
	err := l.write(ctx, seen)
	if wasKnown && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		l.known = nil
		return l.write(ctx, seen)
	}
	return err
}

func (l *Lease) write(ctx context.Context, seen observation) error {
	lease := l.known.DeepCopy()
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: v1alpha1.LeaseName}}
		if err := l.Hub.Get(ctx, client.ObjectKeyFromObject(lease), lease); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get Lease: %w", err)
		}
	}
	l.fill(lease, seen)
	if lease.ResourceVersion == "" {
		if err := l.Hub.Create(ctx, lease); err != nil {
			return fmt.Errorf("create Lease: %w", err)
		}
	} else if err := l.Hub.Update(ctx, lease); err != nil {
		return fmt.Errorf("update Lease: %w", err)
	}
	l.known = lease
	return nil
}

// observation is what is observed of the cluster before a renewal. Nil: it could
// not be observed.
type observation struct {
	kubernetes, olm, veto *string
}

// maxCheck bounds each look at the cluster.
const maxCheck = 5 * time.Second

// observe looks at the cluster within a bound, so that an API server that does not
// answer never keeps the Lease from being renewed.
func (l *Lease) observe(ctx context.Context) observation {
	ctx, cancel := context.WithTimeout(ctx, min(maxCheck, l.For/4))
	defer cancel()
	err := l.Cluster.Check(ctx)
	l.outage.note(err, l.Now())
	if err != nil {
		return observation{}
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
	l.annotate(lease.Annotations, seen)
}

// annotate writes what was observed. What could not be observed stays as it was.
func (l *Lease) annotate(annotations map[string]string, seen observation) {
	annotations[v1alpha1.AnnotationAgentVersion] = l.AgentVersion
	annotations[v1alpha1.AnnotationAgentAccount] = string(l.Account())
	for key, value := range map[string]*string{v1alpha1.AnnotationOLMVersion: seen.olm,
		v1alpha1.AnnotationVeto: seen.veto, v1alpha1.AnnotationKubernetesVersion: seen.kubernetes} {
		if value != nil {
			annotations[key] = *value
		}
	}
	l.outage.report(annotations)
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

// note takes in the result of a check.
func (o *outage) note(err error, now time.Time) {
	if err == nil {
		*o = outage{}
		return
	}
	if o.checks++; o.checks == 1 {
		o.since, o.first = now, err
	}
}

// report writes the result of the last checks into the annotations. An outage that was
// reported before, also by a process before this one, keeps its beginning and its
// error: annotations that change at each renewal would wake the hub at each renewal.
func (o *outage) report(annotations map[string]string) {
	if o.checks == 0 {
		annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = ""
		delete(annotations, v1alpha1.AnnotationAPIServerError)
		return
	}
	if o.checks < reportAfter || annotations[v1alpha1.AnnotationAPIServerUnreachableSince] != "" {
		return
	}
	annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = o.since.UTC().Format(time.RFC3339)
	annotations[v1alpha1.AnnotationAPIServerError] = phrase.Truncate(o.first.Error(), maxError)
}
