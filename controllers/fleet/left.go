// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/fleet/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// defaultNamespace is the chart's.
const defaultNamespace = "bellwether-system"

// record writes down what is left behind before the hub lets it go, where it
// outlives the FleetCluster: Events do not. It is written once: one that is there was
// made by an attempt before this one, for all that there was then.
func (r *Reconciler) record(ctx context.Context, cluster *v1alpha1.FleetCluster, left *plan.LeftBehind) error {
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(r.Namespace, defaultNamespace), Name: left.Name,
			Labels: map[string]string{v1alpha1.LabelLeftBehind: cluster.Name,
				v1alpha1.LabelClusterUID: string(cluster.UID), labelManagedBy: "bellwether"}},
		Immutable: ptr.To(true),
		Data: map[string]string{
			"cluster": cluster.Name, "why": left.Why, "recorded": r.Now().UTC().Format(time.RFC3339),
			"lastReport": left.LastReport, "operators": strings.Join(left.Operators, "\n"),
		},
	}
	switch err := r.Client.Create(ctx, record, kit.FleetManager); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("record what is left on the cluster: %w", err)
	}
	log.FromContext(ctx).Info("Operators are left on the cluster", "why", left.Why, "lastReport", left.LastReport,
		"operators", left.Operators, "record", record.Namespace+"/"+record.Name)
	kit.Emit(r.Events, cluster, "LeftBehind", "Reconcile",
		"Operators stay on the cluster, because %s. They are listed in ConfigMap %s/%s", left.Why, record.Namespace,
		record.Name)
	return nil
}
