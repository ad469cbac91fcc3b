// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Causes of the hub's own silences: values of the label LabelAutomaticSilence.
const (
	// CauseUpgrade is an upgrade that a rollout admitted on one cluster.
	CauseUpgrade = "upgrade"
	// CauseVeto is a veto of a cluster's owner.
	CauseVeto = "veto"
	// CauseRemoval is a cluster that is being removed from the fleet.
	CauseRemoval = "removal"
	// CauseHibernation is a cluster whose machines are being stopped, are stopped, or are being started.
	CauseHibernation = "hibernation"
)

// Owner is the owner of the hub's own silences.
const Owner = "bellwether"

const (
	// defaultTimeout is how long an upgrade may take if its wave has no deadline or does not exist.
	defaultTimeout = 30 * time.Minute
	// AfterUpgrade is how long after a successful upgrade alerts may
	// still be caused by it: the short window of the fastest tier.
	AfterUpgrade = 5 * time.Minute
	// usualUpgrade is how long an upgrade usually takes. A page that is hidden for a longer time is reported.
	usualUpgrade = 10 * time.Minute
	// gatherWindow is the maximum time between the admissions of upgrades
	// that share a silence. The usual time counts from the first admission.
	gatherWindow = 5 * time.Minute
	// maxReason, maxOperators and maxClusters are limits of the API.
	maxReason    = 512
	maxOperators = 100
	maxClusters  = 100
)

// Fleet is the input of BuildAutomatic.
type Fleet struct {
	Now time.Time
	// Namespace is the hub's namespace, for silences with the scope Fleet.
	Namespace string
	// Max is how long a silence may last.
	Max      time.Duration
	Clusters []v1alpha1.FleetCluster
	// Installs must contain all installs of each operator that has an install which has not
	// succeeded, or has succeeded within AfterUpgrade, and the installs of clusters with a veto.
	Installs []v1alpha1.OperatorInstall
	Rollouts []v1alpha1.OperatorRollout
	// Covers reports whether a veto is about an operator.
	Covers func(*v1alpha1.ClusterVeto, v1alpha1.OperatorReference) bool
}

// BuildAutomatic returns all of the hub's own AlertSilences that must exist now, sorted by
// namespace and name. AlertSilences whose time is over are not included.
//
//   - An admitted upgrade silences alerts about the operator on the cluster until 5 minutes after its success, and at
//     most until the wave's deadline. Clusters of a wave that were admitted within 5 minutes share one AlertSilence, up
//     to 100 clusters. It lists the clusters whose time is not over.
//   - A veto silences alerts about its operators on its cluster.
//   - A cluster that is being removed is silenced completely.
//   - A cluster that hibernates is silenced completely, with a new AlertSilence for each power state, until the report
//     of its source is too old. If it hibernates for longer than a silence may last, no data is expected from it: the
//     hub exports no series for it.
func BuildAutomatic(f Fleet) []*v1alpha1.AlertSilence {
	timeouts := readTimeouts(f.Rollouts)
	var out []*v1alpha1.AlertSilence
	add := func(s *v1alpha1.AlertSilence) {
		if latest := s.Spec.Start.Add(f.Max); s.Spec.End.After(latest) {
			s.Spec.End = metav1.NewTime(latest)
		}
		if s.Spec.End.After(f.Now) {
			out = append(out, s)
		}
	}
	operators := map[string][]v1alpha1.OperatorReference{}
	for i := range f.Installs {
		spec := &f.Installs[i].Spec
		operators[spec.Cluster] = append(operators[spec.Cluster], spec.Operator)
	}
	for key, installs := range groupUpgrades(f.Installs) {
		timeout, known := timeouts[key.wave]
		if !known {
			timeout = defaultTimeout
		}
		for _, s := range key.buildSilences(f.Now, installs, timeout) {
			add(s)
		}
	}
	for i := range f.Clusters {
		for _, s := range buildForCluster(f, &f.Clusters[i], operators[f.Clusters[i].Name]) {
			add(s)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.AlertSilence) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// buildForCluster returns the silences of a cluster that is being removed, hibernates, or has a veto.
func buildForCluster(f Fleet, c *v1alpha1.FleetCluster,
	operators []v1alpha1.OperatorReference) []*v1alpha1.AlertSilence {
	var out []*v1alpha1.AlertSilence
	if c.DeletionTimestamp != nil {
		out = append(out, buildForRemoval(f, c))
	}
	if c.Status.IsHibernating() && c.Status.Source.PowerStateSince != nil {
		out = append(out, buildForHibernation(f, c))
	}
	if c.Status.Veto != nil && !c.Status.Veto.Since.IsZero() {
		out = append(out, buildForVeto(f, c, operators)...)
	}
	return out
}

// wave identifies a wave of a rollout of a namespace.
type wave struct{ namespace, rollout, wave string }

// readTimeouts returns how long upgrades may take, by wave: the deadlines in
// the specs of rollouts, which are durations. Waves without a deadline are omitted.
func readTimeouts(rollouts []v1alpha1.OperatorRollout) map[wave]time.Duration {
	out := map[wave]time.Duration{}
	for i := range rollouts {
		r := &rollouts[i]
		for _, w := range r.Spec.Strategy.Waves {
			if w.Deadline != nil {
				out[wave{r.Namespace, r.Name, w.Name}] = w.Deadline.Duration
			}
		}
	}
	return out
}

// newAutomatic returns a silence of the hub. The names of its
// subjects contain no dots, so that the names of silences are unique.
func newAutomatic(namespace, name, cause, reason string, start, end time.Time) *v1alpha1.AlertSilence {
	begin := metav1.NewTime(start.UTC())
	return &v1alpha1.AlertSilence{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelAutomaticSilence: cause}},
		Spec: v1alpha1.AlertSilenceSpec{Owner: Owner, Reason: phrase.Truncate(reason, maxReason), Start: &begin,
			End: metav1.NewTime(end.UTC()), Scope: v1alpha1.SilenceNamespace, Alerts: v1alpha1.SilenceAll}}
}

