// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// AdoptionRequest is which package a person wants to take over, and how. Empty fields are chosen from the reports.
type AdoptionRequest struct {
	Package, Catalog, Channel, Version string
	Accept                             []v1alpha1.AcceptedFinding
	// Selector is nil if the person has set none.
	Selector *metav1.LabelSelector
}

// AdoptionProposal is the ManagedOperator that takes over the installs of a package, with the result on each cluster.
type AdoptionProposal struct {
	Operator *v1alpha1.ManagedOperator
	// IsNew is true if the ManagedOperator does not exist yet.
	IsNew bool
	// Head is the version at the head of the channel; empty if it is unknown.
	Head string
	// Subscriptions is the number of Subscriptions, and SameChannel how many of them follow the channel of the
	// operator. Clusters that no FleetAccess permits do not count.
	SameChannel, Subscriptions int
	// Clusters are sorted by name. A cluster with several installs of the package is listed once for each.
	Clusters []AdoptedCluster
	// NotRead lists the catalogs that could not be read, with the reasons.
	NotRead []string
}

// AdoptedCluster is a cluster that the ManagedOperator selects, with the verdict about the install there.
type AdoptedCluster struct {
	Name string
	// Found is nil if the cluster has no report (Reported is false) or does not have the package.
	Found    *v1alpha1.FoundOperator
	Reported bool
	Managed  bool
	Blocking []adoption.Finding
	// Refusal is why no FleetAccess permits the operator on the cluster; empty if it is permitted.
	Refusal string
}

// IsTakenOver reports whether the rollout will take over the operator on the cluster.
func (c AdoptedCluster) IsTakenOver() bool {
	return c.Found != nil && !c.Managed && len(c.Blocking) == 0 && c.Refusal == ""
}

// ProposeAdoption returns a new ManagedOperator for the installs that agents report, with the result on each cluster.
// It returns a *ProposalError if there are no installs, if no selector is set, or if the catalog or the common settings
// cannot be determined. The namespace, the install mode and the channel are the most frequent values of the installs.
func (s Scans) ProposeAdoption(key types.NamespacedName, request AdoptionRequest) (*AdoptionProposal, error) {
	installs := s.listForeignInstalls(key.Namespace, request)
	if len(installs) == 0 {
		return nil, s.newNoInstallsError(key.Namespace, request)
	}
	if request.Selector == nil {
		return nil, newNoSelectorError(installs, s.Clusters)
	}
	o := &v1alpha1.ManagedOperator{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Kind: "ManagedOperator"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	o.Spec = v1alpha1.ManagedOperatorSpec{Package: request.Package, Channel: request.Channel, Version: request.Version,
		ClusterSelector: *request.Selector, Adopt: &v1alpha1.OperatorAdoption{Accept: request.Accept}}
	pkg, err := chooseCatalog(key.Namespace, request, installs[0].known)
	if err != nil {
		return nil, err
	}
	o.Spec.Catalog.Name = strings.TrimPrefix(pkg.Catalog, key.Namespace+"/")
	if o.Spec.Channel == "" {
		o.Spec.Channel = findMostUsedChannel(installs, pkg)
	}
	o.Spec.Install.Namespace = findMostCommon(installs, func(f foundInstall) string { return f.Namespace })
	o.Spec.Install.Mode = v1alpha1.InstallMode(findMostCommon(installs, func(f foundInstall) string {
		if f.Namespace != o.Spec.Install.Namespace { // its mode does not count
			return ""
		}
		return string(findInstallMode(f))
	}))
	if o.Spec.Install.Config, err = readCommonConfig(installs); err != nil {
		return nil, err
	}
	p := &AdoptionProposal{Operator: o, IsNew: true}
	p.judgeClusters(s)
	return p, nil
}

// ProposeAdoptionBy returns a copy of an existing ManagedOperator that adopts and accepts also the findings in accept,
// with the result on each cluster.
func (s Scans) ProposeAdoptionBy(o *v1alpha1.ManagedOperator, accept []v1alpha1.AcceptedFinding) *AdoptionProposal {
	o = o.DeepCopy()
	if o.Spec.Adopt == nil {
		o.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	}
	for _, reason := range accept {
		if !slices.Contains(o.Spec.Adopt.Accept, reason) {
			o.Spec.Adopt.Accept = append(o.Spec.Adopt.Accept, reason)
		}
	}
	p := &AdoptionProposal{Operator: o}
	p.judgeClusters(s)
	return p
}

// isSelected reports whether a selector matches the labels of a cluster. An invalid selector matches nothing;
// the status of its object reports it.
func isSelected(selector *metav1.LabelSelector, c *v1alpha1.FleetCluster) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(c.Labels))
}

