// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// webhookLimit is how long the creation of an example is tried while the API server cannot reach a webhook of
// the operator.
const webhookLimit = 30 * time.Second

// createExamples creates the examples of a bundle that do not exist yet. An example that the API server refuses is a
// problem of the bundle; the trial continues.
func (t *trial) createExamples(ctx context.Context, r Release) (string, error) {
	all, err := readExamples(r.Bundle)
	if err != nil {
		return "", err
	}
	var created, refused []Example
	for _, o := range all {
		e := newExample(o, r.Bundle.Name)
		if t.hasExample(e) {
			continue
		}
		if e, err = t.createExample(ctx, o, e); err != nil {
			return "", err
		}
		t.report.Examples = append(t.report.Examples, e)
		if e.State == Refused {
			refused = append(refused, e)
			t.report.Problems = append(t.report.Problems,
				fmt.Sprintf("example %s of %s is refused: %s", e, r.Bundle.Name, e.Message))
			continue
		}
		created = append(created, e)
	}
	switch {
	case len(all) == 0:
		return r.Bundle.Name + " has no examples (annotation alm-examples)", nil
	case len(refused) > 0:
		return fmt.Sprintf("the API server refused %s", joinNames(refused)), nil
	case len(created) == 0:
		return "every example is there already", nil
	}
	return "created " + joinNames(created), nil
}

// newExample returns the Example of an object.
func newExample(o *unstructured.Unstructured, bundle string) Example {
	return Example{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), Of: bundle}
}

// hasExample reports whether the trial has already created an example with this kind and name, from another version of
// the bundle.
func (t *trial) hasExample(e Example) bool {
	return slices.ContainsFunc(t.report.Examples, func(have Example) bool {
		return have.Kind == e.Kind && have.Name == e.Name && have.group() == e.group() && have.State != Refused
	})
}

// group returns the API group of the example.
func (e Example) group() string { return e.toGVK().Group }

// toGVK returns the kind of the example.
func (e Example) toGVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// toObject returns an object with the kind and name of the example.
func (e Example) toObject() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.toGVK())
	o.SetName(e.Name)
	o.SetNamespace(e.Namespace)
	return o
}

// createExample creates an example, in the namespace of the trial if its kind is namespaced, and returns the example
// with its namespace. An example that the API server does not accept has the state Refused. It returns an error if
// the trial itself must not create the example, because this is not a problem of the bundle.
func (t *trial) createExample(ctx context.Context, o *unstructured.Unstructured, e Example) (Example, error) {
	mapping, err := t.RESTMapper().RESTMapping(e.toGVK().GroupKind(), e.toGVK().Version)
	if meta.IsNoMatchError(err) {
		e.State, e.Message = Refused, "the cluster does not serve "+e.APIVersion+" "+e.Kind
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("find out about kind %s: %w", e.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		e.Namespace = t.namespace
	}
	o.SetNamespace(e.Namespace)
	unsetServerFields(o)
	if err := t.recordCreated(ctx, nil, []Example{e}); err != nil {
		return e, err
	}
	var lastErr error
	err = t.poll(ctx, min(t.Timeout, webhookLimit), func(ctx context.Context) (bool, error) {
		err := t.Create(ctx, o.DeepCopy(), fieldOwner, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil || ctx.Err() == nil || lastErr == nil {
			lastErr = err // keep the earlier error if the deadline ended the request
		}
		if isTransient(err) {
			return false, err // for instance the webhook of an operator that has just started
		}
		return true, nil
	})
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case lastErr == nil && err == nil:
		return e, nil
	// RBAC denies the request; a webhook that denies it is a problem of the example, and its message has "admission".
	case apierrors.IsForbidden(lastErr) && !strings.Contains(lastErr.Error(), "admission"),
		apierrors.IsUnauthorized(lastErr):
		return e, fmt.Errorf("create example %s: %w", e, lastErr)
	case lastErr != nil:
		e.State, e.Message = Refused, lastErr.Error()
		err = nil
	}
	return e, err
}

// unsetServerFields removes the fields that the API server sets.
func unsetServerFields(o *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
		"ownerReferences"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// countPods counts the pods, and how many of them are stubs.
func (t *trial) countPods(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := t.List(ctx, &pods, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		t.report.Pods.Total++
		if p.Labels[labelStub] == "true" {
			t.report.Pods.Stubs++
		}
	}
	p := t.report.Pods
	switch {
	case p.IsStub():
		return "Pods are stubs: the operator does not run on this cluster", nil
	case p.Stubs > 0:
		return fmt.Sprintf("Pods are stubs: %d of %d run nothing on this cluster", p.Stubs, p.Total), nil
	}
	return "the namespace has " + phrase.Count(p.Total, "pod"), nil
}

// awaitExamples waits until the examples are ready. If all pods of the operator are stubs, it only checks that the
// examples exist.
func (t *trial) awaitExamples(ctx context.Context) (string, error) {
	start := t.Now()
	areStubs := t.report.Pods.IsStub()
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		isInGrace := t.Now().Sub(start) < statusGrace
		done := true
		for i := range t.report.Examples {
			e := &t.report.Examples[i]
			if e.State == Refused {
				continue
			}
			if err := t.readExample(ctx, e); err != nil {
				return false, err
			}
			// Some operators never write a status, so an example without a status is final after statusGrace.
			isPending := e.State == NotReady || e.State == NoStatus && isInGrace
			done = done && (!isPending || areStubs)
		}
		return done, nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return "", err
	}
	problems, message := judgeExamples(t.report.Examples, areStubs)
	t.report.Problems = append(t.report.Problems, problems...)
	return message, nil
}

// readExample reads an example from the cluster and sets its state. A deleted example is NotReady.
func (t *trial) readExample(ctx context.Context, e *Example) error {
	o := e.toObject()
	err := t.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		e.State, e.Message = NotReady, "it is gone"
		return nil
	case err != nil:
		return fmt.Errorf("get example %s: %w", e, err)
	}
	e.State, e.Message = readState(o)
	return nil
}

// readState returns the state of an object from its status. It is pure. kstatus treats an object without a status as
// ready; here it is NoStatus.
func readState(o *unstructured.Unstructured) (State, string) {
	if reported, found, err := unstructured.NestedMap(o.Object, "status"); err != nil || !found || len(reported) == 0 {
		return NoStatus, "no program has written its status"
	}
	result, err := status.Compute(o)
	switch {
	case err != nil:
		return NotReady, err.Error()
	case result.Status == status.CurrentStatus:
		return Ready, ""
	}
	return NotReady, fmt.Sprintf("%s: %s", result.Status, result.Message)
}

// judgeExamples returns the problems of the examples, and a summary of their states. It is pure. If the operator does
// not run (stubs), a status that is not ready is not a problem.
func judgeExamples(all []Example, stubs bool) (problems []string, message string) {
	count := map[State]int{}
	for _, e := range all {
		count[e.State]++
		isDeleted := e.State == NotReady && e.Message == "it is gone"
		if e.State == NotReady && (!stubs || isDeleted) {
			problems = append(problems, fmt.Sprintf("example %s of %s is not ready: %s", e, e.Of, e.Message))
		}
	}
	var parts []string
	for _, s := range []State{Ready, NotReady, NoStatus, Refused} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], stateText[s]))
		}
	}
	if len(parts) == 0 {
		return problems, "there are no examples to wait for"
	}
	return problems, "examples: " + strings.Join(parts, ", ")
}

var stateText = map[State]string{Ready: "ready", NotReady: "not ready", NoStatus: "without a status",
	Refused: "refused"}
