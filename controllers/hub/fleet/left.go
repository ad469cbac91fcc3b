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
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/fleet"
)

// defaultNamespace is the namespace of the chart.
const defaultNamespace = "bellwether-system"

// recordLeftBehind writes the list of operators that stay on a cluster into a ConfigMap,
// before the hub releases the cluster. A ConfigMap outlives the FleetCluster, unlike
// Events. If the ConfigMap exists, an earlier attempt wrote it with the list at that
// time, so it is not changed.
func (r *Reconciler) recordLeftBehind(ctx context.Context, cluster *v1alpha1.FleetCluster,
	leftBehind *fleet.LeftBehind) error {
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(r.Namespace, defaultNamespace), Name: leftBehind.Name,
			Labels: map[string]string{v1alpha1.LabelLeftBehind: cluster.Name,
				v1alpha1.LabelClusterUID: string(cluster.UID), labelManagedBy: "bellwether"}},
		Immutable: ptr.To(true),
		Data: map[string]string{
			"cluster": cluster.Name, "why": leftBehind.Why, "recorded": r.Now().UTC().Format(time.RFC3339),
			"lastReport": leftBehind.LastReport, "operators": strings.Join(leftBehind.Operators, "\n"),
		},
	}
	switch err := r.Client.Create(ctx, record, kit.FleetManager); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("record the operators that stay on the cluster: %w", err)
	}
	log.FromContext(ctx).Info("Operators are left on the cluster", "why", leftBehind.Why,
		"lastReport", leftBehind.LastReport, "operators", leftBehind.Operators,
		"record", record.Namespace+"/"+record.Name)
	kit.Emit(r.Events, cluster, "LeftBehind", "Reconcile",
		"Operators stay on the cluster, because %s. They are listed in ConfigMap %s/%s", leftBehind.Why,
		record.Namespace, record.Name)
	return nil
}
