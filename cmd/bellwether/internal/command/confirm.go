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

// Confirmation is the flag --yes of a command that cannot be taken back.
type Confirmation struct{ yes bool }

// Add adds the flag to a command.
func (o *Confirmation) Add(c *cobra.Command) {
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for a confirmation. Required without a terminal.")
}

// Confirm says on stderr what would be done or lost, which ends with a line break, and asks the user to agree. Without
// a terminal there is nobody to ask, so --yes has to be set.
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

// stdinIsTerminal tells whether somebody can be asked.
func (a *Env) stdinIsTerminal() bool {
	in, ok := a.Streams.In.(*os.File)
	return ok && xterm.IsTerminal(int(in.Fd()))
}

// Right is a verb on an object of the hub, and the role of the hub's chart that grants it.
type Right struct {
	Verb, Group, Resource, Namespace, Name string
	Role                                   string
}

// RemoveRight is the right to remove a cluster from the fleet, or an operator from many clusters.
func RemoveRight(resource, namespace, name string) Right {
	r := RemoveAllRight(resource)
	r.Namespace, r.Name = namespace, name
	return r
}

// ApproveRight is the right to approve a version of an operator.
func ApproveRight(namespace, name string) Right {
	return Right{Verb: "approve", Group: v1alpha1.SchemeGroupVersion.Group, Resource: "managedoperators",
		Namespace: namespace, Name: name, Role: "bellwether-approve"}
}

// RemoveAllRight is the right to remove every object of a resource.
func RemoveAllRight(resource string) Right {
	return Right{Verb: "remove", Group: v1alpha1.SchemeGroupVersion.Group, Resource: resource,
		Role: "bellwether-remove"}
}

// Require returns an error that names the role, unless the user has the right. It is for commands that ask a person
// first: nobody is to agree to what is refused afterwards. Task is what the command does, such as "remove cluster a".
func (a *Env) Require(ctx context.Context, h *hub.Client, task string, r Right) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: r.Resource,
			Namespace: r.Namespace, Name: r.Name}}}
	if err := h.Create(ctx, review); err != nil {
		return fmt.Errorf("look up whether you may %s: %w", task, err)
	}
	if review.Status.Allowed {
		return nil
	}
	on := strings.TrimSpace(r.Resource + " " + r.Name)
	return exit.Hintf(fmt.Sprintf("ask an administrator of the hub for the ClusterRole %s of the hub's chart, which "+
		"has the permission (verb %s on %s)", r.Role, r.Verb, on), "you may not %s", task)
}
