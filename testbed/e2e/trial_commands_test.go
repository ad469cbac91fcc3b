// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// operates is somebody who may operate, and nothing that needs a stronger role.
const operates = "olga"

// fill returns texts with the names that CLUSTER and OPERATOR stand for.
func (x *trial) fill(texts []string) []string {
	names := strings.NewReplacer("CLUSTER", x.cluster, "OPERATOR", x.key.Name)
	var out []string
	for _, text := range texts {
		out = append(out, names.Replace(text))
	}
	return out
}

// run runs a command that has to succeed.
func (x *trial) run(args ...string) {
	x.t.Helper()
	out, err := shared.Bellwether(x.ctx(), x.fill(args)...)
	x.must(err)
	x.t.Logf("bellwether %s:\n%s", strings.Join(x.fill(args), " "), out)
}

// says returns a function that returns nil once a command prints the texts.
func says(texts []string, args ...string) func(*trial) error {
	return func(x *trial) error {
		out, err := shared.Bellwether(x.ctx(), x.fill(args)...)
		if err != nil {
			return err
		}
		if err := contains(out, x.fill(texts)); err != nil {
			return fmt.Errorf("bellwether %v: %w", x.fill(args), err)
		}
		return nil
	}
}

// refuses returns a function that returns nil once a command is refused with the texts.
func refuses(texts []string, args ...string) func(*trial) error {
	return func(x *trial) error {
		out, err := shared.Bellwether(x.ctx(), x.fill(args)...)
		if err == nil {
			return fmt.Errorf("bellwether %v is not refused:\n%s", x.fill(args), out)
		}
		if err := contains(out, x.fill(texts)); err != nil {
			return fmt.Errorf("bellwether %v: %w", x.fill(args), err)
		}
		return nil
	}
}

var roleName = regexp.MustCompile(`ClusterRole (bellwether-[a-z]+)`)

// needs returns a function that returns nil once a command of somebody who may only operate is refused, and the answer
// names the one role that is missing.
func needs(role string, args ...string) func(*trial) error {
	return func(x *trial) error {
		args := append(x.fill(args), "--as", operates)
		out, err := shared.Bellwether(x.ctx(), args...)
		if err == nil {
			return fmt.Errorf("bellwether %v is not refused:\n%s", args, out)
		}
		var named []string
		for _, match := range roleName.FindAllStringSubmatch(strings.Join(strings.Fields(out), " "), -1) {
			named = append(named, match[1])
		}
		if slices.Sort(named); !slices.Equal(slices.Compact(named), []string{role}) {
			return fmt.Errorf("bellwether %v names the roles %v, want %s:\n%s", args, named, role, out)
		}
		return nil
	}
}

// bindOperates lets somebody operate in the whole hub; undoAll takes that back.
func (x *trial) bindOperates() {
	x.t.Helper()
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: x.key.Name + "-" + operates},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bellwether-operate"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operates}}}
	x.must(x.hub.Create(x.ctx(), b))
	x.undo = append(x.undo, func() { x.remove(x.hub, b) })
	x.until("somebody may operate", patience, func(x *trial) error {
		_, err := shared.Bellwether(x.ctx(), "fleet", "list", "--as", operates)
		return err
	})
}

// asOperates is a client of somebody who may only operate.
func (x *trial) asOperates() client.Client {
	x.t.Helper()
	config := rest.CopyConfig(shared.Fleet.Hub.RESTConfig())
	config.Impersonate.UserName = operates
	c, err := client.New(config, client.Options{Scheme: platform.Scheme()})
	x.must(err)
	return c
}

// repair repairs the operator as `bellwether why` advises.
func (x *trial) repair() {
	x.t.Helper()
	x.run(append([]string{"operator", "repair", "CLUSTER", "OPERATOR", "--yes"}, x.access()...)...)
}

// another makes a second ManagedOperator of the same package, in a namespace of its own: it is what the fault is about.
// undoAll removes it, with all that it has installed.
func (x *trial) another(name string, change func(*v1alpha1.ManagedOperatorSpec)) {
	x.t.Helper()
	key := client.ObjectKey{Namespace: x.key.Namespace, Name: x.key.Name + "-" + name}
	mo := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: *x.managed().Spec.DeepCopy()}
	mo.Spec.Install.Namespace = key.Name
	change(&mo.Spec)
	x.must(x.hub.Create(x.ctx(), mo))
	x.other = &trial{operator: &operator{t: x.t, hub: x.hub, key: key}, cluster: x.cluster, local: x.local}
	x.undo = append(x.undo, func() {
		x.remove(x.hub, mo)
		if mo.Spec.Install.Namespace == key.Name {
			x.namespaceGone(key.Name)
		}
	})
}
