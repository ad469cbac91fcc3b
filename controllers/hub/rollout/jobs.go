// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// jobsOnly is the part of an OperatorInstall's spec that JobManager owns.
type jobsOnly struct {
	Jobs []v1alpha1.RequestedJob `json:"jobs,omitempty"`
}

// requestJob writes a requested Job into the OperatorInstall. The agent of the cluster decides
// whether the Job runs. It does nothing if the install is not in the action's wave.
func (r *Reconciler) requestJob(ctx context.Context, ro *v1alpha1.OperatorRollout, a rollouts.Action,
	install *v1alpha1.OperatorInstall) error {
	if install == nil || install.Labels[v1alpha1.LabelRollout] != ro.Name ||
		install.Labels[v1alpha1.LabelWave] != a.Wave {
		return nil
	}
	jobs := rollouts.JobsFor(ro, a, install.Spec.Jobs, r.Now())
	if equality.Semantic.DeepEqual(jobs, install.Spec.Jobs) {
		return nil
	}
	part := kit.Part{Object: install, Spec: jobsOnly{Jobs: jobs}}
	if _, err := part.Apply(ctx, r.Client, kit.JobManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("ask %s to run Job %s: %w", a.Cluster, a.Job, err)
	}
	log.FromContext(ctx).Info("Job requested", "cluster", a.Cluster, "wave", a.Wave, "gate", a.Gate, "job", a.Job)
	return nil
}