// upgrade identifies the upgrade of an operator by a wave.
type upgrade struct {
	wave
	operator string
}

// groupUpgrades groups the installs that are upgraded by operator and wave.
func groupUpgrades(installs []v1alpha1.OperatorInstall) map[upgrade][]*v1alpha1.OperatorInstall {
	out := map[upgrade][]*v1alpha1.OperatorInstall{}
	for i := range installs {
		install := &installs[i]
		// Pods do not restart if the installed operator is taken over unchanged.
		if a := install.Spec.Admission; a != nil && a.Previous != nil && !a.Release.AsInstalled {
			op := install.Spec.Operator
			key := upgrade{wave{op.Namespace, a.Rollout, a.Wave}, op.Name}
			out[key] = append(out[key], install)
		}
	}
	return out
}

// buildSilences returns the silences of an upgrade's clusters: one silence for up to maxClusters clusters
// that were admitted within gatherWindow. The groups of clusters that share a silence do not change when
// the time of a cluster is over, or when other clusters are admitted. It sorts installs in place.
func (u upgrade) buildSilences(now time.Time, installs []*v1alpha1.OperatorInstall,
	timeout time.Duration) []*v1alpha1.AlertSilence {
	slices.SortFunc(installs, func(a, b *v1alpha1.OperatorInstall) int {
		return cmp.Or(a.Spec.Admission.AdmittedAt.Compare(b.Spec.Admission.AdmittedAt.Time),
			cmp.Compare(a.Spec.Cluster, b.Spec.Cluster))
	})
	var out []*v1alpha1.AlertSilence
	names := map[string]int{}
	for len(installs) > 0 {
		firstAdmission := installs[0].Spec.Admission.AdmittedAt.Time
		n := slices.IndexFunc(installs, func(i *v1alpha1.OperatorInstall) bool {
			return i.Spec.Admission.AdmittedAt.Sub(firstAdmission) > gatherWindow
		})
		if n < 0 {
			n = len(installs)
		}
		n = min(n, maxClusters)
		// The start of a silence cannot be changed, so it is a part of the name.
		name := fmt.Sprintf("upgrade.%s.%s.%s.%d", u.operator, u.rollout, u.wave.wave, firstAdmission.Unix())
		if names[name]++; names[name] > 1 { // more than maxClusters clusters were admitted in the same second
			name = fmt.Sprintf("%s.%d", name, names[name])
		}
		if s := u.buildSilence(now, name, installs[:n], timeout); s != nil {
			out = append(out, s)
		}
		installs = installs[n:]
	}
	return out
}

