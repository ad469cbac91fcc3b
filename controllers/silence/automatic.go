// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// applyAutomatic makes the hub's own AlertSilences, and deletes those that are not wanted
// any more. An object of the same name that a person made is left alone. Without an
// Alertmanager there are none.
func (r *Reconciler) applyAutomatic(ctx context.Context, in observation) error {
	var wanted []*v1alpha1.AlertSilence
	if r.Alertmanager != nil && !r.Options.WithoutAutomatic {
		wanted = silences.Automatic(in.fleet)
	}
	known := map[types.NamespacedName]*v1alpha1.AlertSilence{}
	for i := range in.Silences {
		known[client.ObjectKeyFromObject(&in.Silences[i])] = &in.Silences[i]
	}
	err := kit.ForEach(wanted, func(s *v1alpha1.AlertSilence) error {
		present := known[client.ObjectKeyFromObject(s)]
		if present != nil && (present.Labels[v1alpha1.LabelAutomaticSilence] == "" || isSame(present, s)) {
			return nil
		}
		part := kit.Part{Object: s, Labels: s.Labels, Spec: s.Spec}
		if _, err := part.Apply(ctx, r.Client, kit.SilenceManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply AlertSilence %s/%s: %w", s.Namespace, s.Name, err)
		}
		return nil
	})
	superfluous := silences.Superfluous(in.Silences, wanted)
	return errors.Join(err, kit.ForEach(superfluous, func(key types.NamespacedName) error {
		s := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, s)); err != nil {
			return fmt.Errorf("delete AlertSilence %s: %w", key, err)
		}
		return nil
	}))
}

func isSame(present, wanted *v1alpha1.AlertSilence) bool {
	return equality.Semantic.DeepEqual(present.Spec, wanted.Spec) &&
		present.Labels[v1alpha1.LabelAutomaticSilence] == wanted.Labels[v1alpha1.LabelAutomaticSilence]
}
