// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// maxWriters is how many OperatorInstalls all rollouts together write at the same time. More
// writers do not make an API server faster, and they delay the renewal of the hub's own Lease.
const maxWriters = 48

// writeLimiter limits how many writes of all rollouts run at the same time. Its
// zero value is ready for use.
type writeLimiter struct {
	once      sync.Once
	semaphore *semaphore.Weighted
}

// acquire waits until a write may start, or returns the error of the context.
func (l *writeLimiter) acquire(ctx context.Context) error {
	l.once.Do(func() { l.semaphore = semaphore.NewWeighted(maxWriters) })
	return l.semaphore.Acquire(ctx, 1)
}

// release ends a write that acquire started.
func (l *writeLimiter) release() { l.semaphore.Release(1) }

// apply executes the actions in parallel and returns a summary of the errors. An OperatorInstall
// that cannot be written does not block other clusters; it is recorded, so that the next pass
// holds its cluster back. If the rollout was changed since it was read, all remaining actions are
// canceled.
func (r *Reconciler) apply(ctx context.Context, in rollouts.Input, actions []rollouts.Action) error {
	if len(actions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rollouts.AdmissionTimeout)
	defer cancel()
	p, err := r.newApplyPass(ctx, in, actions)
	if err != nil {
		return err
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	group.SetLimit(maxWriters)
	for _, a := range actions {
		group.Go(func() error {
			err := r.limiter.acquire(ctx)
			if err == nil {
				err = r.applyAction(ctx, p, a)
				r.limiter.release()
			}
			r.writeFailures.record(p.rollout.UID, a.Cluster, err, r.Now())
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				if errors.Is(err, errRolloutChanged) {
					cancel()
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the functions collect their errors
	return summarizeErrors(errs)
}

// summarizeErrors returns the error that the status shows. If there is a conflict, it returns
// the conflict, which explains the other errors. Otherwise it returns the first error by
// text, so that the status is stable, and the number of errors if there are several. It
// returns nil if there are no errors.
func summarizeErrors(errs []error) error {
	var firstErr error
	for _, err := range errs {
		if isConflict(err) {
			return err
		}
		if firstErr == nil || err.Error() < firstErr.Error() {
			firstErr = err
		}
	}
	if len(errs) > 1 {
		return fmt.Errorf("%d clusters could not be written, one of them: %w", len(errs), firstErr)
	}
	return firstErr
}

// applyPass is the data that the actions of one pass share.
type applyPass struct {
	rollout  *v1alpha1.OperatorRollout
	fence    *fence
	clusters map[string]rollouts.Cluster
	// allRollouts are all rollouts, read without the cache; nil if no action admits a cluster.
	allRollouts []v1alpha1.OperatorRollout
	// busy maps the names of clusters that were checked to whether other
	// operators change the cluster.
	busy sync.Map
}

// newApplyPass returns the shared data of a pass. It lists all rollouts if the pass admits
// clusters and the number of changes per cluster is limited.
func (r *Reconciler) newApplyPass(ctx context.Context, in rollouts.Input, actions []rollouts.Action) (*applyPass,
	error) {
	p := &applyPass{rollout: in.Rollout,
		fence: &fence{read: func() error { return r.checkUnchanged(ctx, in.Rollout) }}}
	if r.MaxChanges <= 0 || !slices.ContainsFunc(actions, func(a rollouts.Action) bool {
		return a.Kind == rollouts.ActionAdmit
	}) {
		return p, nil
	}
	p.clusters = indexByName(in.Clusters)
	var err error
	p.allRollouts, err = r.listLiveRollouts(ctx)
	return p, err
}

// isConflict reports whether the API server refused a write because of an
// outdated resource version.
func isConflict(err error) bool { return apierrors.IsConflict(err) }

// applyAction executes one action, if the rollout is unchanged. It first tries with
// the cached OperatorInstall. If that one is outdated, missing, or not sufficient for the
// action, it reads the install from the API server.
func (r *Reconciler) applyAction(ctx context.Context, p *applyPass, a rollouts.Action) error {
	ro := p.rollout
	if err := p.fence.check(); err != nil {
		return err
	}
	// The cached install is sufficient for a write: the write has the resource version as a
	// precondition, or creates the install, so the API server refuses an outdated write. An
	// install that is not a member of the rollout in the cache can be a member by now. Only
	// ActionAssign writes to an install that is not a member: any other action would write
	// nothing, and nothing would be refused, so it needs the newest install.
	install, err := readInstall(ctx, r.Client, ro, a.Cluster)
	isMember := install != nil && install.Labels[v1alpha1.LabelRollout] == ro.Name
	canUseCached := isMember || a.Kind == rollouts.ActionAssign
	if err == nil && canUseCached {
		if err = r.applyToInstall(ctx, p, a, install); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if install, err = readInstall(ctx, r.Live, ro, a.Cluster); err != nil {
		return err
	}
	// If another hub created the install meanwhile, the next pass reads it.
	return client.IgnoreAlreadyExists(r.applyToInstall(ctx, p, a, install))
}

// readInstall returns the OperatorInstall of a rollout's operator on a cluster;
// nil if it does not exist.
func readInstall(ctx context.Context, reader client.Reader, ro *v1alpha1.OperatorRollout, cluster string) (
	*v1alpha1.OperatorInstall, error) {
	var install v1alpha1.OperatorInstall
	switch err := reader.Get(ctx, newInstallKey(ro, cluster), &install); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read install of %s: %w", cluster, err)
	}
	return &install, nil
}

// newInstallKey returns the key of the OperatorInstall of a rollout's operator on a cluster.
func newInstallKey(ro *v1alpha1.OperatorRollout, cluster string) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: newOperatorReference(ro).InstallName()}
}

// applyToInstall executes an action on an OperatorInstall; install is nil if it does not exist.
// It does nothing if the install is being deleted or has the admission of a newer rollout.
func (r *Reconciler) applyToInstall(ctx context.Context, p *applyPass, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	ro := p.rollout
	if install != nil {
		isOfNewerRollout := install.Spec.Admission != nil && install.Spec.Admission.Revision > ro.Spec.Revision
		if isOfNewerRollout || install.DeletionTimestamp != nil {
			return nil
		}
	}
	switch a.Kind {
	case rollouts.ActionAssign:
		return r.assignWave(ctx, ro, a, install)
	case rollouts.ActionRunJob:
		return r.requestJob(ctx, ro, a, install)
	default:
		return r.admitCluster(ctx, p, a, install)
	}
}

// assignWave makes the cluster a member of the rollout in the action's wave. It creates the
// install if it is nil. After the plan is frozen, a member stays in its wave.
func (r *Reconciler) assignWave(ctx context.Context, ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	isMember := install != nil && install.Labels[v1alpha1.LabelRollout] == ro.Name
	isPlanFrozen := ro.Status.PlanHash != ""
	if isMember && (isPlanFrozen || install.Labels[v1alpha1.LabelWave] == a.Wave) {
		return nil
	}
	if install == nil {
		key := newInstallKey(ro, a.Cluster)
		return r.createInstall(ctx, &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: buildLabels(ro, a)},
			Spec:       v1alpha1.OperatorInstallSpec{Operator: newOperatorReference(ro), Cluster: a.Cluster},
		})
	}
	if err := r.applyInstall(ctx, ro, a, install, install.Spec.Admission); err != nil {
		return fmt.Errorf("assign %s to wave %s: %w", a.Cluster, a.Wave, err)
	}
	return nil
}

// buildLabels returns the labels of an OperatorInstall that is a member of the rollout.
func buildLabels(ro *v1alpha1.OperatorRollout, a rollouts.Action) map[string]string {
	labels := newOperatorReference(ro).Labels()
	labels[v1alpha1.LabelCluster], labels[v1alpha1.LabelRollout] = a.Cluster, ro.Name
	labels[v1alpha1.LabelWave] = a.Wave
	return labels
}

// applyInstall applies all fields that this controller owns in an install, including the
// admission. An apply removes owned fields that are left out.
func (r *Reconciler) applyInstall(ctx context.Context, ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall, admission *v1alpha1.Admission) error {
	part := kit.Part{Object: install, Labels: buildLabels(ro, a), Spec: v1alpha1.OperatorInstallSpec{
		Operator: newOperatorReference(ro), Cluster: a.Cluster, Admission: admission}}
	_, err := part.Apply(ctx, r.Client, kit.RolloutManager, client.ForceOwnership)
	return err
}

// createInstall creates an install. It does not use apply, because an apply would move an
// install that another hub has created meanwhile.
func (r *Reconciler) createInstall(ctx context.Context, install *v1alpha1.OperatorInstall) error {
	if err := r.Client.Create(ctx, install, kit.RolloutManager); err != nil {
		return fmt.Errorf("make the install of %s: %w", install.Spec.Cluster, err)
	}
	return nil
}

// admitCluster writes the admission of a cluster, unless the install already has an admission of
// this rollout for the same or a later attempt. It does nothing if the install is not in the
// action's wave, or if a later pass must decide first.
func (r *Reconciler) admitCluster(ctx context.Context, p *applyPass, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	ro := p.rollout
	if install == nil || install.Labels[v1alpha1.LabelRollout] != ro.Name ||
		install.Labels[v1alpha1.LabelWave] != a.Wave {
		return nil
	}
	if existing := install.Spec.Admission; existing != nil && existing.RolloutUID == string(ro.UID) &&
		existing.Attempt >= a.Attempt {
		return nil
	}
	observed := rollouts.ObserveInstall(install)
	if observed.Unreported || holds.IsRecovered(observed, ro.Spec.Resumed) {
		return nil // the next pass decides with the newer report of the agent
	}
	if busy, err := r.isBusy(ctx, p, a.Cluster); busy || err != nil {
		return err // the next pass holds the cluster back because of the other change
	}
	if !a.NotAfter.IsZero() && !r.Now().Before(a.NotAfter.Time) {
		return nil // the change window has closed; the next pass decides again
	}
	admission := newAdmission(ro, a, install)
	if err := r.applyInstall(ctx, ro, a, install, admission); err != nil {
		return fmt.Errorf("admit %s: %w", a.Cluster, err)
	}
	log.FromContext(ctx).Info("Cluster admitted", "cluster", a.Cluster, "wave", a.Wave, "version",
		admission.Release.VersionText())
	r.Admitted()
	return nil
}

// newAdmission returns the admission of a rollout for a cluster. It has the release to install, which is the
// previous release in a rollback, and it records the previous release.
func newAdmission(ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall) *v1alpha1.Admission {
	previous := rollouts.PreviousOf(ro, install)
	release := rollouts.ReleaseFor(ro, previous)
	admission := &v1alpha1.Admission{
		Rollout: ro.Name, RolloutUID: string(ro.UID), Revision: ro.Spec.Revision, Wave: a.Wave,
		AdmittedAt: a.AdmittedAt, Attempt: a.Attempt, Rollback: rollouts.AdmissionRollbackFor(ro),
		Release: release, Hash: release.Hash(),
	}
	admission.SetPrevious(previous)
	return admission
}
