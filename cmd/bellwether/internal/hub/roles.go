// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// DeniedError is an answer of the hub that the user may not do something, with what that was: the answer itself has it
// only as a text.
type DeniedError struct {
	Verb, Resource, Namespace string

	err error
}

func (e *DeniedError) Error() string { return e.err.Error() }

func (e *DeniedError) Unwrap() error { return e.err }

// Denied adds to an answer that it is about a verb on OperatorRollouts which is none of the API server's own, such as
// approve. Other errors stay as they are.
func Denied(err error, verb, namespace string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return &DeniedError{Verb: verb, Resource: "operatorrollouts", Namespace: namespace, err: err}
}

// role is a ClusterRole of the hub's chart, with permissions that people get from it and from no smaller one.
type role struct {
	name             string
	verbs, resources []string
}

// roles are in the order in which they are looked through.
var roles = []role{
	{"bellwether-view", []string{"get", "list", "watch"}, []string{"alertsilences", "changewindows", "endpointprobes",
		"fleetaccesses", "fleetclusters", "fleetfreezes", "managedoperators", "operatorbackups", "operatorcatalogs",
		"operatorinstalls", "operatorrollouts", "operatorscans", "operatorslos", "pagingpolicies", "rolloutpolicies"}},
	{"bellwether-join", []string{"create"}, []string{"fleetclusters", "serviceaccounts/token"}},
	{"bellwether-join", []string{"get", "delete"}, []string{"serviceaccounts"}},
	{"bellwether-freeze", []string{"create", "delete"}, []string{"fleetfreezes"}},
	{"bellwether-policy", []string{"create", "update", "patch", "delete"}, []string{"changewindows", "fleetaccesses",
		"rolloutpolicies"}},
	{"bellwether-operate", []string{"create", "update", "patch", "delete"}, []string{"alertsilences", "endpointprobes",
		"fleetclusters", "managedoperators", "operatorcatalogs", "operatorslos", "pagingpolicies"}},
	{"bellwether-operate", []string{"create", "delete"}, []string{"operatorbackups"}},
	{"bellwether-operate", []string{"update", "patch"}, []string{"operatorrollouts"}},
	{"bellwether-approve", []string{"approve"}, []string{"operatorrollouts", "managedoperators"}},
	{"bellwether-override", []string{"override"}, []string{"operatorrollouts"}},
}

// roleFor returns the ClusterRole that has a permission; empty if none of the chart's has it.
func roleFor(verb, resource string) string {
	for _, r := range roles {
		if slices.Contains(r.verbs, verb) && slices.Contains(r.resources, resource) {
			return r.name
		}
	}
	return ""
}

// AdviceOnDenial says what to do about an answer that the user may not do something: it names the one role that is
// missing.
func AdviceOnDenial(err error) string {
	denied, known := errors.AsType[*DeniedError](err)
	if !known {
		return "ask an administrator for the permission that the message names"
	}
	name := roleFor(denied.Verb, denied.Resource)
	if name == "" {
		return fmt.Sprintf("ask an administrator of the hub for the permission to %s %s", denied.Verb, denied.Resource)
	}
	text := "ask an administrator of the hub for the ClusterRole " + name
	if denied.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", denied.Namespace)
	}
	return text
}

// telling is a client whose errors say what was not permitted.
func telling(c client.WithWatch) client.WithWatch {
	denied := func(err error, verb string, about runtime.Object, sub, namespace string) error {
		if !apierrors.IsForbidden(err) {
			return err
		}
		return &DeniedError{Verb: verb, Resource: resourceOf(c, about) + sub, Namespace: namespace, err: err}
	}
	inNamespace := func(options []client.ListOption) string {
		list := client.ListOptions{}
		list.ApplyOptions(options)
		return list.Namespace
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			with ...client.GetOption) error {
			return denied(c.Get(ctx, key, o, with...), "get", o, "", key.Namespace)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, with ...client.ListOption) error {
			return denied(c.List(ctx, list, with...), "list", list, "", inNamespace(with))
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			with ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, with...)
			return w, denied(err, "watch", list, "", inNamespace(with))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, with ...client.CreateOption) error {
			return denied(c.Create(ctx, o, with...), "create", o, "", o.GetNamespace())
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, with ...client.DeleteOption) error {
			return denied(c.Delete(ctx, o, with...), "delete", o, "", o.GetNamespace())
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, with ...client.UpdateOption) error {
			return denied(c.Update(ctx, o, with...), "update", o, "", o.GetNamespace())
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			with ...client.PatchOption) error {
			return denied(c.Patch(ctx, o, patch, with...), "patch", o, "", o.GetNamespace())
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, of client.Object,
			with ...client.SubResourceCreateOption) error {
			return denied(c.SubResource(sub).Create(ctx, o, of, with...), "create", o, "/"+sub, o.GetNamespace())
		},
	})
}

// resourceOf is how the API server's roles call the kind of an object or list.
func resourceOf(c client.Client, o runtime.Object) string {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return ""
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.Resource
}

// New returns a client of the hub for a user who works in a namespace.
func New(c client.WithWatch, namespace, self string) *Client {
	return &Client{WithWatch: telling(c), Namespace: namespace, Self: self}
}
