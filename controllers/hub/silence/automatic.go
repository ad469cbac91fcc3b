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

// applyAutomatic creates and updates the hub's own AlertSilences, and deletes its AlertSilences
// that are not wanted. It does not change an object of the same name that a person created.
// Without an Alertmanager, no automatic silences are wanted.
func (r *Reconciler) applyAutomatic(ctx context.Context, in observation) error {
	var wanted []*v1alpha1.AlertSilence
	if r.Alertmanager != nil && !r.Options.WithoutAutomatic {
		wanted = silences.BuildAutomatic(in.fleet)
	}
	silencesByKey := map[types.NamespacedName]*v1alpha1.AlertSilence{}
	for i := range in.Silences {
		silencesByKey[client.ObjectKeyFromObject(&in.Silences[i])] = &in.Silences[i]
	}
	err := kit.ForEach(wanted, func(s *v1alpha1.AlertSilence) error {
		present := silencesByKey[client.ObjectKeyFromObject(s)]
		isByPerson := present != nil && present.Labels[v1alpha1.LabelAutomaticSilence] == ""
		isCurrent := present != nil && hasSameSpec(present, s)
		if isByPerson || isCurrent {
			return nil
		}
		part := kit.Part{Object: s, Labels: s.Labels, Spec: s.Spec}
		if _, err := part.Apply(ctx, r.Client, kit.SilenceManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply AlertSilence %s/%s: %w", s.Namespace, s.Name, err)
		}
		return nil
	})
	superfluous := silences.ListSuperfluous(in.Silences, wanted)
	return errors.Join(err, kit.ForEach(superfluous, func(key types.NamespacedName) error {
		s := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, s)); err != nil {
			return fmt.Errorf("delete AlertSilence %s: %w", key, err)
		}
		return nil
	}))
}

// hasSameSpec reports whether both silences have the same spec and the same
// label for automatic silences.
func hasSameSpec(present, wanted *v1alpha1.AlertSilence) bool {
	return equality.Semantic.DeepEqual(present.Spec, wanted.Spec) &&
		present.Labels[v1alpha1.LabelAutomaticSilence] == wanted.Labels[v1alpha1.LabelAutomaticSilence]
}
