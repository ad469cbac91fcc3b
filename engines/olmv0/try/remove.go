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

// labelOwnerNamespace is the label with the namespace of the ClusterServiceVersion on the objects that OLM makes for
// it outside that namespace.
const labelOwnerNamespace = "olm.owner.namespace"

// generatedKinds are the kinds of objects that OLM makes for a ClusterServiceVersion or an OperatorGroup outside its
// namespace. All objects are cluster-scoped, except for RoleBindings in kube-system.
var generatedKinds = []schema.GroupVersionKind{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// Remove removes everything that a trial left in and around a namespace, for instance because the trial was kept or
// its process was killed. It uses Config, Timeout, Progress and Now of the options. It returns remarks. The error
// wraps ErrNotTried if Run did not create the namespace.
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
	if err := json.Unmarshal([]byte(n.Annotations[annotationRecord]), &t.record); err != nil {
		return nil, fmt.Errorf("%w: read annotation %s of %s: %w", ErrNotTried, annotationRecord, namespace, err)
	}
	t.namespace = namespace
	return t.removeAll(ctx)
}

// removeAll removes everything that the trial created: custom resources while the operator still runs, then the
// operator, then its definitions. It keeps a definition that has custom resources in other namespaces. It continues
// after an error; the error wraps ErrNotRemoved. It returns remarks about custom resources that the operator did not
// finish.
func (t *trial) removeAll(ctx context.Context) ([]string, error) {
	var notes []string
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: t.newObjectMeta()}
	add(client.IgnoreNotFound(t.Delete(ctx, subscription)))
	isKept := map[string]bool{}
	for _, o := range t.listDefinitions() {
		stuck, foreign, err := t.removeInstances(ctx, o.Name)
		add(err)
		if foreign != "" {
			isKept[o.Name] = true
			add(fmt.Errorf("CustomResourceDefinition %s stays: %s is in another namespace, and would be deleted with "+
				"it", o.Name, foreign))
		}
		notes = append(notes, stuck...)
	}
	stuck, err := t.removeExamples(ctx)
	notes = append(notes, stuck...)
	add(err)
	add(t.removeCSVs(ctx))
	// OLM creates the roles of an OperatorGroup again while the group exists. What it made goes before the definitions
	// and the namespace: webhooks and APIServices without a server would block their deletion.
	group := operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	add(t.removeObject(ctx, group, t.namespace, objectName))
	_, err = t.removeGenerated(ctx)
	add(err)
	for _, o := range t.record.Objects {
		if !isKept[o.Name] || !o.isCRD() {
			add(t.removeObject(ctx, o.toGVK(), "", o.Name))
		}
	}
	namespace := corev1.SchemeGroupVersion.WithKind("Namespace")
	add(t.removeObject(ctx, namespace, "", t.namespace))
	add(t.removeRegenerated(ctx))
	add(t.removeOperators(ctx))
	if err := errors.Join(problems...); err != nil {
		return notes, fmt.Errorf("%w: %w", ErrNotRemoved, err)
	}
	return notes, nil
}

// listDefinitions returns the CustomResourceDefinitions that the trial created.
func (t *trial) listDefinitions() []object {
	return slices.DeleteFunc(slices.Clone(t.record.Objects), func(o object) bool { return !o.isCRD() })
}

