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

// writers is how many OperatorInstalls are written at a time, by all rollouts together. More do not make an API server
// faster, and the hub's own Lease waits behind them.
const writers = 48

// room bounds the writers of all rollouts together. Its zero value is ready for use.
type room struct {
	made sync.Once
	of   *semaphore.Weighted
}

// enter waits for a place, or for the end of the context.
func (r *room) enter(ctx context.Context) error {
	r.made.Do(func() { r.of = semaphore.NewWeighted(writers) })
	return r.of.Acquire(ctx, 1)
}

func (r *room) leave() { r.of.Release(1) }

// apply carries the actions out. A cluster that cannot be written does not
// hold up the others, and is held back from the next pass on; a rollout that was changed
// since it was read holds up all.
func (r *Reconciler) apply(ctx context.Context, in rollouts.Input, actions []rollouts.Action) error {
	if len(actions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rollouts.AdmissionTimeout)
	defer cancel()
	p, err := r.admitting(ctx, in, actions)
	if err != nil {
		return err
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	group.SetLimit(writers)
	for _, a := range actions {
		group.Go(func() error {
			err := r.writing.enter(ctx)
			if err == nil {
				err = r.act(ctx, p, a)
				r.writing.leave()
			}
			r.refusals.note(p.rollout.UID, a.Cluster, err, r.Now())
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
	return foremost(errs)
}

// foremost is the conflict, if there is one: it explains the others. Of equal
// ones it is the first by text, so that a status that quotes it is stable.
func foremost(errs []error) error {
	var first error
	for _, err := range errs {
		if outdated(err) {
			return err
		}
		if first == nil || err.Error() < first.Error() {
			first = err
		}
	}
	if len(errs) > 1 {
		return fmt.Errorf("%d clusters could not be written, one of them: %w", len(errs), first)
	}
	return first
}

// admitting is what the actions of one pass have in common.
type admitting struct {
	rollout  *v1alpha1.OperatorRollout
	fence    *fence
	clusters map[string]rollouts.Cluster
	// others are all rollouts, where a cluster is to be admitted.
	others []v1alpha1.OperatorRollout
	// busy tells of clusters' names whether other operators change them, where that was
	// looked up.
	busy sync.Map
}

func (r *Reconciler) admitting(ctx context.Context, in rollouts.Input, actions []rollouts.Action) (*admitting, error) {
	p := &admitting{rollout: in.Rollout,
		fence: &fence{read: func() error { return r.unchanged(ctx, in.Rollout) }}}
	if r.MaxChanges <= 0 || !slices.ContainsFunc(actions, func(a rollouts.Action) bool {
		return a.Kind == rollouts.ActionAdmit
	}) {
		return p, nil
	}
	p.clusters = byName(in.Clusters)
	var err error
	p.others, err = r.others(ctx)
	return p, err
}

func outdated(err error) bool { return apierrors.IsConflict(err) }

func (r *Reconciler) act(ctx context.Context, p *admitting, a rollouts.Action) error {
	ro := p.rollout
	if err := p.fence.pass(); err != nil {
		return err
	}
	// A write names what was read by its resource version, or that there is nothing, so the cache does until the API
	// server objects.
	install, err := readInstall(ctx, r.Client, ro, a.Cluster)
	isMember := install != nil && install.Labels[v1alpha1.LabelRollout] == ro.Name
	if err == nil && (isMember || a.Kind == rollouts.ActionAssign) {
		if err = r.actOn(ctx, p, a, install); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if install, err = readInstall(ctx, r.Live, ro, a.Cluster); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.actOn(ctx, p, a, install)) // the next pass sees what another hub made
}

// readInstall returns the OperatorInstall of a rollout's operator on a cluster; nil if
// there is none.
func readInstall(ctx context.Context, from client.Reader, ro *v1alpha1.OperatorRollout, cluster string) (
	*v1alpha1.OperatorInstall, error) {
	var install v1alpha1.OperatorInstall
	switch err := from.Get(ctx, keyOf(ro, cluster), &install); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read install of %s: %w", cluster, err)
	}
	return &install, nil
}

func keyOf(ro *v1alpha1.OperatorRollout, cluster string) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: reference(ro).InstallName()}
}

func (r *Reconciler) actOn(ctx context.Context, p *admitting, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	ro := p.rollout
	if install != nil && (install.DeletionTimestamp != nil || install.Spec.Admission != nil &&
		install.Spec.Admission.Revision > ro.Spec.Revision) {
		return nil
	}
	switch a.Kind {
	case rollouts.ActionAssign:
		return r.assign(ctx, ro, a, install)
	case rollouts.ActionRunJob:
		return r.requestJob(ctx, ro, a, install)
	default:
		return r.admit(ctx, p, a, install)
	}
}

// assign writes the membership. Once the plan is frozen, a member is never
// moved.
func (r *Reconciler) assign(ctx context.Context, ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	isMember := install != nil && install.Labels[v1alpha1.LabelRollout] == ro.Name
	if isMember && (ro.Status.PlanHash != "" || install.Labels[v1alpha1.LabelWave] == a.Wave) {
		return nil
	}
	if install == nil {
		key := keyOf(ro, a.Cluster)
		return r.create(ctx, &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labelsOf(ro, a)},
			Spec:       v1alpha1.OperatorInstallSpec{Operator: reference(ro), Cluster: a.Cluster},
		})
	}
	if err := r.write(ctx, ro, a, install, install.Spec.Admission); err != nil {
		return fmt.Errorf("assign %s to wave %s: %w", a.Cluster, a.Wave, err)
	}
	return nil
}

