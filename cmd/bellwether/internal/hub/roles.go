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

// DeniedError is an error of the hub about a missing permission, with the verb, the resource and the namespace. The
// error of the API server contains them only as text.
type DeniedError struct {
	Verb, Resource, Namespace string

	err error
}

func (e *DeniedError) Error() string { return e.err.Error() }

func (e *DeniedError) Unwrap() error { return e.err }

// WrapDenied returns a DeniedError with the verb and the namespace if the hub refused a request because of a missing
// permission. It is for special verbs on OperatorRollouts, such as approve. Other errors are returned unchanged.
func WrapDenied(err error, verb, namespace string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return &DeniedError{Verb: verb, Resource: "operatorrollouts", Namespace: namespace, err: err}
}

// role is a ClusterRole of the hub's chart, with permissions for which it is the smallest role.
type role struct {
	name             string
	verbs, resources []string
}

// roles are the roles in the order in which findRole searches them.
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

// findRole returns the ClusterRole that grants a permission; empty if no role of the chart grants it.
func findRole(verb, resource string) string {
	for _, r := range roles {
		if slices.Contains(r.verbs, verb) && slices.Contains(r.resources, resource) {
			return r.name
		}
	}
	return ""
}

// FormatDenialHint returns what the user can do about a missing permission. It names the
// role that grants the permission.
func FormatDenialHint(err error) string {
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok {
		return "ask an administrator for the permission that the message names"
	}
	name := findRole(denied.Verb, denied.Resource)
	if name == "" {
		return fmt.Sprintf("ask an administrator of the hub for the permission to %s %s", denied.Verb, denied.Resource)
	}
	text := "ask an administrator of the hub for the ClusterRole " + name
	if denied.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", denied.Namespace)
	}
	return text
}

// wrapDenials returns a client whose errors about missing permissions are DeniedErrors.
func wrapDenials(c client.WithWatch) client.WithWatch {
	wrapDenied := func(err error, verb string, object runtime.Object, sub, namespace string) error {
		if !apierrors.IsForbidden(err) {
			return err
		}
		return &DeniedError{Verb: verb, Resource: guessResource(c, object) + sub, Namespace: namespace, err: err}
	}
	readNamespace := func(options []client.ListOption) string {
		list := client.ListOptions{}
		list.ApplyOptions(options)
		return list.Namespace
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			return wrapDenied(c.Get(ctx, key, o, options...), "get", o, "", key.Namespace)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			return wrapDenied(c.List(ctx, list, options...), "list", list, "", readNamespace(options))
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, options...)
			return w, wrapDenied(err, "watch", list, "", readNamespace(options))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return wrapDenied(c.Create(ctx, o, options...), "create", o, "", o.GetNamespace())
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return wrapDenied(c.Delete(ctx, o, options...), "delete", o, "", o.GetNamespace())
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return wrapDenied(c.Update(ctx, o, options...), "update", o, "", o.GetNamespace())
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			return wrapDenied(c.Patch(ctx, o, patch, options...), "patch", o, "", o.GetNamespace())
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, subResource client.Object,
			options ...client.SubResourceCreateOption) error {
			return wrapDenied(c.SubResource(sub).Create(ctx, o, subResource, options...), "create", o, "/"+sub,
				o.GetNamespace())
		},
	})
}

// guessResource returns the name of the resource of an object or a list, as roles have
// it; empty if the kind is unknown.
func guessResource(c client.Client, o runtime.Object) string {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return ""
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.Resource
}

// New returns a client for the hub. namespace is the user's namespace, and self the command with
// which the user calls this program.
func New(c client.WithWatch, namespace, self string) *Client {
	return &Client{WithWatch: wrapDenials(c), Namespace: namespace, Self: self}
}