// buildSilence returns the silence of a group of clusters, or nil if the time of all of them is over.
func (u upgrade) buildSilence(now time.Time, name string, installs []*v1alpha1.OperatorInstall,
	timeout time.Duration) *v1alpha1.AlertSilence {
	var clusters []string
	var end time.Time
	for _, install := range installs {
		if upgradeEnd := computeUpgradeEnd(install, timeout); upgradeEnd.After(now) {
			clusters = append(clusters, install.Spec.Cluster)
			if upgradeEnd.After(end) {
				end = upgradeEnd
			}
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	slices.Sort(clusters)
	admission := installs[0].Spec.Admission
	reason := fmt.Sprintf("rollout %s brings clusters of wave %s to %s", u.rollout, u.wave.wave,
		admission.Release.Version)
	s := newAutomatic(u.namespace, name, CauseUpgrade, reason, admission.AdmittedAt.Time, end)
	s.Spec.Operators = []string{u.operator}
	s.Spec.Clusters = &v1alpha1.SilencedClusters{Names: clusters}
	return s
}

// computeUpgradeEnd returns when the silence of an upgrade ends: when the timeout has
// passed since the admission, or AfterUpgrade after the upgrade succeeded if that is earlier.
func computeUpgradeEnd(install *v1alpha1.OperatorInstall, timeout time.Duration) time.Time {
	a := install.Spec.Admission
	end := a.AdmittedAt.Add(timeout)
	if done := install.Status.SucceededAt; done != nil && install.Status.SucceededHash == a.Hash {
		if settled := done.Add(AfterUpgrade); settled.Before(end) {
			end = settled
		}
	}
	return end
}

// buildForVeto returns the silences of the operators on a cluster that
// its owner's veto is about. They are in the operators' namespaces.
func buildForVeto(f Fleet, c *v1alpha1.FleetCluster, operators []v1alpha1.OperatorReference) []*v1alpha1.AlertSilence {
	v := c.Status.Veto
	end := v.Since.Add(f.Max)
	if v.Until != nil && v.Until.Time.Before(end) {
		end = v.Until.Time
	}
	byNamespace := map[string]*v1alpha1.AlertSilence{}
	for _, op := range operators {
		if !f.Covers(v, op) {
			continue
		}
		if byNamespace[op.Namespace] == nil {
			byNamespace[op.Namespace] = newAutomatic(op.Namespace, fmt.Sprintf("veto.%s.%d", c.Name, v.Since.Unix()),
				CauseVeto,
				"veto of the owner of cluster "+c.Name+": "+v.Reason, v.Since.Time, end)
			byNamespace[op.Namespace].Spec.Clusters = &v1alpha1.SilencedClusters{Names: []string{c.Name}}
		}
		byNamespace[op.Namespace].Spec.Operators = append(byNamespace[op.Namespace].Spec.Operators, op.Name)
	}
	out := make([]*v1alpha1.AlertSilence, 0, len(byNamespace))
	for _, s := range byNamespace {
		slices.Sort(s.Spec.Operators)
		s.Spec.Operators = slices.Compact(s.Spec.Operators)
		if len(s.Spec.Operators) > maxOperators { // a veto lists fewer operators, so it is about all of them
			s.Spec.Operators = nil
		}
		out = append(out, s)
	}
	return out
}

func buildForRemoval(f Fleet, c *v1alpha1.FleetCluster) *v1alpha1.AlertSilence {
	return buildForWholeCluster(f, c, CauseRemoval, "is being removed from the fleet", c.DeletionTimestamp.Time)
}

// buildForHibernation returns the silence of a cluster that does not run. It ends at the latest when the hub no longer
// relies on the reported power state.
func buildForHibernation(f Fleet, c *v1alpha1.FleetCluster) *v1alpha1.AlertSilence {
	source := c.Status.Source
	s := buildForWholeCluster(f, c, CauseHibernation, fmt.Sprintf("does not run: its power state is %s",
		source.PowerState),
		source.PowerStateSince.Time)
	if end := source.PowerStateEnd(); end != nil && end.Before(&s.Spec.End) {
		s.Spec.End = *end
	}
	return s
}

// buildForWholeCluster returns a silence of all alerts about a cluster.
func buildForWholeCluster(f Fleet, c *v1alpha1.FleetCluster, cause, reason string,
	since time.Time) *v1alpha1.AlertSilence {
	s := newAutomatic(f.Namespace, fmt.Sprintf("%s.%s.%d", cause, c.Name, since.Unix()), cause,
		"cluster "+c.Name+" "+reason, since, since.Add(f.Max))
	s.Spec.Scope = v1alpha1.SilenceFleet
	s.Spec.Clusters = &v1alpha1.SilencedClusters{Names: []string{c.Name}}
	return s
}

// ListSuperfluous returns the hub's own silences among all that are not wanted.
func ListSuperfluous(all []v1alpha1.AlertSilence, wanted []*v1alpha1.AlertSilence) []types.NamespacedName {
	keep := map[types.NamespacedName]bool{}
	for _, s := range wanted {
		keep[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = true
	}
	var out []types.NamespacedName
	for i := range all {
		key := types.NamespacedName{Namespace: all[i].Namespace, Name: all[i].Name}
		if all[i].Labels[v1alpha1.LabelAutomaticSilence] != "" && !keep[key] {
			out = append(out, key)
		}
	}
	return out
}

// IsReported reports whether pages that a silence hides are reported:
// always, except for pages that upgrades cause within their usual time.
func IsReported(s *v1alpha1.AlertSilence, now time.Time) bool {
	// A cluster may be admitted up to gatherWindow after the start of the silence.
	return s.Labels[v1alpha1.LabelAutomaticSilence] != CauseUpgrade ||
		now.Sub(readStart(s)) >= gatherWindow+usualUpgrade
}