func labelsOf(ro *v1alpha1.OperatorRollout, a rollouts.Action) map[string]string {
	labels := reference(ro).Labels()
	labels[v1alpha1.LabelCluster], labels[v1alpha1.LabelRollout] = a.Cluster, ro.Name
	labels[v1alpha1.LabelWave] = a.Wave
	return labels
}

// write applies everything that this controller owns of an install, as it was read:
// what an apply leaves out would be removed.
func (r *Reconciler) write(ctx context.Context, ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall, admission *v1alpha1.Admission) error {
	part := kit.Part{Object: install, Labels: labelsOf(ro, a), Spec: v1alpha1.OperatorInstallSpec{
		Operator: reference(ro), Cluster: a.Cluster, Admission: admission}}
	_, err := part.Apply(ctx, r.Client, kit.RolloutManager, client.ForceOwnership)
	return err
}

// create is no apply, which would move an install that another hub made since
// this one looked.
func (r *Reconciler) create(ctx context.Context, install *v1alpha1.OperatorInstall) error {
	if err := r.Client.Create(ctx, install, kit.RolloutManager); err != nil {
		return fmt.Errorf("make the install of %s: %w", install.Spec.Cluster, err)
	}
	return nil
}

// admit writes the stamp, unless this rollout's stamp of the same attempt is there
// already.
func (r *Reconciler) admit(ctx context.Context, p *admitting, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	ro := p.rollout
	if install == nil || install.Labels[v1alpha1.LabelRollout] != ro.Name ||
		install.Labels[v1alpha1.LabelWave] != a.Wave {
		return nil
	}
	if stamp := install.Spec.Admission; stamp != nil && stamp.RolloutUID == string(ro.UID) &&
		stamp.Attempt >= a.Attempt {
		return nil
	}
	if seen := rollouts.ObserveInstall(install); seen.Unreported || holds.IsRecovered(seen, ro.Spec.Resumed) {
		return nil // the next pass sees what the agent has reported meanwhile
	}
	if busy, err := r.isBusy(ctx, p, a.Cluster); busy || err != nil {
		return err // the next pass sees the other change
	}
	if !a.NotAfter.IsZero() && !r.Now().Before(a.NotAfter.Time) {
		return nil // the next pass sees that the window has closed
	}
	admission := admissionFor(ro, a, install)
	if err := r.write(ctx, ro, a, install, admission); err != nil {
		return fmt.Errorf("admit %s: %w", a.Cluster, err)
	}
	log.FromContext(ctx).Info("Cluster admitted", "cluster", a.Cluster, "wave", a.Wave, "version",
		admission.Release.VersionText())
	r.Admitted()
	return nil
}

// admissionFor returns the stamp of a rollout for a cluster.
func admissionFor(ro *v1alpha1.OperatorRollout, a rollouts.Action,
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
