// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the agent's Lease in its namespace on the hub. The hub uses only the
// Lease to determine whether a cluster is alive. The Lease has annotations: whether the agent
// reaches the API server of its own cluster, the veto of the cluster's owner, and the versions
// of the agent, of Kubernetes and of OLM. The annotations change only with these facts, so a
// renewal costs the hub one request and one write.
//
// The cluster is checked more often than the Lease is renewed. A change is reported at once.
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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// Cluster is the agent's own cluster. APIServer implements it.
type Cluster interface {
	// Check returns an error unless the cluster's API server answers with
	// the current data of etcd.
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
	// ClusterName is the cluster's name for `bellwether fleet join`.
	ClusterName string
	// Hosted is true if the agent does not run on its cluster; `bellwether
	// fleet join` then needs a flag.
	Hosted bool
	// Holder names the agent's process.
	Holder string
	// RenewInterval is the interval between two renewals without a change, with a deviation of up to a
	// twentieth. For is how long the Lease is valid.
	RenewInterval, Validity time.Duration

	AgentVersion string
	// Cluster is checked before each renewal, and at least every ten seconds.
	Cluster Cluster
	// Live reads from the agent's cluster without the cache.
	Live client.Reader
	// Veto returns the veto of the cluster's owner; nil if there is none.
	Veto func(ctx context.Context) (*v1alpha1.ClusterVeto, error)
	// OLM reports whether the cluster serves OLM's API; known is false if that is not known yet.
	OLM func() (served, known bool)
	// Account returns the UID of the ServiceAccount with which the agent
	// authenticates to the hub.
	Account func() types.UID
	// Refused is called for each renewal that the hub refuses, with a message for a person.
	Refused func(message string)
	Now     func() time.Time

	// lastLease is the Lease after the last successful write; nil if it is unknown.
	lastLease *coordinationv1.Lease
	outage    outage
	refusal
}

// maxInterval limits the time between two checks of the cluster, the time between two renewals
// while they fail, and the duration of a renewal.
const maxInterval = 10 * time.Second

// Start renews the Lease at once and then at the given interval, or earlier if the state of the
// cluster has changed. A hub that cannot be reached is not an error: the failure is logged once,
// and the renewal is tried again.
func (l *Lease) Start(ctx context.Context) error {
	// checks is the number of checks in the interval of one renewal.
	checks := int((l.RenewInterval + maxInterval - 1) / maxInterval)
	pause := l.RenewInterval / time.Duration(checks)
	lastFailure := ""
	delay := time.Duration(rand.Int63nRange(0, int64(pause)))
	// The second renewal follows after a random number of checks, and later renewals after checks,
	// so that agents that start together do not renew together.
	for checksLeft, checksToNext := 0, rand.IntnRange(1, checks+1); ; delay = addJitter(pause) {
		observed := l.observeCluster(ctx)
		if checksLeft--; checksLeft <= 0 || l.hasNews(observed) {
			err := l.renew(ctx, observed)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end of ctx is not a failure
			}
			lastFailure = l.recordResult(ctx, lastFailure, err)
			if err == nil {
				checksLeft, checksToNext = checksToNext, checks
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// addJitter returns a random duration that is up to a twentieth longer or shorter than d.
func addJitter(d time.Duration) time.Duration {
	return d - d/20 + time.Duration(rand.Int63nRange(0, int64(d/10)+1))
}

// recordResult records the result of a renewal. It logs a failure when it starts or changes its
// kind, and the first success after a failure. It returns the kind of failure for the next call.
func (l *Lease) recordResult(ctx context.Context, previousKind string, err error) string {
	l.record(err, l.Now())
	if isRefusal(err) {
		l.Refused(l.newRefusalError().Error())
	}
	logger := log.FromContext(ctx)
	kind := ""
	switch {
	case err == nil:
		if previousKind != "" {
			logger.Info("The hub answers again")
		}
		return kind
	case isRefusal(err):
		kind = refusedMessage
	default:
		kind = "The hub cannot be reached"
	}
	if kind != previousKind {
		logger.Error(err, kind+"; the Lease is not renewed", "retryEvery", min(l.RenewInterval, maxInterval))
	}
	return kind
}

// hasNews reports whether the observation differs from the annotations of the Lease on the hub.
func (l *Lease) hasNews(observed observation) bool {
	if l.lastLease == nil {
		return true
	}
	annotations := maps.Clone(l.lastLease.Annotations)
	l.annotate(annotations, observed)
	return !maps.Equal(annotations, l.lastLease.Annotations)
}

// renew writes the Lease, normally with one request. If another process has written or deleted
// the Lease, or this process has not read the Lease yet, renew reads the Lease first.
func (l *Lease) renew(ctx context.Context, observed observation) error {
	ctx, cancel := context.WithTimeout(ctx, min(l.RenewInterval, maxInterval))
	defer cancel()
	wasKnown := l.lastLease != nil
	err := l.writeLease(ctx, observed)
	if wasKnown && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		l.lastLease = nil
		return l.writeLease(ctx, observed)
	}
	return err
}

// writeLease creates or updates the Lease, and stores the result in lastLease.
func (l *Lease) writeLease(ctx context.Context, observed observation) error {
	lease := l.lastLease.DeepCopy()
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: v1alpha1.LeaseName}}
		if err := l.Hub.Get(ctx, client.ObjectKeyFromObject(lease), lease); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get Lease: %w", err)
		}
	}
	l.fillLease(lease, observed)
	if lease.ResourceVersion == "" { // the hub has no Lease yet
		if err := l.Hub.Create(ctx, lease); err != nil {
			return fmt.Errorf("create Lease: %w", err)
		}
	} else if err := l.Hub.Update(ctx, lease); err != nil {
		return fmt.Errorf("update Lease: %w", err)
	}
	l.lastLease = lease
	return nil
}

