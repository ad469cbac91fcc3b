// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fleet"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/access"
)

// adoptWishes is what the user asks for. Empty fields are chosen from what was found.
type adoptWishes struct {
	pkg, catalog, channel, version string
	accept                         []v1alpha1.AcceptedFinding
	// selector is nil where the user gave none.
	selector *metav1.LabelSelector
}

// foundInstall is an operator of the package on one cluster that others installed.
type foundInstall struct {
	cluster *v1alpha1.FleetCluster
	scan    *v1alpha1.OperatorScanStatus
	known   adoption.Known
	*v1alpha1.FoundOperator
}

// proposal is the ManagedOperator that takes over what runs, and what it comes to on each cluster.
type proposal struct {
	operator *v1alpha1.ManagedOperator
	// isNew says that there is no such ManagedOperator yet.
	isNew bool
	// head is the version at the head of the channel; empty where it is not known.
	head string
	// channels is how many of the clusters follow the channel of the operator, of how many that follow any.
	sameChannel, found int
	clusters           []adoptedCluster
	notRead            []string
}

// adoptedCluster is a cluster that the ManagedOperator selects.
type adoptedCluster struct {
	name string
	// found is nil where the package is not installed, or nothing is reported; reported says which of the two.
	found    *v1alpha1.FoundOperator
	reported bool
	managed  bool
	blocking []adoption.Finding
	// refusal is why no FleetAccess permits the operator there; empty where one does, or there is none.
	refusal string
}

func (c adoptedCluster) isTakenOver() bool {
	return c.found != nil && !c.managed && len(c.blocking) == 0 && c.refusal == ""
}

// proposed is the ManagedOperator for what was found, and what it comes to.
func proposed(key client.ObjectKey, w adoptWishes, scans fleet.Scans) (*proposal, error) {
	found := installsOf(key.Namespace, w, scans)
	if len(found) == 0 {
		return nil, exit.Hintf("see what runs with `fleet scan`",
			"no cluster%s reports an install of package %s that others made%s", ofSelector(w.selector), w.pkg,
			withinAccess(key.Namespace, scans))
	}
	if w.selector == nil {
		return nil, needsSelector(found, scans.Clusters)
	}
	o := &v1alpha1.ManagedOperator{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Kind: "ManagedOperator"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	o.Spec = v1alpha1.ManagedOperatorSpec{Package: w.pkg, Channel: w.channel, Version: w.version,
		ClusterSelector: *w.selector, Adopt: &v1alpha1.OperatorAdoption{Accept: w.accept}}
	pkg, err := chooseCatalog(key.Namespace, w, found[0].known)
	if err != nil {
		return nil, err
	}
	o.Spec.Catalog.Name = strings.TrimPrefix(pkg.Catalog, key.Namespace+"/")
	if o.Spec.Channel == "" {
		o.Spec.Channel = mostFollowed(found, pkg)
	}
	o.Spec.Install.Namespace = most(found, func(f foundInstall) string { return f.Namespace })
	o.Spec.Install.Mode = v1alpha1.InstallMode(most(found, func(f foundInstall) string {
		if f.Namespace != o.Spec.Install.Namespace {
			return ""
		}
		return string(modeOf(f))
	}))
	if o.Spec.Install.Config, err = commonConfig(found); err != nil {
		return nil, err
	}
	p := &proposal{operator: o, isNew: true}
	p.judge(scans)
	return p, nil
}

// changed is an existing ManagedOperator that takes over what was found, and what it comes to.
func changed(o *v1alpha1.ManagedOperator, w adoptWishes, scans fleet.Scans) *proposal {
	o = o.DeepCopy()
	if o.Spec.Adopt == nil {
		o.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	}
	for _, reason := range w.accept {
		if !slices.Contains(o.Spec.Adopt.Accept, reason) {
			o.Spec.Adopt.Accept = append(o.Spec.Adopt.Accept, reason)
		}
	}
	p := &proposal{operator: o}
	p.judge(scans)
	return p
}

// withinAccess says that not all clusters count; empty where they do.
func withinAccess(namespace string, scans fleet.Scans) string {
	if !slices.ContainsFunc(scans.Clusters, func(c v1alpha1.FleetCluster) bool {
		return !access.Reaches(scans.Access, namespace, c.Labels)
	}) {
		return ""
	}
	return ", on the clusters that a FleetAccess permits to namespace " + namespace
}

// installsOf are the installs of the package that others made, on the selected clusters that the namespace may reach:
// the settings of others do not count.
func installsOf(namespace string, w adoptWishes, scans fleet.Scans) []foundInstall {
	var out []foundInstall
	for i := range scans.Clusters {
		c := &scans.Clusters[i]
		if w.selector != nil && !selects(w.selector, c) || !access.Reaches(scans.Access, namespace, c.Labels) {
			continue
		}
		scan := scans.Reports[c.Name]
		if scan == nil {
			continue
		}
		known := scans.Known(c)
		for j := range scan.Status.Operators {
			f := &scan.Status.Operators[j]
			if !f.Managed && adoption.PackageOf(f, known) == w.pkg {
				out = append(out, foundInstall{cluster: c, scan: &scan.Status, known: known, FoundOperator: f})
			}
		}
	}
	return out
}

func selects(selector *metav1.LabelSelector, c *v1alpha1.FleetCluster) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(c.Labels))
}

