// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	rules "github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/slo/ruleset"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// fileSuffix is the suffix of the ConfigMap's keys that are rule files.
const fileSuffix = ".rules.yaml"

var managedLabels = map[string]string{v1alpha1.LabelRules: "true", "app.kubernetes.io/managed-by": "bellwether"}

// apply executes a decision. writeErr is the error of writing the rules; it is separate because
// it affects the status of all OperatorSLOs. err joins all other errors.
func (r *Reconciler) apply(ctx context.Context, in ruleset.Input, next ruleset.Decision) (writeErr, err error) {
	writeErr = r.writeRules(ctx, in.Kind, next.Files)
	var errs []error
	for _, s := range next.Create {
		if err := r.Client.Create(ctx, s, kit.SLOManager); client.IgnoreAlreadyExists(err) != nil {
			errs = append(errs, fmt.Errorf("create OperatorSLO %s/%s: %w", s.Namespace, s.Name, err))
			continue
		}
		log.FromContext(ctx).Info("Operator got the default objectives", "namespace", s.Namespace, "operator",
			s.Spec.Operator)
	}
	for _, key := range next.Withdraw {
		errs = append(errs, r.withdrawSLO(ctx, in, key))
	}
	return writeErr, errors.Join(append(errs, r.applyInstalls(ctx, next.Installs))...)
}

// withdrawSLO deletes a default OperatorSLO. It does not delete an object that was edited since
// it was read, because a person edited it.
func (r *Reconciler) withdrawSLO(ctx context.Context, in ruleset.Input, key types.NamespacedName) error {
	for i := range in.SLOs {
		s := &in.SLOs[i]
		if client.ObjectKeyFromObject(s) != key {
			continue
		}
		preconditions := client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}
		if err := r.Client.Delete(ctx, s.DeepCopy(), preconditions); client.IgnoreNotFound(err) != nil &&
			!apierrors.IsConflict(err) {
			return fmt.Errorf("withdraw OperatorSLO %s: %w", key, err)
		}
	}
	return nil
}

// writeRules writes the rules as one kind of object, and then deletes outdated objects of both
// kinds. The same rules in two objects would alert twice.
func (r *Reconciler) writeRules(ctx context.Context, kind ruleset.Kind, files []ruleset.File) error {
	if kind == ruleset.KindConfigMap {
		return r.writeConfigMap(ctx, files)
	}
	for _, f := range files {
		if err := r.applyPrometheusRule(ctx, f); err != nil {
			return fmt.Errorf("apply PrometheusRule %s/%s: %w", r.Options.Namespace, f.Name, err)
		}
	}
	return errors.Join(r.deleteConfigMap(ctx), r.deletePrometheusRules(ctx, files))
}

// writeConfigMap writes all rule files into one ConfigMap. It deletes the
// ConfigMap if there are no files.
func (r *Reconciler) writeConfigMap(ctx context.Context, files []ruleset.File) error {
	if len(files) == 0 {
		return r.deleteConfigMap(ctx)
	}
	data := map[string]string{}
	for _, f := range files {
		text, err := rules.RuleFile(f.Groups)
		if err != nil {
			return err
		}
		data[f.Name+fileSuffix] = string(text)
	}
	config := corev1ac.ConfigMap(ruleset.FileName, r.Options.Namespace).WithLabels(managedLabels).WithData(data)
	if err := r.Client.Apply(ctx, config, kit.SLOManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s/%s: %w", r.Options.Namespace, ruleset.FileName, err)
	}
	return nil
}

// deleteConfigMap deletes the ConfigMap with the rule files. A missing
// ConfigMap is not an error.
func (r *Reconciler) deleteConfigMap(ctx context.Context) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Options.Namespace, Name: ruleset.FileName}}
	if err := r.Client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s/%s: %w", config.Namespace, config.Name, err)
	}
	return nil
}

// newRuleWriter returns the writer of this hub's PrometheusRules.
func (r *Reconciler) newRuleWriter() kit.OptionalKind {
	return kit.OptionalKind{Kind: monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind),
		Manager: kit.SLOManager, Own: managedLabels, Labels: r.Options.Labels}
}

// applyPrometheusRule writes one rule file as a PrometheusRule.
func (r *Reconciler) applyPrometheusRule(ctx context.Context, f ruleset.File) error {
	return r.newRuleWriter().Apply(ctx, r.Client, client.ObjectKey{Namespace: r.Options.Namespace, Name: f.Name},
		&monitoringv1.PrometheusRuleSpec{Groups: f.Groups})
}

// deletePrometheusRules deletes the hub's PrometheusRules that are not among the files.
func (r *Reconciler) deletePrometheusRules(ctx context.Context, files []ruleset.File) error {
	return r.newRuleWriter().DeleteOthers(ctx, r.Client, r.Live, func(key client.ObjectKey) bool {
		return slices.ContainsFunc(files, func(f ruleset.File) bool { return f.Name == key.Name })
	}, client.InNamespace(r.Options.Namespace))
}

// applyInstalls records in OperatorInstalls what their agents must probe and monitor. A failed
// write does not stop the other writes.
func (r *Reconciler) applyInstalls(ctx context.Context, all []ruleset.InstallChange) error {
	err := kit.ForEach(all, func(change ruleset.InstallChange) error {
		return kit.ApplyInstall(ctx, r.Client, kit.SLOManager, change.Install, change)
	})
	if len(all) > 0 {
		log.FromContext(ctx).Info("Changed what agents probe and monitor", "installs", len(all))
	}
	return err
}
