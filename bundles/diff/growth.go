// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// AddedPermissions words the rights that an upgrade from one bundle to the other adds, from wherever they come: see
// Rights of bundles.Bundle; and how its pods newly reach their nodes. What cannot be known of the new bundle counts as
// added, unless the old one has the same. What cannot be known is first, then rights with a remark; each of these is
// sorted.
func AddedPermissions(from, to *bundles.Bundle) []string {
	type text struct {
		rank  int
		words string
	}
	var all []text
	for _, c := range append(additions(from, to), reached(from, to)...) {
		t := text{1, fmt.Sprintf("%s (%s)", strings.TrimSpace(c.To+" "+c.Path), c.Subject)}
		switch {
		case c.To == "": // nobody knows how much it is
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

// additions are the rights that one bundle has beyond another one.
func additions(from, to *bundles.Bundle) []Change {
	old, now := grants(from, true), grants(to, false)
	var out []Change
	for g, rights := range now {
		out = append(out, rightChanges(g, Added, beyond(rights, held(old, g)))...)
	}
	return append(out, moved(from, to, old, now)...)
}

// reached are the ways by which Deployments reach their nodes, and none did before.
func reached(from, to *bundles.Bundle) []Change {
	known := map[string]bool{}
	for _, access := range nodeAccess(from) {
		for _, a := range access {
			known[a.What] = true
		}
	}
	var out []Change
	for deployment, access := range nodeAccess(to) {
		for _, a := range access {
			if !known[a.What] {
				out = append(out, Change{Kind: Added, Subject: "Deployment " + deployment, To: a.What})
			}
		}
	}
	return out
}

func nodeAccess(b *bundles.Bundle) map[string][]bundles.NodeAccess {
	out := map[string][]bundles.NodeAccess{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := d.Spec.Template.Spec
		out[d.Name] = slices.Concat(out[d.Name], bundles.NodeAccessOf(pod), bundles.PowersOf(pod))
	}
	return out
}

// moved are the rights that Deployments get since they run as another account, which had them before.
func moved(from, to *bundles.Bundle, old, now map[grant][]right) []Change {
	before := accounts(from)
	all := slices.Compact(slices.Sorted(maps.Values(before)))
	ofAll := map[reach][]right{}
	for r := inItsOwn; r <= inAll; r++ {
		ofAll[r] = heldBy(old, all, r)
	}
	var out []Change
	for deployment, account := range accounts(to) {
		was, found := before[deployment]
		if found && was == account || !found && slices.Contains(all, account) {
			continue
		}
		for r := inItsOwn; r <= inAll; r++ {
			had := ofAll[r] // of a Deployment that is new: what all others had
			if found {
				had = heldBy(old, []string{was}, r)
			}
			g := grant{serviceAccount(account), r}
			news := beyond(now[g], had)
			added := beyond(news, held(old, g)) // which the account itself gets
			news = slices.DeleteFunc(news, func(n right) bool { return slices.Contains(added, n) })
			g.holder = fmt.Sprintf("Deployment %s, which now runs as %s", deployment, g.holder)
			out = append(out, rightChanges(g, Added, news)...)
		}
	}
	return out
}

// heldBy are the rights that any of the accounts had.
func heldBy(old map[grant][]right, accounts []string, r reach) []right {
	var out []right
	for _, account := range accounts {
		out = append(out, held(old, grant{serviceAccount(account), r})...)
	}
	return out
}

// accounts are those that the Deployments run as.
func accounts(b *bundles.Bundle) map[string]string {
	out := map[string]string{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		out[d.Name] = bundles.AccountOf(d.Spec.Template.Spec)
	}
	return out
}

// reach is where a holder has a right, from the narrowest on.
type reach int

const (
	inItsOwn reach = iota
	// inAllIfAsked is inAll where the operator is installed for all namespaces.
	inAllIfAsked
	inAll
	// unsaid is where others decide it.
	unsaid
)

func reachOf(s bundles.Scope, forAll bool) reach {
	switch {
	case s == bundles.InCluster:
		return inAll
	case s.IsCluster(forAll):
		return inAllIfAsked
	default:
		return inItsOwn
	}
}

// grant is who has rights, and where.
type grant struct {
	holder string
	reach  reach
}

func (g grant) String() string {
	return g.holder + map[reach]string{inItsOwn: ", in its namespaces",
		inAllIfAsked: ", in all namespaces if it is installed for them", inAll: ", in all namespaces"}[g.reach]
}

var (
	webhookGrant = grant{"admission webhooks", unsaid}
	apiGrant     = grant{"APIs that the operator serves", unsaid}
	tokenGrant   = grant{"tokens that Prometheus or a Secret gives to the operator", unsaid}
)

// grants are the rights that come with a bundle. Rights to be bound to a role that the bundle binds itself are there
// only with bound: then the result says what the bundle has, else what it is to be asked for.
func grants(b *bundles.Bundle, bound bool) map[grant][]right {
	out := map[grant][]right{}
	forAll := b.SupportsAllNamespaces()
	for _, r := range b.Rights() {
		rights := []right{{resource: r.Unknown, unknown: true}}
		if r.Unknown == "" {
			rights = expand(r.Rule)
		}
		for _, g := range grantsOf(r, forAll, bound) {
			out[g] = append(out[g], rights...)
		}
	}
	if bound {
		out[webhookGrant] = append(out[webhookGrant], ownKinds(b)...)
	}
	return out
}

func grantsOf(r bundles.Right, forAll, bound bool) []grant {
	switch r.Source {
	case bundles.FromWebhook:
		return []grant{webhookGrant}
	case bundles.FromAPI:
		return []grant{apiGrant}
	case bundles.FromObject:
		if r.Unknown == "" {
			return []grant{tokenGrant}
		}
	default: // has holders
	}
	var out []grant
	for _, h := range r.Holders {
		out = append(out, holderOf(h, forAll))
	}
	switch {
	case r.Source == bundles.FromRole && (bound || len(out) == 0):
		out = append(out, grant{"whoever is bound to " + r.Name, unsaid})
	case len(out) == 0:
		out = append(out, grant{"the operator", unsaid})
	}
	return out
}

func holderOf(h bundles.Holder, forAll bool) grant {
	where := reachOf(h.Scope, forAll)
	switch {
	case h.Kind == bundles.AggregatedTo:
		if name, found := strings.CutPrefix(h.Name, rbacv1.GroupName+"/aggregate-to-"); found {
			return grant{"everybody with ClusterRole " + name, unsaid}
		}
		return grant{"whoever gets rights by the label " + h.Name, unsaid}
	case h.Kind == rbacv1.ServiceAccountKind && h.Namespace == "":
		return grant{serviceAccount(h.Name), where}
	case h.Kind == rbacv1.ServiceAccountKind:
		return grant{serviceAccount(h.Name) + " of namespace " + h.Namespace, where}
	default:
		return grant{strings.ToLower(h.Kind) + " " + cmp.Or(h.Name, "without a name"), where}
	}
}

func serviceAccount(name string) string { return "service account " + cmp.Or(name, "without a name") }

// ownKinds are the objects of kinds that a bundle defines: a webhook for them shows the operator nothing that is not
// its own.
func ownKinds(b *bundles.Bundle) []right {
	var out []right
	for _, crd := range b.CRDs {
		if group := crd.Spec.Group; !strings.HasSuffix("."+group, ".k8s.io") {
			out = append(out, right{group: group, resource: crd.Spec.Names.Plural, verb: everything})
		}
	}
	return out
}