// judgeClusters sets p.Clusters: the results on each cluster that the operator selects, sorted by cluster. It also
// sets p.Head, p.NotRead and the counts of Subscriptions.
func (p *AdoptionProposal) judgeClusters(s Scans) {
	o := p.Operator
	p.NotRead = s.NotRead
	permitted := s.decideAccess(o)
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if !isSelected(&o.Spec.ClusterSelector, c) {
			continue
		}
		countBefore := len(p.Clusters)
		scan := s.Reports[c.Name]
		reported := scan != nil && scan.Status.ObservedAt != nil
		refusal := permitted.Refusal(c.Labels)
		if reported {
			known := addOperator(s.selectKnown(c), o)
			p.Head = cmp.Or(p.Head, findChannelHead(o, known))
			p.judgeCluster(c, &scan.Status, known, refusal)
		}
		if len(p.Clusters) == countBefore { // no report, or no install of the package
			p.Clusters = append(p.Clusters, AdoptedCluster{Name: c.Name, Reported: reported, Refusal: refusal})
		}
	}
	slices.SortStableFunc(p.Clusters, func(a, b AdoptedCluster) int { return cmp.Compare(a.Name, b.Name) })
}

// findChannelHead returns the version at the head of the operator's channel; empty if the
// operator names no channel or the catalog is unknown.
func findChannelHead(o *v1alpha1.ManagedOperator, known adoption.Known) string {
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

// judgeCluster appends to p.Clusters the result for each install of the package that a cluster reports. It counts the
// Subscriptions in p.Subscriptions and p.SameChannel, without those of a cluster that no FleetAccess permits.
func (p *AdoptionProposal) judgeCluster(c *v1alpha1.FleetCluster, scan *v1alpha1.OperatorScanStatus,
	known adoption.Known, refusal string) {
	spec := p.Operator.Spec
	for i := range scan.Operators {
		f := &scan.Operators[i]
		if adoption.PackageOf(f, known) != spec.Package {
			continue
		}
		verdict := adoption.Judge(adoption.Input{Found: f, Scan: scan, Known: known,
			Refusal: findRefusal(c.Status.Veto, adoption.OperatorFor(f, known))})
		p.Clusters = append(p.Clusters, AdoptedCluster{Name: c.Name, Found: f, Reported: true,
			Managed: verdict.Class == adoption.Managed, Refusal: refusal,
			Blocking: adoption.ListBlocking(verdict, spec.Adopt.Accept)})
		if f.Subscription == nil || refusal != "" {
			continue
		}
		p.Subscriptions++
		if f.Subscription.Channel == spec.Channel {
			p.SameChannel++
		}
	}
}

// addOperator returns a copy of known with the proposed ManagedOperator, so that installs are judged as if the
// ManagedOperator existed.
func addOperator(known adoption.Known, o *v1alpha1.ManagedOperator) adoption.Known {
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	known.Operators = append(slices.DeleteFunc(slices.Clone(known.Operators),
		func(other adoption.Operator) bool { return other.Key == key }), adoption.OperatorOf(o))
	if !slices.Contains(known.All, key) {
		known.All = append(slices.Clone(known.All), key)
	}
	return known
}