// observation is the observed state of the cluster before a renewal. A nil
// field could not be observed.
type observation struct {
	kubernetes, olm, veto *string
}

// checkTimeout limits each check of the cluster.
const checkTimeout = 5 * time.Second

// observeCluster checks the cluster and returns what it observed. Its time limit is shorter than
// the validity of the Lease, so that an API server that does not answer never prevents the
// renewal. If the check fails, it records the failure in outage, and returns an observation
// without fields.
func (l *Lease) observeCluster(ctx context.Context) observation {
	ctx, cancel := context.WithTimeout(ctx, min(checkTimeout, l.Validity/4))
	defer cancel()
	err := l.Cluster.Check(ctx)
	l.outage.record(err, l.Now())
	if err != nil {
		return observation{}
	}
	var observed observation
	if version, err := l.Cluster.Version(ctx); err == nil {
		observed.kubernetes = &version
	}
	if v, err := l.Veto(ctx); err == nil {
		observed.veto = ptr.To(holds.EncodeVeto(v))
	}
	if served, known := l.OLM(); known {
		observed.olm = ptr.To(l.readOLMVersion(ctx, served))
	}
	return observed
}

// fillLease sets the holder, the times and the annotations of the Lease.
func (l *Lease) fillLease(lease *coordinationv1.Lease, observed observation) {
	now := metav1.NewMicroTime(l.Now())
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.Holder {
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime = &l.Holder, &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.RenewTime = &now
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(l.Validity / time.Second))
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	l.annotate(lease.Annotations, observed)
}

// annotate writes the observation into the annotations. An annotation whose value could not be
// observed stays unchanged.
func (l *Lease) annotate(annotations map[string]string, observed observation) {
	annotations[v1alpha1.AnnotationAgentVersion] = l.AgentVersion
	annotations[v1alpha1.AnnotationAgentAccount] = string(l.Account())
	for key, value := range map[string]*string{v1alpha1.AnnotationOLMVersion: observed.olm,
		v1alpha1.AnnotationVeto: observed.veto, v1alpha1.AnnotationKubernetesVersion: observed.kubernetes} {
		if value != nil {
			annotations[key] = *value
		}
	}
	l.outage.writeAnnotations(annotations)
}

// readOLMVersion returns the version of OLM's own CSV; empty if the cluster does not serve OLM's API.
// The CSV exists if OLM manages itself, as in its released manifests and on OpenShift. If it
// does not exist or cannot be read, the result is unknownVersion.
func (l *Lease) readOLMVersion(ctx context.Context, served bool) string {
	if !served {
		return ""
	}
	for _, namespace := range []string{"olm", "openshift-operator-lifecycle-manager"} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := l.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "packageserver"}, csv); err == nil {
			return csv.Spec.Version.String()
		}
	}
	return unknownVersion
}

const unknownVersion = "unknown"

// outage counts the failed checks of the API server in a row.
type outage struct {
	failedChecks int
	since        time.Time
	firstError   error
}

// minFailedChecks is how many checks in a row must fail before the API server is reported as
// unreachable, because a single request can be lost.
const minFailedChecks = 2

// maxErrorLength limits the size of the annotation.
const maxErrorLength = 512

// record stores the result of a check.
func (o *outage) record(err error, now time.Time) {
	if err == nil {
		*o = outage{}
		return
	}
	if o.failedChecks++; o.failedChecks == 1 {
		o.since, o.firstError = now, err
	}
}

// writeAnnotations writes the result of the last checks into the annotations. An outage that was
// reported before, even by a previous process, keeps its start and its error, because
// annotations that change at each renewal would trigger a reconcile on the hub at each renewal.
func (o *outage) writeAnnotations(annotations map[string]string) {
	if o.failedChecks == 0 {
		annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = ""
		delete(annotations, v1alpha1.AnnotationAPIServerError)
		return
	}
	if o.failedChecks < minFailedChecks || annotations[v1alpha1.AnnotationAPIServerUnreachableSince] != "" {
		return
	}
	annotations[v1alpha1.AnnotationAPIServerUnreachableSince] = o.since.UTC().Format(time.RFC3339)
	annotations[v1alpha1.AnnotationAPIServerError] = phrase.Truncate(o.firstError.Error(), maxErrorLength)
}