func ofSelector(selector *metav1.LabelSelector) string {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return ""
	}
	return " with the labels " + metav1.FormatLabelSelector(selector)
}

// needsSelector asks which clusters the ManagedOperator is to select: it installs the operator on all of them.
func needsSelector(found []foundInstall, clusters []v1alpha1.FleetCluster) error {
	var names []string
	for _, f := range found {
		names = append(names, f.cluster.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	hint := "set --selector to labels of these clusters (bellwether fleet list -o wide shows labels), or --all-clusters"
	if label := ownLabel(names, clusters); label != "" {
		hint = fmt.Sprintf("set --selector %s, which exactly these have; or --all-clusters", label)
	} else if len(names) == len(clusters) {
		hint = "set --all-clusters: all clusters of the fleet have it"
	}
	return exit.Hintf(hint, "which clusters is the ManagedOperator to select? %s %s it: %s",
		phrase.Part(len(names), len(clusters), "cluster"), phrase.Word(len(names), "runs", "run"),
		phrase.First(names, maxNamed))
}

// ownLabel is a label that these clusters have, and no others; empty where there is none.
func ownLabel(names []string, clusters []v1alpha1.FleetCluster) string {
	inside, outside := map[string]int{}, map[string]bool{}
	for i := range clusters {
		for key, value := range clusters[i].Labels {
			label := key + "=" + value
			if slices.Contains(names, clusters[i].Name) {
				inside[label]++
			} else {
				outside[label] = true
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(inside)) {
		if inside[label] == len(names) && !outside[label] {
			return label
		}
	}
	return ""
}

// chooseCatalog returns the package as the catalog has it: the named catalog, or the only one of the namespace that has
// the package.
func chooseCatalog(namespace string, w adoptWishes, known adoption.Known) (adoption.Package, error) {
	var all []adoption.Package
	var names []string
	for _, p := range known.Packages {
		name, ok := strings.CutPrefix(p.Catalog, namespace+"/")
		if ok && p.Name == w.pkg && (w.catalog == "" || w.catalog == name) {
			all, names = append(all, p), append(names, name)
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		return adoption.Package{}, exit.Hintf("set --catalog to one of "+strings.Join(names, ", "),
			"%d OperatorCatalogs of namespace %s have package %s", len(all), namespace, w.pkg)
	case len(known.NotRead) > 0:
		return adoption.Package{}, fmt.Errorf("no OperatorCatalog of namespace %s is known to have package %s; not "+
			"read: %s", namespace, w.pkg, phrase.First(known.NotRead, 3))
	}
	return adoption.Package{}, exit.Hintf("import it with `bellwether catalog init ./ladders --package "+w.pkg+
		" --from CATALOG`, and publish that catalog; `fleet scan` names the CATALOG that the clusters use",
		"no OperatorCatalog%s of namespace %s has package %s", nameAfter(w.catalog), namespace, w.pkg)
}

func nameAfter(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

// mostFollowed is the channel that most of the Subscriptions follow, if the catalog has it; empty, which is the default
// channel of the package, otherwise.
func mostFollowed(found []foundInstall, pkg adoption.Package) string {
	return most(found, func(f foundInstall) string {
		if f.Subscription == nil || !slices.ContainsFunc(pkg.Channels, func(c adoption.Channel) bool {
			return c.Name == f.Subscription.Channel
		}) {
			return ""
		}
		return f.Subscription.Channel
	})
}

// most is the value that most of the installs have; the first in order of those that as many have.
func most(found []foundInstall, of func(foundInstall) string) string {
	counts := map[string]int{}
	for _, f := range found {
		if value := of(f); value != "" {
			counts[value]++
		}
	}
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// modeOf is the install mode that fits the OperatorGroup; empty where none does.
func modeOf(f foundInstall) v1alpha1.InstallMode {
	for _, n := range f.scan.Namespaces {
		if n.Name != f.Namespace || len(n.OperatorGroups) != 1 {
			continue
		}
		switch g := n.OperatorGroups[0]; {
		case g.Selector:
		case len(g.Targets) == 0:
			return v1alpha1.InstallAllNamespaces
		case len(g.Targets) == 1 && g.Targets[0] == f.Namespace:
			return v1alpha1.InstallOwnNamespace
		}
	}
	return ""
}

// commonConfig returns the settings that all Subscriptions have. The ManagedOperator has one config for all clusters,
// so that different ones are an error.
func commonConfig(found []foundInstall) (*v1alpha1.OperatorConfig, error) {
	variants := map[string][]string{}
	values := map[string]*v1alpha1.OperatorConfig{}
	for _, f := range found {
		sub := f.Subscription
		if sub == nil {
			continue
		}
		config, known := sub.SupportedConfig()
		if !known {
			return nil, exit.Hintf("write spec.install.config of the ManagedOperator by hand, and set spec.adopt there",
				"the settings of Subscription %s/%s on cluster %s are not in its report, which has no room for them",
				f.Namespace, sub.Name, f.cluster.Name)
		}
		text := cmp.Or(v1alpha1.SettingsOf(config), "none")
		variants[text], values[text] = append(variants[text], f.cluster.Name), config
	}
	switch len(variants) {
	case 0:
		return nil, nil
	case 1:
		return values[slices.Collect(maps.Keys(values))[0]], nil
	}
	return nil, differentConfigs(variants)
}

func differentConfigs(variants map[string][]string) error {
	texts := slices.SortedFunc(maps.Keys(variants), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(variants[b]), len(variants[a])), cmp.Compare(a, b))
	})
	var lines strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&lines, "\n  %s: %s", phrase.First(slices.Sorted(slices.Values(variants[text])), maxNamed), text)
	}
	return exit.Hintf("adopt each group with a --name and a --selector of its own, or make the settings equal first",
		"the Subscriptions have %d different settings, and a ManagedOperator has the same for all clusters:%s",
		len(variants), lines.String())
}

// judge says what the operator comes to on each cluster that it selects.
func (p *proposal) judge(scans fleet.Scans) {
	o := p.operator
	p.notRead = scans.NotRead
	permitted := scans.AccessOf(o)
	for i := range scans.Clusters {
		c := &scans.Clusters[i]
		if !selects(&o.Spec.ClusterSelector, c) {
			continue
		}
		before := len(p.clusters)
		scan := scans.Reports[c.Name]
		reported := scan != nil && scan.Status.ObservedAt != nil
		refusal := permitted.Refusal(c.Labels)
		if reported {
			known := withOperator(scans.Known(c), o)
			p.head = cmp.Or(p.head, headOf(o, known))
			p.judgeCluster(c, &scan.Status, known, refusal)
		}
		if len(p.clusters) == before {
			p.clusters = append(p.clusters, adoptedCluster{name: c.Name, reported: reported, refusal: refusal})
		}
	}
	slices.SortStableFunc(p.clusters, func(a, b adoptedCluster) int { return cmp.Compare(a.name, b.name) })
}

// headOf is the version at the head of the operator's channel; empty where it names none, or the catalog is not known.
func headOf(o *v1alpha1.ManagedOperator, known adoption.Known) string {
	for _, p := range known.Packages {
		if p.Catalog != o.Namespace+"/"+o.Spec.Catalog.Name || p.Name != o.Spec.Package {
			continue
		}
		for _, c := range p.Channels {
			if c.Name == o.Spec.Channel {
				return c.Head
			}
		}
	}
	return ""
}

// judgeCluster says what the operator comes to where a cluster reports that it runs.
func (p *proposal) judgeCluster(c *v1alpha1.FleetCluster, scan *v1alpha1.OperatorScanStatus, known adoption.Known,
	refusal string) {
	spec := p.operator.Spec
	for i := range scan.Operators {
		f := &scan.Operators[i]
		if adoption.PackageOf(f, known) != spec.Package {
			continue
		}
		verdict := adoption.Judge(adoption.Input{Found: f, Scan: scan, Known: known,
			Refusal: fleet.RefusalOf(c.Status.Veto, adoption.OperatorFor(f, known))})
		p.clusters = append(p.clusters, adoptedCluster{name: c.Name, found: f, reported: true,
			managed: verdict.Class == adoption.Managed, refusal: refusal,
			blocking: adoption.Blocking(verdict, spec.Adopt.Accept)})
		if f.Subscription == nil || refusal != "" {
			continue
		}
		p.found++
		if f.Subscription.Channel == spec.Channel {
			p.sameChannel++
		}
	}
}

// withOperator is what the hub would know if the ManagedOperator were there as it is to be.
func withOperator(known adoption.Known, o *v1alpha1.ManagedOperator) adoption.Known {
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	known.Operators = append(slices.DeleteFunc(slices.Clone(known.Operators),
		func(other adoption.Operator) bool { return other.Key == key }), adoption.OperatorOf(o))
	if !slices.Contains(known.All, key) {
		known.All = append(slices.Clone(known.All), key)
	}
	return known
}

// count counts the clusters that meet a condition.
func (p *proposal) count(meets func(adoptedCluster) bool) int {
	n := 0
	for _, c := range p.clusters {
		if meets(c) {
			n++
		}
	}
	return n
}