// removeInstances deletes the custom resources of a definition in the namespace of the trial and at the cluster scope,
// and waits until the operator has finished them. stuck has the remarks of removeInstance. It does not delete custom
// resources in other namespaces; foreign names one of them, and is empty if there are none.
func (t *trial) removeInstances(ctx context.Context, definition string) (stuck []string, foreign string, err error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := t.Get(ctx, client.ObjectKey{Name: definition}, &d); err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	gvk := findServedKind(&d)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = t.List(ctx, list)
	// A definition that has just been created might not be served yet.
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
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

// findServedKind returns the kind of a definition in a served version; without a version if no version is served.
func findServedKind(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
	for _, v := range d.Spec.Versions {
		if v.Served {
			gvk.Version = v.Name
		}
	}
	return gvk
}

// removeExamples removes the recorded examples, and returns the remarks of removeInstance. It continues after an error.
func (t *trial) removeExamples(ctx context.Context) ([]string, error) {
	var notes []string
	var problems []error
	for _, e := range t.record.Examples {
		note, err := t.removeInstance(ctx, e.toObject())
		if meta.IsNoMatchError(err) {
			continue // the kind was removed, and its objects with it
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

// removeInstance deletes a custom resource. If its finalizers are not removed within finalizerLimit, it removes them
// and returns a remark about the operator.
func (t *trial) removeInstance(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	name := fmt.Sprintf("%s %s", o.GetKind(), o.GetName())
	if err := t.Delete(ctx, o); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("delete %s: %w", name, err)
	}
	isDeleted, err := t.awaitDeletion(ctx, o, min(t.Timeout, finalizerLimit))
	if err != nil || isDeleted {
		return "", err
	}
	finalizers := o.GetFinalizers()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := t.Patch(ctx, o, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("remove finalizers of %s: %w", name, err)
	}
	if isDeleted, err = t.awaitDeletion(ctx, o, t.Timeout); err != nil || !isDeleted {
		return "", errors.Join(fmt.Errorf("%s is still there", name), err)
	}
	return fmt.Sprintf("the operator did not finish the deleted %s within %s: the trial removed its finalizers (%s)",
		name, min(t.Timeout, finalizerLimit), strings.Join(finalizers, ", ")), nil
}

// awaitDeletion waits until an object does not exist, and reads its last state into o; false if it still exists after
// the limit.
func (t *trial) awaitDeletion(ctx context.Context, o client.Object, limit time.Duration) (bool, error) {
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

// removeCSVs deletes the ClusterServiceVersions of the namespace.
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

// removeGenerated deletes the remaining objects that OLM made outside the namespace, and returns how many there were.
// OLM itself deletes most of them.
func (t *trial) removeGenerated(ctx context.Context) (int, error) {
	found := 0
	var problems []error
	for _, gvk := range generatedKinds {
		n, err := t.removeGeneratedOf(ctx, gvk)
		found += n
		problems = append(problems, err)
	}
	return found, errors.Join(problems...)
}

// removeRegenerated deletes what OLM makes outside the namespace although the OperatorGroup and the namespace are
// deleted: a reconcile of OLM that began before the deletion creates it again. It ends when OLM has made nothing for
// settleTime.
func (t *trial) removeRegenerated(ctx context.Context) error {
	since := t.Now()
	return t.poll(ctx, t.Timeout+settleTime, func(ctx context.Context) (bool, error) {
		found, err := t.removeGenerated(ctx)
		if found > 0 {
			since = t.Now()
		}
		return t.Now().Sub(since) >= settleTime, err
	})
}

// removeGeneratedOf deletes the objects of one kind for removeGenerated.
func (t *trial) removeGeneratedOf(ctx context.Context, gvk schema.GroupVersionKind) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	options := []client.ListOption{client.MatchingLabels{labelOwnerNamespace: t.namespace}}
	if gvk.Kind == "RoleBinding" {
		options = append(options, client.InNamespace(metav1.NamespaceSystem))
	}
	if err := t.List(ctx, list, options...); err != nil {
		return 0, fmt.Errorf("list what OLM made of kind %s: %w", gvk.Kind, err)
	}
	var problems []error
	for _, o := range list.Items {
		problems = append(problems, t.removeObject(ctx, gvk, o.Namespace, o.Name))
	}
	return len(list.Items), errors.Join(problems...)
}

// removeOperators deletes OLM's Operator objects of the trial, which are named PACKAGE.NAMESPACE. It must run last,
// because OLM creates them again while a part of the operator exists in its cache.
func (t *trial) removeOperators(ctx context.Context) error {
	var list operatorsv1.OperatorList
	if err := t.List(ctx, &list); err != nil {
		return fmt.Errorf("list Operators: %w", err)
	}
	var problems []error
	for _, o := range list.Items {
		if strings.HasSuffix(o.Name, "."+t.namespace) {
			problems = append(problems, t.removeComponentLabels(ctx, &o), t.awaitNoComponents(ctx, &o),
				t.removeObject(ctx, operatorsv1.GroupVersion.WithKind("Operator"), "", o.Name))
		}
	}
	return errors.Join(problems...)
}

// removeComponentLabels removes the labels of the remaining CustomResourceDefinitions as parts of the operator.
// Otherwise OLM would create the Operator object again.
func (t *trial) removeComponentLabels(ctx context.Context, o *operatorsv1.Operator) error {
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

// awaitNoComponents waits until OLM reports that no component of the operator remains, or until componentsLimit, which
// happens only if OLM is not running.
func (t *trial) awaitNoComponents(ctx context.Context, o *operatorsv1.Operator) error {
	err := t.poll(ctx, min(t.Timeout, componentsLimit), func(ctx context.Context) (bool, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		return o.Status.Components == nil || len(o.Status.Components.Refs) == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// removeObject deletes an object and waits until it does not exist.
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
	isDeleted, err := t.awaitDeletion(ctx, o, t.Timeout)
	if err == nil && !isDeleted {
		err = fmt.Errorf("%s %s is still there after %s", gvk.Kind, name, t.Timeout)
	}
	return err
}
