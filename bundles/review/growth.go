// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// AddedPermissions returns texts about the rights that an upgrade from one bundle to the other adds (see Rights of
// bundles.Bundle), and about new access of its pods to their nodes. Unknown rights of the new bundle count as added
// unless the old bundle has the same unknown rights. Unknown rights come first, then rights with a note, then other
// rights; each group is sorted.
func AddedPermissions(from, to *bundles.Bundle) []string {
	type text struct {
		rank  int // 0 for an unknown right, 1 for a right with a note, 2 for another right
		words string
	}
	var all []text
	for _, c := range append(findAdditions(from, to), findNewNodeAccess(from, to)...) {
		t := text{rank: 1, words: fmt.Sprintf("%s (%s)", strings.TrimSpace(c.To+" "+c.Path), c.Subject)}
		switch {
		case c.To == "": // an unknown right
			t.rank = 0
		case c.Note == "":
			t.rank = 2
		default:
			t.words += ": " + c.Note
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b text) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.words, b.words))
	})
	var out []string
	for _, t := range slices.Compact(all) {
		out = append(out, t.words)
	}
	return out
}

// findAdditions returns the rights that the bundle to has and the bundle from does not have.
func findAdditions(from, to *bundles.Bundle) []Change {
	old, current := listGrants(from, true), listGrants(to, false)
	var out []Change
	for g, rights := range current {
		out = append(out, formatRights(g, Added, findUncovered(rights, listHeldRights(old, g)))...)
	}
	return append(out, findMovedRights(from, to, old, current)...)
}

// findNewNodeAccess returns the access to nodes that Deployments of to have and no Deployment of from has.
func findNewNodeAccess(from, to *bundles.Bundle) []Change {
	existing := map[string]bool{}
	for _, access := range listNodeAccess(from) {
		for _, a := range access {
			existing[a.Description] = true
		}
	}
	var out []Change
	for deployment, access := range listNodeAccess(to) {
		for _, a := range access {
			if !existing[a.Description] {
				out = append(out, Change{Kind: Added, Subject: "Deployment " + deployment, To: a.Description})
			}
		}
	}
	return out
}

// listNodeAccess returns the access of each Deployment's pods to their nodes, by the name of the Deployment.
func listNodeAccess(b *bundles.Bundle) map[string][]bundles.NodeAccess {
	out := map[string][]bundles.NodeAccess{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := d.Spec.Template.Spec
		out[d.Name] = slices.Concat(out[d.Name], bundles.ListPodNodeAccess(pod), bundles.ListContainerNodeAccess(pod))
	}
	return out
}

// findMovedRights returns the rights that Deployments get because they run as another account, which already had
// them in the old bundle. Rights that the account itself gets are excluded, because findAdditions reports them for
// the account.
func findMovedRights(from, to *bundles.Bundle, old, current map[grant][]right) []Change {
	oldAccounts := listAccounts(from)
	allOldAccounts := slices.Compact(slices.Sorted(maps.Values(oldAccounts)))
	rightsOfAll := map[reach][]right{}
	for r := inOwnNamespaces; r <= inAll; r++ {
		rightsOfAll[r] = listAccountRights(old, allOldAccounts, r)
	}
	var out []Change
	for deployment, account := range listAccounts(to) {
		oldAccount, found := oldAccounts[deployment]
		isSameAccount := found && oldAccount == account
		isOldAccount := !found && slices.Contains(allOldAccounts, account) // of a new Deployment
		if isSameAccount || isOldAccount {
			continue
		}
		for r := inOwnNamespaces; r <= inAll; r++ {
			oldRights := rightsOfAll[r] // for a new Deployment, the rights of all old accounts
			if found {
				oldRights = listAccountRights(old, []string{oldAccount}, r)
			}
			g := grant{formatServiceAccount(account), r}
			newRights := findUncovered(current[g], oldRights)
			added := findUncovered(newRights, listHeldRights(old, g)) // these are reported for the account
			newRights = slices.DeleteFunc(newRights, func(n right) bool { return slices.Contains(added, n) })
			g.holder = fmt.Sprintf("Deployment %s, which now runs as %s", deployment, g.holder)
			out = append(out, formatRights(g, Added, newRights)...)
		}
	}
	return out
}

// listAccountRights returns the rights that any of the accounts had with at least the given reach.
func listAccountRights(old map[grant][]right, accounts []string, r reach) []right {
	var out []right
	for _, account := range accounts {
		out = append(out, listHeldRights(old, grant{formatServiceAccount(account), r})...)
	}
	return out
}

