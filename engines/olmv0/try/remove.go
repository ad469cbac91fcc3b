// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelOwnerNamespace is on what OLM makes for a ClusterServiceVersion outside of its
// namespace, with that namespace.
const labelOwnerNamespace = "olm.owner.namespace"

// generated are the kinds of objects that OLM makes for a ClusterServiceVersion or an
// OperatorGroup outside of its namespace. All are in no namespace, but for RoleBindings
// in kube-system.
var generated = []schema.GroupVersionKind{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// Remove removes what a trial left in and around a namespace: one that was kept, or one
// whose process was killed. It uses Config, Timeout, Progress and Now of the options. It
// returns remarks. The error wraps ErrNotTried where Run did not make the namespace.
func Remove(ctx context.Context, o Options, namespace string) ([]string, error) {
	t, err := newTrial(o)
	if err != nil {
		return nil, err
	}
	var n corev1.Namespace
	if err := t.Get(ctx, client.ObjectKey{Name: namespace}, &n); err != nil {
		return nil, fmt.Errorf("get namespace: %w", err)
	}
	if n.Labels[LabelTry] == "" {
		return nil, fmt.Errorf("%w: %s has no label %s", ErrNotTried, namespace, LabelTry)
	}
	if err := json.Unmarshal([]byte(n.Annotations[annotationMade]), &t.made); err != nil {
		return nil, fmt.Errorf("%w: read annotation %s of %s: %w", ErrNotTried, annotationMade, namespace, err)
	}
	t.namespace = namespace
	return t.remove(ctx)
}

// remove removes all that the trial made: custom resources while the operator still
// runs, then the operator, then its definitions. It goes on after an error. It returns
// what the operator did not do.
func (t *trial) remove(ctx context.Context) ([]string, error) {
	var notes []string
	var problems []error
	do := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: t.named()}
	do(client.IgnoreNotFound(t.Delete(ctx, subscription)))
	keep := map[string]bool{}
	for _, o := range t.definitions() {
		stuck, foreign, err := t.removeInstances(ctx, o.Name)
		do(err)
		if foreign != "" {
			keep[o.Name] = true
			do(fmt.Errorf("CustomResourceDefinition %s stays: %s is in another namespace, and would be deleted with it",
				o.Name, foreign))
		}
		notes = append(notes, stuck...)
	}
	stuck, err := t.removeExamples(ctx)
	notes = append(notes, stuck...)
	do(err)
	do(t.removeCSVs(ctx))
	// OLM makes the roles of an OperatorGroup again as long as there is the group.
	group := operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	do(t.removeObject(ctx, group, t.namespace, objectName))
	for _, gvk := range generated {
		do(t.removeGenerated(ctx, gvk))
	}
	for _, o := range t.made.Objects {
		if !keep[o.Name] || !o.isCRD() {
			do(t.removeObject(ctx, o.gvk(), "", o.Name))
		}
	}
	namespace := corev1.SchemeGroupVersion.WithKind("Namespace")
	do(t.removeObject(ctx, namespace, "", t.namespace))
	do(t.removeOperators(ctx))
	if err := errors.Join(problems...); err != nil {
		return notes, fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return notes, nil
}

func (t *trial) definitions() []object {
	return slices.DeleteFunc(slices.Clone(t.made.Objects), func(o object) bool { return !o.isCRD() })
}

// removeInstances deletes the custom resources of a definition that the trial brought,
// and waits until the operator has finished them. One in a namespace of somebody else is
// foreign, and then none are deleted but those of the trial.
func (t *trial) removeInstances(ctx context.Context, definition string) (stuck []string, foreign string, err error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := t.Get(ctx, client.ObjectKey{Name: definition}, &d); err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	gvk := servedKind(&d)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = t.List(ctx, list)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) { // it may not be established
		return nil, "", fmt.Errorf("list %s: %w", definition, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if o.GetNamespace() != "" && o.GetNamespace() != t.namespace {
			foreign = o.GetNamespace() + "/" + o.GetName()
			continue
		}
		note, err := t.removeInstance(ctx, o)
		if err != nil {
			return stuck, foreign, err
		}
		if note != "" {
			stuck = append(stuck, note)
		}
	}
	return stuck, foreign, nil
}

// servedKind is the kind of a definition, in a version that is served.
func servedKind(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
	for _, v := range d.Spec.Versions {
		if v.Served {
			gvk.Version = v.Name
		}
	}
	return gvk
}

// removeExamples removes those whose definition was there before.
func (t *trial) removeExamples(ctx context.Context) ([]string, error) {
	var notes []string
	var problems []error
	for _, e := range t.made.Examples {
		note, err := t.removeInstance(ctx, e.object())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			problems = append(problems, err)
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes, errors.Join(problems...)
}

// removeInstance deletes a custom resource. Finalizers that nobody removes are removed
// after a while, and that is a finding about the operator.
func (t *trial) removeInstance(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	what := fmt.Sprintf("%s %s", o.GetKind(), o.GetName())
	if err := t.Delete(ctx, o); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("delete %s: %w", what, err)
	}
	gone, err := t.awaitGone(ctx, o, min(t.Timeout, finalizerLimit))
	if err != nil || gone {
		return "", err
	}
	finalizers := o.GetFinalizers()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := t.Patch(ctx, o, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("remove finalizers of %s: %w", what, err)
	}
	if gone, err = t.awaitGone(ctx, o, t.Timeout); err != nil || !gone {
		return "", errors.Join(fmt.Errorf("%s is still there", what), err)
	}
	return fmt.Sprintf("the operator did not finish the deleted %s within %s: the trial removed its finalizers (%s)",
		what, min(t.Timeout, finalizerLimit), strings.Join(finalizers, ", ")), nil
}

// awaitGone waits until an object is gone.
func (t *trial) awaitGone(ctx context.Context, o client.Object, limit time.Duration) (bool, error) {
	err := t.poll(ctx, limit, func(ctx context.Context) (bool, error) {
		err := t.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return true, nil
		}
		return false, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

func (t *trial) removeCSVs(ctx context.Context) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := t.List(ctx, &list, client.InNamespace(t.namespace)); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	gvk := operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind)
	var problems []error
	for _, csv := range list.Items {
		if !csv.IsCopied() {
			problems = append(problems, t.removeObject(ctx, gvk, csv.Namespace, csv.Name))
		}
	}
	return errors.Join(problems...)
}

// removeGenerated deletes what OLM left of one kind. OLM deletes most of it itself.
func (t *trial) removeGenerated(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	of := []client.ListOption{client.MatchingLabels{labelOwnerNamespace: t.namespace}}
	if gvk.Kind == "RoleBinding" {
		of = append(of, client.InNamespace(metav1.NamespaceSystem))
	}
	if err := t.List(ctx, list, of...); err != nil {
		return fmt.Errorf("list what OLM made of kind %s: %w", gvk.Kind, err)
	}
	var problems []error
	for _, o := range list.Items {
		problems = append(problems, t.removeObject(ctx, gvk, o.Namespace, o.Name))
	}
	return errors.Join(problems...)
}

// removeOperators deletes the summaries that OLM keeps of an operator under the name
// PACKAGE.NAMESPACE. OLM makes them again as long as there is a part of the operator.
func (t *trial) removeOperators(ctx context.Context) error {
	var list operatorsv1.OperatorList
	if err := t.List(ctx, &list); err != nil {
		return fmt.Errorf("list Operators: %w", err)
	}
	var problems []error
	for _, o := range list.Items {
		if strings.HasSuffix(o.Name, "."+t.namespace) {
			problems = append(problems, t.unlabel(ctx, &o),
				t.removeObject(ctx, operatorsv1.GroupVersion.WithKind("Operator"), "", o.Name))
		}
	}
	return errors.Join(problems...)
}

// unlabel removes the label by which definitions that stay are parts of the operator.
func (t *trial) unlabel(ctx context.Context, o *operatorsv1.Operator) error {
	if o.Status.Components == nil || o.Status.Components.LabelSelector == nil {
		return nil
	}
	for _, e := range o.Status.Components.LabelSelector.MatchExpressions {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := t.List(ctx, list, client.HasLabels{e.Key}); err != nil {
			return fmt.Errorf("list CustomResourceDefinitions of %s: %w", o.Name, err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{e.Key: nil}}})
		if err != nil {
			return fmt.Errorf("encode patch: %w", err)
		}
		for i := range list.Items {
			d := &list.Items[i]
			if err := t.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
				return fmt.Errorf("remove label %s of %s: %w", e.Key, d.Name, err)
			}
		}
	}
	return nil
}

// removeObject deletes an object and waits until it is gone.
func (t *trial) removeObject(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	err := t.Delete(ctx, o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", gvk.Kind, name, err)
	}
	gone, err := t.awaitGone(ctx, o, t.Timeout)
	if err == nil && !gone {
		err = fmt.Errorf("%s %s is still there after %s", gvk.Kind, name, t.Timeout)
	}
	return err
}
