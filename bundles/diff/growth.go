// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
)

// AddedPermissions words the rights that an upgrade from one bundle to the other adds:
// those that the ClusterServiceVersion asks for, and those that bindings among the
// manifests give. They are sorted.
func AddedPermissions(from, to *bundles.Bundle) []string {
	old, now := allGrants(from), allGrants(to)
	var changes []Change
	for g, rights := range now {
		changes = append(changes, rightChanges(g, Added, beyond(rights, held(old, g)))...)
	}
	var out []string
	for _, c := range changes {
		text := fmt.Sprintf("%s %s (%s)", c.To, c.Path, c.Subject)
		if c.Note != "" {
			text += ": " + c.Note
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allGrants are the grants of the ClusterServiceVersion and of bindings.
func allGrants(b *bundles.Bundle) map[grant][]right {
	out := grants(b)
	roles := map[string][]right{}
	for _, o := range b.Objects {
		var role rbacv1.Role
		if o.GroupVersionKind().Group != rbacv1.GroupName || convert(o, &role) != nil {
			continue
		}
		for _, rule := range role.Rules {
			roles[o.GetKind()+" "+o.GetName()] = append(roles[o.GetKind()+" "+o.GetName()], expand(rule)...)
		}
	}
	for _, o := range b.Objects {
		var binding rbacv1.RoleBinding
		if o.GroupVersionKind().Group != rbacv1.GroupName || convert(o, &binding) != nil || binding.RoleRef.Name == "" {
			continue
		}
		name := binding.RoleRef.Kind + " " + binding.RoleRef.Name
		rights, known := roles[name]
		if !known { // it is the cluster's, whatever it permits
			rights = []right{{resource: "all that " + name + " permits", verb: everything}}
		}
		for _, s := range binding.Subjects {
			g := grant{cmp.Or(s.Name, "without a name"), o.GetKind() == "ClusterRoleBinding"}
			out[g] = append(out[g], rights...)
		}
	}
	return out
}

func convert(o *bundles.Object, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}
