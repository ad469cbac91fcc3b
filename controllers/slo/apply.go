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
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/slo/plan"
)

// fileSuffix ends the keys of a ConfigMap that are rule files.
const fileSuffix = ".rules.yaml"

var labels = map[string]string{v1alpha1.LabelRules: "true", "app.kubernetes.io/managed-by": "bellwether"}

// apply applies a decision. writeErr is about the rules: all objects depend
// on those.
func (r *Reconciler) apply(ctx context.Context, in plan.Input, next plan.Decision) (writeErr, err error) {
	writeErr = r.write(ctx, in.Kind, next.Files)
	var errs []error
	for _, s := range next.Create {
		if err := r.Client.Create(ctx, s, kit.SLOManager); client.IgnoreAlreadyExists(err) != nil {
			errs = append(errs, fmt.Errorf("create OperatorSLO %s/%s: %w", s.Namespace, s.Name, err))
			continue
		}
		log.FromContext(ctx).Info("Operator got the default objectives", "namespace", s.Namespace, "operator",
			s.Spec.Operator)
	}
	for _, at := range next.Withdraw {
		errs = append(errs, r.withdraw(ctx, in, at))
	}
	return writeErr, errors.Join(append(errs, r.applyInstalls(ctx, next.Installs))...)
}

// withdraw deletes an object as it was seen: one that was edited since is a person's.
func (r *Reconciler) withdraw(ctx context.Context, in plan.Input, at types.NamespacedName) error {
	for i := range in.SLOs {
		s := &in.SLOs[i]
		if client.ObjectKeyFromObject(s) != at {
			continue
		}
		seen := client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}
		if err := r.Client.Delete(ctx, s.DeepCopy(), seen); client.IgnoreNotFound(err) != nil &&
			!apierrors.IsConflict(err) {
			return fmt.Errorf("withdraw OperatorSLO %s: %w", at, err)
		}
	}
	return nil
}

// write applies the rules as one kind of object, and removes what is not wanted
// any more: the same rules from two objects would alert twice. The new ones come first.
func (r *Reconciler) write(ctx context.Context, kind plan.Kind, files []plan.File) error {
	if kind == plan.KindConfigMap {
		return r.writeConfigMap(ctx, files)
	}
	for _, f := range files {
		if err := r.applyPrometheusRule(ctx, f); err != nil {
			return fmt.Errorf("apply PrometheusRule %s/%s: %w", r.Options.Namespace, f.Name, err)
		}
	}
	return errors.Join(r.deleteConfigMap(ctx), r.deletePrometheusRules(ctx, files))
}

func (r *Reconciler) writeConfigMap(ctx context.Context, files []plan.File) error {
	if len(files) == 0 {
		return r.deleteConfigMap(ctx)
	}
	data := map[string]string{}
	for _, f := range files {
		text, err := rules.File(f.Groups)
		if err != nil {
			return err
		}
		data[f.Name+fileSuffix] = string(text)
	}
	config := corev1ac.ConfigMap(plan.FileName, r.Options.Namespace).WithLabels(labels).WithData(data)
	if err := r.Client.Apply(ctx, config, kit.SLOManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s/%s: %w", r.Options.Namespace, plan.FileName, err)
	}
	return nil
}

func (r *Reconciler) deleteConfigMap(ctx context.Context) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Options.Namespace, Name: plan.FileName}}
	if err := r.Client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s/%s: %w", config.Namespace, config.Name, err)
	}
	return nil
}

// prometheusRules are those that the hub writes.
func (r *Reconciler) prometheusRules() kit.Optional {
	return kit.Optional{Kind: monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind),
		Manager: kit.SLOManager, Own: labels, Labels: r.Options.Labels}
}

func (r *Reconciler) applyPrometheusRule(ctx context.Context, f plan.File) error {
	return r.prometheusRules().Apply(ctx, r.Client, client.ObjectKey{Namespace: r.Options.Namespace, Name: f.Name},
		&monitoringv1.PrometheusRuleSpec{Groups: f.Groups})
}

// deletePrometheusRules removes ours that are not among the files.
func (r *Reconciler) deletePrometheusRules(ctx context.Context, files []plan.File) error {
	return r.prometheusRules().DeleteOthers(ctx, r.Client, r.Live, func(key client.ObjectKey) bool {
		return slices.ContainsFunc(files, func(f plan.File) bool { return f.Name == key.Name })
	}, client.InNamespace(r.Options.Namespace))
}

// applyInstalls writes what agents probe and monitor. If one OperatorInstall
// cannot be written, the others are written all the same.
func (r *Reconciler) applyInstalls(ctx context.Context, all []plan.InstallChange) error {
	err := kit.ForEach(all, func(change plan.InstallChange) error {
		return kit.ApplyInstall(ctx, r.Client, kit.SLOManager, change.Install, change)
	})
	if len(all) > 0 {
		log.FromContext(ctx).Info("Changed what agents probe and monitor", "installs", len(all))
	}
	return err
}
