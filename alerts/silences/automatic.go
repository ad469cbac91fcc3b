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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Causes of the hub's own silences: values of the label LabelAutomaticSilence.
const (
	// CauseUpgrade is an upgrade that a rollout admitted on one cluster.
	CauseUpgrade = "upgrade"
	// CauseVeto is a veto of a cluster's owner.
	CauseVeto = "veto"
	// CauseRemoval is a cluster that is being removed from the fleet.
	CauseRemoval = "removal"
	// CauseHibernation is a cluster whose machines are being stopped, are stopped, or are
	// being started.
	CauseHibernation = "hibernation"
)

// Owner is the owner of the hub's own silences.
const Owner = "bellwether"

const (
	// defaultDeadline is that of a wave which is not known any more.
	defaultDeadline = 30 * time.Minute
	// AfterUpgrade is how long alerts may look back at an upgrade that succeeded: the short
	// window of the quickest tiers.
	AfterUpgrade = 5 * time.Minute
	// usualUpgrade is how long an upgrade usually takes. A page that is hidden for longer
	// is told of.
	usualUpgrade = 10 * time.Minute
	// gathered is how far apart the admissions of upgrades are at most that have one
	// silence. What is usual is counted from the first one.
	gathered = 5 * time.Minute
	// maxReason is what the API permits, as are the others.
	maxReason    = 512
	maxOperators = 100
	maxClusters  = 100
)

// Fleet is what automatic silences are made of.
type Fleet struct {
	Now time.Time
	// Namespace of the hub, for silences with the scope Fleet.
	Namespace string
	// Max is how long a silence may last.
	Max      time.Duration
	Clusters []v1alpha1.FleetCluster
	// Installs are, at least, all of each operator that has one which has not succeeded, or
	// has within AfterUpgrade, and those of clusters with a veto.
	Installs []v1alpha1.OperatorInstall
	Rollouts []v1alpha1.OperatorRollout
	// Covers tells whether a veto is about an operator.
	Covers func(*v1alpha1.ClusterVeto, v1alpha1.OperatorReference) bool
}

// Automatic are the hub's own AlertSilences that there have to be now, and no others. It
// leaves out those whose time is over.
//
//   - An upgrade that was admitted silences alerts about that operator on that cluster,
//     until 5 minutes after it succeeded, and at most until the wave's deadline. Clusters
//     of a wave that were admitted within 5 minutes have one AlertSilence, and 100 of them
//     at most. It lists those whose time is not over.
//   - A veto silences alerts about the operators that it is about, on its cluster.
//   - A cluster that is being removed is silenced with everything on it.
//   - A cluster that hibernates is silenced with everything on it, anew for each power state, and until the hub does
//     not believe its source any more. Nothing is expected of one that hibernates for longer than
//     a silence may last: the hub exports no series for it.
func Automatic(f Fleet) []*v1alpha1.AlertSilence {
	deadlines := deadlinesOf(f.Rollouts)
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
		of := &f.Installs[i].Spec
		operators[of.Cluster] = append(operators[of.Cluster], of.Operator)
	}
	for key, installs := range upgradesOf(f.Installs) {
		deadline, known := deadlines[key.wave]
		if !known {
			deadline = defaultDeadline
		}
		for _, s := range key.silences(f.Now, installs, deadline) {
			add(s)
		}
	}
	for i := range f.Clusters {
		for _, s := range ofCluster(f, &f.Clusters[i], operators[f.Clusters[i].Name]) {
			add(s)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.AlertSilence) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// ofCluster are the silences because a cluster is being removed, does not run, or refuses changes.
func ofCluster(f Fleet, c *v1alpha1.FleetCluster, operators []v1alpha1.OperatorReference) []*v1alpha1.AlertSilence {
	var out []*v1alpha1.AlertSilence
	if c.DeletionTimestamp != nil {
		out = append(out, ofRemoval(f, c))
	}
	if c.Status.IsHibernating() && c.Status.Source.PowerStateSince != nil {
		out = append(out, ofHibernation(f, c))
	}
	if c.Status.Veto != nil && !c.Status.Veto.Since.IsZero() {
		out = append(out, ofVeto(f, c, operators)...)
	}
	return out
}

// wave names a wave of a rollout of a namespace.
type wave struct{ namespace, rollout, wave string }

func deadlinesOf(rollouts []v1alpha1.OperatorRollout) map[wave]time.Duration {
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

// automatic is a silence of the hub's own. Names of objects that it is about have no
// dots, so that no two have the same name.
func automatic(namespace, name, cause, reason string, start, end time.Time) *v1alpha1.AlertSilence {
	begin := metav1.NewTime(start.UTC())
	return &v1alpha1.AlertSilence{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelAutomaticSilence: cause}},
		Spec: v1alpha1.AlertSilenceSpec{Owner: Owner, Reason: phrase.Truncate(reason, maxReason), Start: &begin,
			End: metav1.NewTime(end.UTC()), Scope: v1alpha1.SilenceNamespace, Alerts: v1alpha1.SilenceAll}}
}

