// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// Confirmation is the flag --yes of a command that cannot be undone.
type Confirmation struct{ yes bool }

// Add adds the flag to a command.
func (o *Confirmation) Add(c *cobra.Command) {
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for a confirmation. Required without a terminal.")
}

// Confirm prints loss on stderr, and asks the user to agree. loss describes what would be done or lost, and ends with
// a line break. Without a terminal it cannot ask, so the flag --yes is required.
func (a *Env) Confirm(o Confirmation, loss string) error {
	a.Warn("%s", loss)
	if o.yes {
		return nil
	}
	if !a.CanAsk() {
		return exit.Hintf("read what would be done, and set --yes",
			"not confirmed, and nothing was changed: stdin is not a terminal")
	}
	a.Warn("Continue? [y/N] ")
	answer, err := bufio.NewReader(a.Streams.In).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("not confirmed, and nothing was changed")
	}
	return nil
}

// isStdinTerminal reports whether stdin is a terminal, so that the user can answer a question.
func (a *Env) isStdinTerminal() bool {
	in, ok := a.Streams.In.(*os.File)
	return ok && xterm.IsTerminal(int(in.Fd()))
}

// Permission is a permission: a verb on an object of the hub, and the role of the hub's chart that grants the verb.
type Permission struct {
	Verb, Group, Resource, Namespace, Name string
	Role                                   string
}

// NewRemovePermission returns the permission to remove a cluster from the fleet, or an operator from many clusters.
func NewRemovePermission(resource, namespace, name string) Permission {
	r := NewRemoveAllPermission(resource)
	r.Namespace, r.Name = namespace, name
	return r
}

// NewApprovePermission returns the permission to approve a version of an operator.
func NewApprovePermission(namespace, name string) Permission {
	return Permission{Verb: "approve", Group: v1alpha1.SchemeGroupVersion.Group, Resource: "managedoperators",
		Namespace: namespace, Name: name, Role: "bellwether-approve"}
}

// NewRemoveAllPermission returns the permission to remove every object of a resource.
func NewRemoveAllPermission(resource string) Permission {
	return Permission{Verb: "remove", Group: v1alpha1.SchemeGroupVersion.Group, Resource: resource,
		Role: "bellwether-remove"}
}

// Require returns an error that names the role, unless the user has the permission. Commands call it before they
// ask for a confirmation, so that the user does not confirm a request that is refused later. task is what the command
// does, such as "remove cluster a".
func (a *Env) Require(ctx context.Context, h *hub.Client, task string, permission Permission) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: permission.Verb, Group: permission.Group,
			Resource: permission.Resource, Namespace: permission.Namespace, Name: permission.Name}}}
	if err := h.Create(ctx, review); err != nil {
		return fmt.Errorf("look up whether you may %s: %w", task, err)
	}
	if review.Status.Allowed {
		return nil
	}
	object := strings.TrimSpace(permission.Resource + " " + permission.Name)
	return exit.Hintf(fmt.Sprintf("ask an administrator of the hub for the ClusterRole %s of the hub's chart, which "+
		"has the permission (verb %s on %s)", permission.Role, permission.Verb, object), "you may not %s", task)
}