// listAccounts returns the account of each Deployment, by the name of the Deployment.
func listAccounts(b *bundles.Bundle) map[string]string {
	out := map[string]string{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		out[d.Name] = bundles.ReadServiceAccount(d.Spec.Template.Spec)
	}
	return out
}

// reach is where a holder has a right, from the narrowest to the widest.
type reach int

const (
	inOwnNamespaces reach = iota
	// inAllIfInstalledForAll means all namespaces if the operator is installed for all namespaces.
	inAllIfInstalledForAll
	inAll
	// unknownReach means that objects outside the bundle determine the reach.
	unknownReach
)

// toReach converts a scope. forAll is true if the operator can be installed for all namespaces.
func toReach(s bundles.Scope, forAll bool) reach {
	switch {
	case s == bundles.InCluster:
		return inAll
	case s.IsCluster(forAll):
		return inAllIfInstalledForAll
	default:
		return inOwnNamespaces
	}
}

// grant is a holder of rights and their reach.
type grant struct {
	holder string
	reach  reach
}

func (g grant) String() string {
	return g.holder + map[reach]string{inOwnNamespaces: ", in its namespaces",
		inAllIfInstalledForAll: ", in all namespaces if it is installed for them",
		inAll:                  ", in all namespaces"}[g.reach]
}

var (
	webhookGrant = grant{"admission webhooks", unknownReach}
	apiGrant     = grant{"APIs that the operator serves", unknownReach}
	tokenGrant   = grant{"tokens that Prometheus or a Secret gives to the operator", unknownReach}
)

// listGrants returns the rights that come with a bundle. If bound is true, the result is what the bundle has: for a
// role that the bundle itself binds, it also contains the right to be bound to the role by others. If bound is false,
// the result is what must be covered.
func listGrants(b *bundles.Bundle, bound bool) map[grant][]right {
	out := map[grant][]right{}
	forAll := b.SupportsAllNamespaces()
	for _, r := range b.Rights() {
		rights := []right{{resource: r.Unknown, unknown: true}}
		if r.Unknown == "" {
			rights = expandRule(r.Rule)
		}
		for _, g := range listGrantsOfRight(r, forAll, bound) {
			out[g] = append(out[g], rights...)
		}
	}
	if bound {
		out[webhookGrant] = append(out[webhookGrant], listOwnKinds(b)...)
	}
	return out
}

// listGrantsOfRight returns the holders of a right. If bound is true, a role that the bundle itself binds is also
// returned as a holder, which represents the subjects of other bindings.
func listGrantsOfRight(r bundles.Right, forAll, bound bool) []grant {
	switch r.Source {
	case bundles.FromWebhook:
		return []grant{webhookGrant}
	case bundles.FromAPI:
		return []grant{apiGrant}
	case bundles.FromObject:
		if r.Unknown == "" {
			return []grant{tokenGrant}
		}
	default: // other sources have holders
	}
	var out []grant
	for _, h := range r.Holders {
		out = append(out, toGrant(h, forAll))
	}
	switch {
	case r.Source == bundles.FromRole && (bound || len(out) == 0):
		out = append(out, grant{"every subject that is bound to " + r.Name, unknownReach})
	case len(out) == 0:
		out = append(out, grant{"the operator", unknownReach})
	}
	return out
}

// toGrant converts a holder of a right to a grant.
func toGrant(h bundles.Holder, forAll bool) grant {
	scope := toReach(h.Scope, forAll)
	switch {
	case h.Kind == bundles.AggregatedTo:
		if name, found := strings.CutPrefix(h.Name, rbacv1.GroupName+"/aggregate-to-"); found {
			return grant{"everybody with ClusterRole " + name, unknownReach}
		}
		return grant{"every subject that gets rights by the label " + h.Name, unknownReach}
	case h.Kind == rbacv1.ServiceAccountKind && h.Namespace == "":
		return grant{formatServiceAccount(h.Name), scope}
	case h.Kind == rbacv1.ServiceAccountKind:
		return grant{formatServiceAccount(h.Name) + " of namespace " + h.Namespace, scope}
	default:
		return grant{strings.ToLower(h.Kind) + " " + cmp.Or(h.Name, "without a name"), scope}
	}
}

// formatServiceAccount returns a service account as text.
func formatServiceAccount(name string) string {
	return "service account " + cmp.Or(name, "without a name")
}

// listOwnKinds returns rights to the kinds that a bundle defines. A webhook for these kinds shows the operator only its
// own objects.
func listOwnKinds(b *bundles.Bundle) []right {
	var out []right
	for _, crd := range b.CRDs {
		if group := crd.Spec.Group; !strings.HasSuffix("."+group, ".k8s.io") {
			out = append(out, right{group: group, resource: crd.Spec.Names.Plural, verb: anyName})
		}
	}
	return out
}