// upgrade is one of an operator by a wave.
type upgrade struct {
	wave
	operator string
}

func upgradesOf(installs []v1alpha1.OperatorInstall) map[upgrade][]*v1alpha1.OperatorInstall {
	out := map[upgrade][]*v1alpha1.OperatorInstall{}
	for i := range installs {
		install := &installs[i]
		// No pod restarts where the operator is taken over as it is installed.
		if a := install.Spec.Admission; a != nil && a.Previous != nil && !a.Release.AsInstalled {
			op := install.Spec.Operator
			key := upgrade{wave{op.Namespace, a.Rollout, a.Wave}, op.Name}
			out[key] = append(out[key], install)
		}
	}
	return out
}

// silences are those of an upgrade's clusters. Which clusters have one together does not
// change when the time of one of them is over, nor when others are admitted.
func (u upgrade) silences(now time.Time, installs []*v1alpha1.OperatorInstall,
	deadline time.Duration) []*v1alpha1.AlertSilence {
	slices.SortFunc(installs, func(a, b *v1alpha1.OperatorInstall) int {
		return cmp.Or(a.Spec.Admission.AdmittedAt.Compare(b.Spec.Admission.AdmittedAt.Time),
			cmp.Compare(a.Spec.Cluster, b.Spec.Cluster))
	})
	var out []*v1alpha1.AlertSilence
	names := map[string]int{}
	for len(installs) > 0 {
		first := installs[0].Spec.Admission.AdmittedAt.Time
		n := slices.IndexFunc(installs, func(i *v1alpha1.OperatorInstall) bool {
			return i.Spec.Admission.AdmittedAt.Sub(first) > gathered
		})
		if n < 0 {
			n = len(installs)
		}
		n = min(n, maxClusters)
		// The start cannot be changed, so that it is a part of the name.
		name := fmt.Sprintf("upgrade.%s.%s.%s.%d", u.operator, u.rollout, u.wave.wave, first.Unix())
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, names[name])
		}
		if s := u.silence(now, name, installs[:n], deadline); s != nil {
			out = append(out, s)
		}
		installs = installs[n:]
	}
	return out
}

// silence is that of clusters that have one together, or nil where the time of all of
// them is over.
func (u upgrade) silence(now time.Time, name string, installs []*v1alpha1.OperatorInstall,
	deadline time.Duration) *v1alpha1.AlertSilence {
	var clusters []string
	var end time.Time
	for _, install := range installs {
		if of := endOfUpgrade(install, deadline); of.After(now) {
			clusters = append(clusters, install.Spec.Cluster)
			if of.After(end) {
				end = of
			}
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	slices.Sort(clusters)
	first := installs[0].Spec.Admission
	reason := fmt.Sprintf("rollout %s brings clusters of wave %s to %s", u.rollout, u.wave.wave, first.Release.Version)
	s := automatic(u.namespace, name, CauseUpgrade, reason, first.AdmittedAt.Time, end)
	s.Spec.Operators = []string{u.operator}
	s.Spec.Clusters = &v1alpha1.SilencedClusters{Names: clusters}
	return s
}

func endOfUpgrade(install *v1alpha1.OperatorInstall, deadline time.Duration) time.Time {
	a := install.Spec.Admission
	end := a.AdmittedAt.Add(deadline)
	if done := install.Status.SucceededAt; done != nil && install.Status.SucceededHash == a.Hash {
		if quiet := done.Add(AfterUpgrade); quiet.Before(end) {
			end = quiet
		}
	}
	return end
}

// ofVeto are silences of the operators on a cluster that its owner's veto is about, in
// the operators' namespaces.
func ofVeto(f Fleet, c *v1alpha1.FleetCluster, operators []v1alpha1.OperatorReference) []*v1alpha1.AlertSilence {
	v := c.Status.Veto
	end := v.Since.Add(f.Max)
	if v.Until != nil && v.Until.Time.Before(end) {
		end = v.Until.Time
	}
	of := map[string]*v1alpha1.AlertSilence{}
	for _, op := range operators {
		if !f.Covers(v, op) {
			continue
		}
		if of[op.Namespace] == nil {
			of[op.Namespace] = automatic(op.Namespace, fmt.Sprintf("veto.%s.%d", c.Name, v.Since.Unix()), CauseVeto,
				"veto of the owner of cluster "+c.Name+": "+v.Reason, v.Since.Time, end)
			of[op.Namespace].Spec.Clusters = &v1alpha1.SilencedClusters{Names: []string{c.Name}}
		}
		of[op.Namespace].Spec.Operators = append(of[op.Namespace].Spec.Operators, op.Name)
	}
	out := make([]*v1alpha1.AlertSilence, 0, len(of))
	for _, s := range of {
		slices.Sort(s.Spec.Operators)
		s.Spec.Operators = slices.Compact(s.Spec.Operators)
		if len(s.Spec.Operators) > maxOperators { // a veto names fewer: it is about all of them
			s.Spec.Operators = nil
		}
		out = append(out, s)
	}
	return out
}

func ofRemoval(f Fleet, c *v1alpha1.FleetCluster) *v1alpha1.AlertSilence {
	return ofWholeCluster(f, c, CauseRemoval, "is being removed from the fleet", c.DeletionTimestamp.Time)
}

func ofHibernation(f Fleet, c *v1alpha1.FleetCluster) *v1alpha1.AlertSilence {
	source := c.Status.Source
	s := ofWholeCluster(f, c, CauseHibernation, fmt.Sprintf("does not run: its power state is %s", source.PowerState),
		source.PowerStateSince.Time)
	if end := source.PowerStateEnd(); end != nil && end.Before(&s.Spec.End) {
		s.Spec.End = *end
	}
	return s
}

// ofWholeCluster is about everything on a cluster.
func ofWholeCluster(f Fleet, c *v1alpha1.FleetCluster, cause, why string, since time.Time) *v1alpha1.AlertSilence {
	s := automatic(f.Namespace, fmt.Sprintf("%s.%s.%d", cause, c.Name, since.Unix()), cause,
		"cluster "+c.Name+" "+why, since, since.Add(f.Max))
	s.Spec.Scope = v1alpha1.SilenceFleet
	s.Spec.Clusters = &v1alpha1.SilencedClusters{Names: []string{c.Name}}
	return s
}

// Superfluous are the hub's own silences of all that are not wanted any more.
func Superfluous(all []v1alpha1.AlertSilence, wanted []*v1alpha1.AlertSilence) []types.NamespacedName {
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

// IsReported tells whether pages that a silence hides are told of: always, but for those
// that upgrades cause within their usual time.
func IsReported(s *v1alpha1.AlertSilence, now time.Time) bool {
	return s.Labels[v1alpha1.LabelAutomaticSilence] != CauseUpgrade || now.Sub(start(s)) >= gathered+usualUpgrade
}
